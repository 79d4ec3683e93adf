package plan

import (
	"fmt"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// dockerService reads a docker_service, whose tasks are containers of a swarm.
// Their defaults are the engine's: started again whenever they end, on a network
// that reaches everything. A swarm's containers are never privileged, have no
// devices and no namespaces of the host's but its network.
func dockerService(r *reader, root node) []Part {
	task := first(root.get("task_spec"))
	spec := first(task.get("container_spec"))
	if spec.isUnknown() || task.isUnknown() {
		return []Part{unknownContainer("docker", task.path)}
	}
	r.top = spec.path
	res := others("docker")
	get := func(name string) node { return spec.get(name).settled() }
	res.Image = r.image(spec.get("image"))
	env := r.stringMap("env", get("env"))
	for _, name := range sortedKeys(env) {
		res.Env = append(res.Env, policy.Env{Name: name, Value: env[name]})
	}
	res.Labels = r.dockerLabels(spec.get("labels"))
	res.Command = r.command(get("command"), get("args"))
	condition := first(task.get("restart_policy")).get("condition").settled()
	if r.note("restart", condition) {
		res.Restart = new("always")
		if s, ok := map[string]string{"none": "no", "on-failure": "on-failure"}[condition.str()]; ok {
			res.Restart = &s
		}
	}
	limits := first(first(task.get("resources")).get("limits"))
	res.Resources.CPUMillis = r.amount("resources.cpu_millis", limits.get("nano_cpus").settled(), 1e-6)
	res.Resources.MemoryMiB = r.amount("resources.memory_mib", limits.get("memory_bytes").settled(), 1.0/(1<<20))
	res.Process = policy.Process{
		User: r.words("process.user", get("user")), Privileged: new(false), ReadOnlyRoot: r.option("process.read_only_root", get("read_only"), new(false)),
		Seccomp: new("default"), CapAdd: r.set("process.cap_add", get("cap_add")), CapDrop: r.set("process.cap_drop", get("cap_drop")),
	}
	labels := first(first(spec.get("privileges")).get("se_linux_context"))
	if r.any("process.selinux", labels) && (labels.get("disable").bool() || unconfinedType(labels.get("type").str())) {
		res.Process.SELinux = new("unconfined")
	}
	sysctls := get("sysctl")
	if r.any("process.sysctls", sysctls) {
		for i, name := range sysctls.keys() {
			r.places[fmt.Sprintf("process.sysctls[%d]", i)] = sysctls.get(name).path
			res.Process.Sysctls = append(res.Process.Sysctls, name)
		}
	}
	if mounts := spec.get("mounts"); r.note("mounts", mounts) {
		res.Mounts = r.mountBlocks(mounts, nil)
	}
	r.serviceNetwork(root, task, &res)
	res.Network.DNS = r.set("network.dns", first(spec.get("dns_config")).get("nameservers"))
	return []Part{r.part(policy.KindContainer, res)}
}

func (r *reader) serviceNetwork(root, task node, res *policy.Resource) {
	joined := task.get("networks_advanced")
	r.places["network"], r.places["network.default"] = joined.path, joined.path
	if r.any("network.joined", joined) {
		for _, j := range elements(joined) {
			name := j.get("id")
			if name.str() == "" {
				name = j.get("name")
			}
			if name.str() == "host" {
				r.places[fmt.Sprintf("process.host_namespaces[%d]", len(res.Process.HostNamespaces))] = j.path
				res.Process.HostNamespaces = append(res.Process.HostNamespaces, "network")
				continue
			}
			r.places[fmt.Sprintf("network.joined[%d]", len(res.Network.Joined))] = j.path
			res.Network.Joined = append(res.Network.Joined, name.str())
		}
		if len(res.Network.Joined)+len(res.Process.HostNamespaces) == 0 {
			res.Network.Joined = []string{"bridge"}
		}
	}
	r.any("process.host_namespaces", joined)
	ports := first(root.get("endpoint_spec")).get("ports")
	if r.note("network.publish", ports) {
		for i, p := range blocks(ports) {
			at := fmt.Sprintf("network.publish[%d]", i)
			r.places[at] = p.path
			res.Network.Publish = append(res.Network.Publish, policy.Publish{
				Port: r.amount(at+".port", p.get("target_port"), 1), HostPort: r.amount(at+".host_port", p.get("published_port").settled(), 1),
			})
		}
	}
}

// unknownContainer is the question about a container of which nothing is known.
func unknownContainer(backend string, at []any) Part {
	r := newReader()
	r.top = at
	r.unknown = []string{
		"image", "resources", "network", "env", "labels", "process", "mounts", "restart", "service_account_token", "command", "lifetime_seconds",
	}
	return r.part(policy.KindContainer, others(backend))
}

// unconfinedType reports whether a type of SELinux lets everything through.
func unconfinedType(name string) bool { return name == "spc_t" || name == "unconfined_t" }
