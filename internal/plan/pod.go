package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// pod is where a pod's description lies, and in which spelling: the provider's
// resources say host_network and have one "container" block each, manifests
// say hostNetwork and have a list of "containers".
type pod struct {
	meta, spec node
	deadline   node // of the job around it
	manifest   bool
	restart    string // what a missing restart policy means
}

// get is a field of a part of the pod.
func (p pod) get(n node, name string) node {
	if p.manifest {
		return n.get(camel(name)).settled()
	}
	return n.get(name).settled()
}

// block is a field whose being unknown is never a default's.
func (p pod) block(n node, name string) node {
	if p.manifest {
		return n.get(camel(name))
	}
	return n.get(name)
}

// one is a field that is an object in manifests, and a block otherwise.
func (p pod) one(n node, name string) node { return first(p.block(n, name)) }

// many is a list of objects, whose name is plural in manifests.
func (p pod) many(n node, name string) node {
	if p.manifest {
		name += "s"
	}
	return p.block(n, name)
}

func camel(name string) string {
	switch name {
	case "host_pid", "host_ipc", "host_ip":
		return "host" + strings.ToUpper(name[len("host_"):])
	}
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}

// podOf finds the pod in a resource of the provider for Kubernetes.
func podOf(kind string, root node) pod {
	p := pod{restart: "always"}
	outer := first(root.get("spec"))
	switch strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(kind, "kubernetes_"), "_v1"), "_v1beta1") {
	case "pod":
		p.meta, p.spec = first(root.get("metadata")), outer
		return p
	case "cron_job":
		outer = first(first(outer.get("job_template")).get("spec"))
		p.deadline = outer.get("active_deadline_seconds")
	case "job":
		p.deadline = outer.get("active_deadline_seconds")
	}
	template := first(outer.get("template"))
	p.meta, p.spec = first(template.get("metadata")), first(template.get("spec"))
	return p
}

// parts are the containers of the pod, those that prepare it included.
func (p pod) parts(errs *reader) []Part {
	var out []Part
	for _, name := range []string{"container", "init_container", "ephemeral_container"} {
		list := p.many(p.spec, name)
		if p.spec.isUnknown() && len(out) > 0 {
			break // it was said of the whole
		}
		if list.isUnknown() || p.spec.isUnknown() {
			out = append(out, unknownContainer("kubernetes", list.path))
			continue
		}
		for _, c := range blocks(list) {
			r := newReader()
			r.top = c.path
			res := p.container(r, c)
			out = append(out, r.part(policy.KindContainer, res))
			errs.fail(r.err())
		}
	}
	return out
}

func (p pod) container(r *reader, c node) policy.Resource {
	res := others("kubernetes")
	res.Image = r.image(c.get("image"))
	res.Labels = r.stringMap("labels", p.meta.get("labels"))
	res.LifetimeSeconds = r.amount("lifetime_seconds", p.get(p.spec, "active_deadline_seconds"), 1)
	if res.LifetimeSeconds == nil && !p.get(p.spec, "active_deadline_seconds").isUnknown() && p.deadline.path != nil {
		res.LifetimeSeconds = r.amount("lifetime_seconds", p.deadline, 1)
	}
	restart := p.get(p.spec, "restart_policy")
	if r.note("restart", restart) {
		res.Restart = new(p.restart)
		if s, ok := map[string]string{"Always": "always", "OnFailure": "on-failure", "Never": "no"}[restart.str()]; ok {
			res.Restart = &s
		}
	}
	res.ServiceToken = r.option("service_account_token", p.get(p.spec, "automount_service_account_token"), new(true))
	// Resources left out are read back; without them there is no limit.
	limits := first(c.get("resources").settled()).get("limits").settled()
	if r.any("resources", limits) {
		cpu, ok := quantity(limits.get("cpu").str(), kubernetesUnits)
		if ok {
			res.Resources.CPUMillis = new(int64(math.Ceil(cpu * 1000)))
		}
		res.Resources.MemoryMiB = mebibytes(quantity(limits.get("memory").str(), kubernetesUnits))
		res.Resources.DiskMiB = mebibytes(quantity(limits.get("ephemeral-storage").str(), kubernetesUnits))
		for field, key := range map[string]string{"cpu_millis": "cpu", "memory_mib": "memory", "disk_mib": "ephemeral-storage"} {
			r.places["resources."+field] = limits.get(key).path
		}
	}
	p.environment(r, c, &res)
	res.Command = r.command(c.get("command"), c.get("args"))
	res.Process = p.process(r, c)
	res.Mounts = p.mounts(r, c)
	p.network(r, c, &res.Network)
	return res
}

