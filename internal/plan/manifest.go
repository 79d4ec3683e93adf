package plan

import "strings"

// podsIn finds the pods in a manifest. One whose kind is not known yet is taken
// for a pod of which nothing is known.
func podsIn(m node) []pod {
	p := pod{manifest: true, restart: "always"}
	kind := m.get("kind")
	if m.isUnknown() || kind.isUnknown() {
		p.spec = node{unknown: true, path: m.path}
		return []pod{p}
	}
	spec := m.get("spec")
	switch kind.str() {
	case "Pod":
		p.meta, p.spec = m.get("metadata"), spec
		return []pod{p}
	case "CronJob":
		spec = spec.get("jobTemplate").get("spec")
		p.deadline = spec.get("activeDeadlineSeconds")
	case "Job":
		p.deadline = spec.get("activeDeadlineSeconds")
	case "Sandbox", "SandboxTemplate": // agents.x-k8s.io
		t := spec.get("podTemplate")
		p.meta, p.spec = t.get("metadata"), t.get("spec")
		return []pod{p}
	case "PodTemplate":
		t := m.get("template")
		p.meta, p.spec = t.get("metadata"), t.get("spec")
		return []pod{p}
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController":
	default:
		if items := m.get("items"); strings.HasSuffix(kind.str(), "List") && !items.isNull() {
			return listed(items)
		}
		return search(m, node{}, 0)
	}
	p.meta, p.spec = spec.get("template").get("metadata"), spec.get("template").get("spec")
	return []pod{p}
}

// listed are the pods in the items of a list.
func listed(items node) []pod {
	if items.isUnknown() {
		return []pod{{manifest: true, restart: "always", spec: node{unknown: true, path: items.path}}}
	}
	var out []pod
	for _, item := range blocks(items) {
		out = append(out, podsIn(item)...)
	}
	return out
}

// deepest is how far below the top of a manifest a pod is looked for.
const deepest = 16

// search finds what looks like a pod's description in a kind of resource that
// somebody defined: an object with a list of containers, each with an image.
func search(n, above node, depth int) []pod {
	if depth > deepest {
		return nil
	}
	if list, ok := n.value.([]any); ok {
		var out []pod
		for i := range list {
			out = append(out, search(n.at(i), node{}, depth+1)...)
		}
		return out
	}
	for _, c := range blocks(n.get("containers")) {
		if image := c.get("image"); image.isUnknown() || image.str() != "" {
			return []pod{{manifest: true, restart: "always", meta: above.get("metadata"), spec: n}}
		}
	}
	var out []pod
	for _, key := range n.keys() {
		out = append(out, search(n.get(key), n, depth+1)...)
	}
	return out
}

// manifestParts are what a manifest asks: about its pods, or about its volume.
func manifestParts(r *reader, m node) []Part {
	if m.get("kind").str() == "PersistentVolume" {
		return persistentVolume(r, m.get("spec"), true)
	}
	var out []Part
	for _, p := range podsIn(m) {
		out = append(out, p.parts(r)...)
	}
	return out
}