func (p pod) environment(r *reader, c node, res *policy.Resource) {
	env := c.get("env")
	if !r.note("env", env) {
		return
	}
	for _, e := range blocks(env) {
		name, value := e.get("name"), e.get("value")
		if name.isUnknown() || e.isUnknown() {
			r.note("env", node{unknown: true, path: e.path})
			continue
		}
		at := fmt.Sprintf("env[%q]", name.str())
		r.places[at] = value.path
		from := p.block(e, "value_from")
		switch {
		case value.isUnknown() && from.isNull():
			r.unknown = append(r.unknown, at)
		case value.str() != "":
			if value.isSecret() {
				r.sensitive = append(r.sensitive, at)
			}
			res.Env = append(res.Env, policy.Env{Name: name.str(), Value: value.str()})
		}
	}
}

func (p pod) process(r *reader, c node) policy.Process {
	own, whole := p.one(c, "security_context"), p.one(p.spec, "security_context")
	// either is the container's own value, or else the pod's.
	either := func(name string) node {
		if n := p.get(own, name); !n.isNull() && n.str() != "" || n.isUnknown() {
			return n
		}
		return p.get(whole, name)
	}
	out := policy.Process{
		User:         r.words("process.user", either("run_as_user")),
		NonRoot:      r.option("process.non_root", either("run_as_non_root"), new(false)),
		Privileged:   r.option("process.privileged", p.get(own, "privileged"), new(false)),
		ReadOnlyRoot: r.option("process.read_only_root", p.get(own, "read_only_root_filesystem"), new(false)),
		Runtime:      r.words("process.runtime", p.get(p.spec, "runtime_class_name")),
	}
	if escalate := r.option("process.no_new_privileges", p.get(own, "allow_privilege_escalation"), new(true)); escalate != nil {
		out.NoNewPrivileges = new(!*escalate)
	}
	out.CapAdd, out.CapDrop = r.capabilities(p.block(own, "capabilities"))
	labels := p.one(own, "se_linux_options")
	if labels.isNull() {
		labels = p.one(whole, "se_linux_options")
	}
	if r.any("process.selinux", labels) && unconfinedType(labels.get("type").str()) {
		out.SELinux = new("unconfined")
	}
	windows := p.get(p.one(own, "windows_options"), "host_process")
	if windows.isNull() {
		windows = p.get(p.one(whole, "windows_options"), "host_process")
	}
	if r.note("process.privileged", windows) && windows.bool() {
		out.Privileged = new(true) // it runs on the host itself
	} else if !windows.isUnknown() {
		r.places["process.privileged"] = p.get(own, "privileged").path
	}
	out.Devices = p.devices(r, c)
	out.Seccomp = p.profile(r, "process.seccomp", own, whole, "seccomp_profile")
	out.AppArmor = p.profile(r, "process.apparmor", own, whole, "app_armor_profile")
	mount := p.get(own, "proc_mount")
	if r.note("process.unmasked_proc", mount) {
		out.UnmaskedProc = new(mount.str() == "Unmasked")
	}
	var shared []node
	for _, ns := range []string{"network", "pid", "ipc"} {
		n := p.get(p.spec, "host_"+ns)
		shared = append(shared, n)
		if n.bool() {
			r.places[fmt.Sprintf("process.host_namespaces[%d]", len(out.HostNamespaces))] = n.path
			out.HostNamespaces = append(out.HostNamespaces, ns)
		}
	}
	r.any("process.host_namespaces", shared...)
	if sysctls := p.many(whole, "sysctl"); r.any("process.sysctls", sysctls) {
		for i, s := range blocks(sysctls) {
			r.places[fmt.Sprintf("process.sysctls[%d]", i)] = s.path
			out.Sysctls = append(out.Sysctls, s.get("name").str())
		}
	}
	return out
}

// devices are what a container gets beside files: disks as they are, and what
// plugins of the node hand out, whose names have a domain.
func (p pod) devices(r *reader, c node) []string {
	disks, resources := p.many(c, "volume_device"), first(c.get("resources").settled())
	limits, claims := resources.get("limits").settled(), resources.get("claims")
	if !r.any("process.devices", disks, limits, claims) {
		return nil
	}
	var out []string
	add := func(name string, n node) {
		r.places[fmt.Sprintf("process.devices[%d]", len(out))] = n.path
		out = append(out, name)
	}
	for _, d := range blocks(disks) {
		add("the disk "+d.get("name").str(), d)
	}
	for _, name := range limits.keys() {
		if strings.Contains(name, "/") {
			add(name, limits.get(name))
		}
	}
	for _, claim := range blocks(claims) {
		add("the claim "+claim.get("name").str(), claim)
	}
	return out
}

// profile is a seccomp or AppArmor profile, the container's or else the pod's;
// nil when none is named, which means what the node is set to.
func (p pod) profile(r *reader, field string, own, whole node, name string) *string {
	n := p.one(own, name)
	if n.isNull() {
		n = p.one(whole, name)
	}
	if !r.any(field, n) {
		return nil
	}
	switch kind := n.get("type").str(); kind {
	case "":
		return nil
	case "RuntimeDefault":
		return new("default")
	case "Unconfined":
		return new("unconfined")
	default:
		return new(strings.TrimSpace(kind + " " + p.get(n, "localhost_profile").str()))
	}
}

func (p pod) mounts(r *reader, c node) []policy.Mount {
	list, volumes := p.many(c, "volume_mount"), p.many(p.spec, "volume")
	if list.isUnknown() || volumes.isUnknown() {
		r.note("mounts", node{unknown: true, path: list.path})
		return nil
	}
	r.places["mounts"] = list.path
	byName := map[string]node{}
	for _, v := range blocks(volumes) {
		byName[v.get("name").str()] = v
	}
	var out []policy.Mount
	for i, m := range blocks(list) {
		at := fmt.Sprintf("mounts[%d]", i)
		r.places[at] = m.path
		mount := policy.Mount{Type: new("config"), Target: textOf(p.get(m, "mount_path")), ReadOnly: new(p.get(m, "read_only").bool())}
		switch p.get(m, "mount_propagation").str() {
		case "Bidirectional":
			mount.Propagation = new("rshared")
		case "HostToContainer":
			mount.Propagation = new("rslave")
		}
		r.places[at+".propagation"] = p.get(m, "mount_propagation").path
		v, known := byName[m.get("name").str()]
		host, claim := p.one(v, "host_path"), p.one(v, "persistent_volume_claim")
		switch {
		case !known || m.get("name").isUnknown() || v.isUnknown() || host.isUnknown():
			r.note(at+".type", node{unknown: true, path: m.path})
			r.note(at+".source", node{unknown: true, path: m.path})
		case !host.isNull():
			mount.Type, mount.Source = new("bind"), r.words(at+".source", host.get("path"))
		case !claim.isNull():
			mount.Type, mount.Source = new("volume"), r.words(at+".source", p.get(claim, "claim_name"))
		case !p.one(v, "empty_dir").isNull():
			mount.Type = new("tmpfs")
		}
		out = append(out, mount)
	}
	return out
}

func (p pod) network(r *reader, c node, n *policy.Network) {
	host := p.get(p.spec, "host_network")
	r.places["network"], r.places["network.default"] = p.spec.path, p.spec.path
	ports := p.many(c, "port")
	if r.note("network.publish", ports) {
		for _, port := range blocks(ports) {
			outside := p.get(port, "host_port")
			number, _ := outside.int()
			if number == 0 && !outside.isUnknown() && !host.bool() {
				continue
			}
			at := fmt.Sprintf("network.publish[%d]", len(n.Publish))
			r.places[at] = port.path
			n.Publish = append(n.Publish, policy.Publish{
				Port: r.amount(at+".port", p.get(port, "container_port"), 1), HostPort: r.amount(at+".host_port", outside, 1), HostIP: r.words(at+".host_ip", p.get(port, "host_ip")),
			})
		}
	}
	n.DNS = r.set("network.dns", p.one(p.spec, "dns_config").get("nameservers"))
}
