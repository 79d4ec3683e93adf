package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// dockerContainer reads a docker_container, with the defaults that its
// documentation and the engine's state: on the default bridge, which reaches
// everything, with the engine's seccomp profile, not restarted.
func dockerContainer(r *reader, root node) []Part {
	res := others("docker")
	get := func(name string) node {
		switch name {
		case "capabilities", "devices", "labels", "mounts", "networks_advanced", "ports", "upload", "volumes":
			return root.get(name) // blocks, unknown only where a dynamic one makes them
		}
		return root.get(name).settled()
	}
	res.Image = r.image(root.get("image"))
	res.Env = r.assignments("env", get("env"))
	res.Labels = r.dockerLabels(get("labels"))
	res.Command = r.command(root.get("entrypoint"), root.get("command"))
	res.Restart = r.words("restart", get("restart"))
	if res.Restart == nil && !get("restart").isUnknown() {
		res.Restart = new("no")
	}
	res.Resources.MemoryMiB = r.amount("resources.memory_mib", get("memory"), 1)
	res.Resources.CPUMillis = r.dockerCPU(get)
	if size := get("storage_opts"); r.any("resources.disk_mib", size) {
		res.Resources.DiskMiB = megabytes(size.get("size").str())
	}
	res.Process = r.dockerProcess(get)
	res.Mounts = r.dockerMounts(get)
	r.dockerNetwork(get, &res.Network)
	if upload := get("upload"); r.any("files", upload) {
		for _, u := range elements(upload) {
			file := u.get("file").str()
			r.places[fmt.Sprintf("files[%q]", file)] = u.path
			res.Files = append(res.Files, policy.Env{Name: file, Value: u.get("content").str() + u.get("content_base64").str()})
		}
	}
	return []Part{r.part(policy.KindContainer, res)}
}

func (r *reader) dockerLabels(n node) map[string]string {
	out := map[string]string{}
	if !r.any("labels", n) {
		return out
	}
	for _, l := range elements(n) {
		at := fmt.Sprintf("labels[%q]", l.get("label").str())
		out[l.get("label").str()] = l.get("value").str()
		r.places[at] = l.path
		if l.anySecret() {
			r.sensitive = append(r.sensitive, at)
		}
	}
	return out
}

func (r *reader) dockerCPU(get func(string) node) *int64 {
	const field = "resources.cpu_millis"
	if millis := r.amount(field, get("cpus"), 1000); millis != nil || get("cpus").isUnknown() {
		return millis
	}
	quota, period := get("cpu_quota"), get("cpu_period")
	if quota.isNull() || !r.any(field, quota, period) {
		return nil
	}
	q, _ := quota.int()
	p, _ := period.int()
	if q <= 0 {
		return nil
	}
	if p <= 0 {
		p = 100_000 // the kernel's default
	}
	return new((q*1000 + p - 1) / p)
}

func (r *reader) dockerProcess(get func(string) node) policy.Process {
	p := policy.Process{
		User:         r.words("process.user", get("user")),
		Privileged:   r.option("process.privileged", get("privileged"), new(false)),
		ReadOnlyRoot: r.option("process.read_only_root", get("read_only"), new(false)),
		Runtime:      r.words("process.runtime", get("runtime")),
		Seccomp:      new("default"),
	}
	capabilities := get("capabilities")
	p.CapAdd, p.CapDrop = r.capabilities(capabilities)
	r.dockerSecurity(get("security_opts"), &p)
	var modes []node
	for _, m := range []struct{ attribute, namespace string }{
		{"network_mode", "network"}, {"pid_mode", "pid"}, {"ipc_mode", "ipc"}, {"userns_mode", "user"}, {"cgroupns_mode", "cgroup"},
	} {
		n := get(m.attribute)
		modes = append(modes, n)
		switch {
		case n.str() == "host":
			r.places[fmt.Sprintf("process.host_namespaces[%d]", len(p.HostNamespaces))] = n.path
			p.HostNamespaces = append(p.HostNamespaces, m.namespace)
		case strings.HasPrefix(n.str(), "container:") && m.namespace != "network":
			r.places[fmt.Sprintf("process.joined_namespaces[%d]", len(p.JoinedNamespaces))] = n.path
			p.JoinedNamespaces = append(p.JoinedNamespaces, m.namespace)
		}
	}
	r.any("process.host_namespaces", modes...)
	r.any("process.joined_namespaces", modes[1:3]...)
	devices, gpus, requests := get("devices"), get("gpus"), get("device_requests")
	if r.any("process.devices", gpus, devices, requests) {
		for _, d := range elements(devices) {
			r.places[fmt.Sprintf("process.devices[%d]", len(p.Devices))] = d.path
			p.Devices = append(p.Devices, d.get("host_path").str())
		}
		if g := gpus.str(); g != "" {
			r.places[fmt.Sprintf("process.devices[%d]", len(p.Devices))] = gpus.path
			p.Devices = append(p.Devices, "gpu:"+g)
		}
		for _, q := range elements(requests) {
			r.places[fmt.Sprintf("process.devices[%d]", len(p.Devices))] = q.path
			p.Devices = append(p.Devices, requested(q))
		}
	}
	sysctls := get("sysctls")
	if r.any("process.sysctls", sysctls) {
		for i, name := range sysctls.keys() {
			r.places[fmt.Sprintf("process.sysctls[%d]", i)] = sysctls.get(name).path
			p.Sysctls = append(p.Sysctls, name)
		}
	}
	return p
}

// requested is what a request of devices asks for.
func requested(q node) string {
	var ids []string
	for _, id := range blocks(q.get("device_ids")) {
		ids = append(ids, id.str())
	}
	if len(ids) == 0 {
		ids = append(ids, cmp.Or(q.get("driver").str(), "any")+":"+cmp.Or(q.get("count").str(), "all"))
	}
	return strings.Join(ids, ",")
}

// dockerSecurity reads --security-opt, where "=" and ":" are the same.
func (r *reader) dockerSecurity(n node, p *policy.Process) {
	fields := []string{"process.no_new_privileges", "process.seccomp", "process.apparmor", "process.selinux", "process.unmasked_proc", "process.writable_cgroups"}
	for _, f := range fields {
		r.any(f, n)
	}
	if n.isUnknown() || n.anyUnknown() {
		return
	}
	for _, e := range elements(n) {
		key, value := e.str(), ""
		if cut := strings.IndexAny(key, ":="); cut >= 0 {
			key, value = key[:cut], key[cut+1:]
		}
		note := func(field string) { r.places["process."+field] = e.path }
		switch key {
		case "no-new-privileges":
			p.NoNewPrivileges = new(value == "" || value == "true")
			note("no_new_privileges")
		case "seccomp":
			var profile struct{ DefaultAction string }
			if json.Unmarshal([]byte(value), &profile) == nil && profile.DefaultAction == "SCMP_ACT_ALLOW" {
				value = "unconfined" // a profile in full, whose last word lets everything through
			}
			p.Seccomp = &value
			note("seccomp")
		case "apparmor":
			p.AppArmor = &value
			note("apparmor")
		case "label":
			if value == "disable" || unconfinedType(strings.TrimPrefix(value, "type:")) {
				p.SELinux = new("unconfined")
				note("selinux")
			}
		case "writable-cgroups":
			p.WritableCgroups = new(value == "" || value == "true")
			note("writable_cgroups")
		case "systempaths":
			p.UnmaskedProc = new(value == "unconfined")
			note("unmasked_proc")
		}
	}
}

// mount says where the i-th mount was written, and what of it is not known.
func (r *reader) mount(i int, n, source, kind node) {
	at := fmt.Sprintf("mounts[%d]", i)
	r.places[at] = n.path
	if n.isUnknown() || kind.isUnknown() || source.isUnknown() {
		r.note(at+".source", node{unknown: true, path: source.path})
		r.note(at+".type", node{unknown: true, path: n.path})
	}
	r.places[at+".source"] = source.path
	if source.isSecret() {
		r.sensitive = append(r.sensitive, at+".source")
	}
}

func (r *reader) dockerMounts(get func(string) node) []policy.Mount {
	volumes, mounts, tmpfs := get("volumes"), get("mounts"), get("tmpfs")
	for _, n := range []node{volumes, mounts, tmpfs} {
		if n.isUnknown() {
			r.note("mounts", n)
			return nil
		}
	}
	r.places["mounts"] = volumes.path
	var out []policy.Mount
	for _, v := range elements(volumes) {
		host, name := v.get("host_path"), v.get("volume_name")
		m := policy.Mount{Type: new("volume"), Source: textOf(name), Target: textOf(v.get("container_path")), ReadOnly: new(v.get("read_only").bool())}
		source := name
		if host.str() != "" || host.isUnknown() {
			m.Type, m.Source, source = new("bind"), textOf(host), host
		}
		kind := name
		if from := v.get("from_container"); from.isUnknown() || from.str() != "" {
			kind = node{unknown: true} // whatever the other one has
		}
		r.mount(len(out), v, source, kind)
		out = append(out, m)
	}
	out = r.mountBlocks(mounts, out)
	for _, target := range tmpfs.keys() {
		r.mount(len(out), tmpfs.get(target), node{}, node{})
		out = append(out, policy.Mount{Type: new("tmpfs"), Target: &target})
	}
	return out
}

// mountBlocks adds the mounts of blocks "mounts", which containers and services
// have alike.
func (r *reader) mountBlocks(mounts node, out []policy.Mount) []policy.Mount {
	for _, v := range elements(mounts) {
		m := policy.Mount{
			Type: textOf(v.get("type")), Source: textOf(v.get("source")), Target: textOf(v.get("target")), ReadOnly: new(v.get("read_only").bool()),
		}
		propagation := first(v.get("bind_options")).get("propagation")
		m.Propagation = textOf(propagation)
		if m.Type != nil && *m.Type == "npipe" {
			m.Type = new("pipe")
		}
		source, kind := v.get("source"), v.get("type")
		options := first(v.get("volume_options")).get("driver_options")
		switch device := options.get("device"); {
		case options.isUnknown() || device.isUnknown():
			kind = node{unknown: true}
		case strings.HasPrefix(device.str(), "/"): // a volume that is a path of the host
			m.Type, m.Source, source = new("bind"), textOf(device), device
		}
		r.places[fmt.Sprintf("mounts[%d].propagation", len(out))] = propagation.path
		r.mount(len(out), v, source, kind)
		out = append(out, m)
	}
	return out
}

func (r *reader) dockerNetwork(get func(string) node, n *policy.Network) {
	mode, joined := get("network_mode"), get("networks_advanced")
	r.note("network.default", mode)
	r.places["network"] = mode.path
	if mode.str() == "none" && joined.len() == 0 && !joined.isUnknown() {
		n.Default = new("deny")
	}
	if r.any("network.joined", mode, joined) {
		for _, j := range elements(joined) {
			r.places[fmt.Sprintf("network.joined[%d]", len(n.Joined))] = j.path
			n.Joined = append(n.Joined, j.get("name").str())
		}
		switch m := mode.str(); {
		case m == "none" || m == "host" || len(n.Joined) > 0 && (m == "" || m == "bridge"):
		case m == "" || m == "default":
			n.Joined = append(n.Joined, "bridge")
		case !slices.Contains(n.Joined, m):
			n.Joined = append(n.Joined, m)
		}
	}
	ports := get("ports")
	if r.note("network.publish", ports) {
		for i, p := range blocks(ports) {
			at := fmt.Sprintf("network.publish[%d]", i)
			r.places[at] = p.path
			external := p.get("external").settled()
			n.Publish = append(n.Publish, policy.Publish{
				Port: r.amount(at+".port", p.get("internal"), 1), HostPort: r.amount(at+".host_port", external, 1), HostIP: r.dockerIP(at+".host_ip", p.get("ip").settled()),
			})
		}
	}
	if all := get("publish_all_ports"); all.bool() {
		r.places[fmt.Sprintf("network.publish[%d]", len(n.Publish))] = all.path
		n.Publish = append(n.Publish, policy.Publish{})
	}
	n.DNS = r.set("network.dns", get("dns"))
}

// dockerIP is the address a port is published on; every address is the
// default.
func (r *reader) dockerIP(field string, n node) *string {
	ip := r.words(field, n)
	if ip != nil && (*ip == "0.0.0.0" || *ip == "::") {
		return nil
	}
	return ip
}

func textOf(n node) *string {
	if n.str() == "" {
		return nil
	}
	return new(n.str())
}

// dockerImage reads a docker_image, or a docker_registry_image, which pushes.
func dockerImage(r *reader, root node, pushed bool) []Part {
	var res policy.Resource
	name := root.get("name")
	res.Image = r.image(name)
	if insecure := root.get("insecure_skip_verify"); !insecure.isNull() {
		res.Image.Insecure = r.option("image.insecure", insecure, new(false))
	}
	build := first(root.get("build"))
	switch {
	case build.isUnknown():
		r.note("image.made", build)
	case pushed || !build.isNull():
		res.Image.Made = new(true)
	}
	for _, attribute := range []string{"build_args", "build_arg"} {
		args := build.get(attribute)
		if args.isNull() {
			continue
		}
		values := r.stringMap("build_args", args)
		for _, k := range sortedKeys(values) {
			res.BuildArgs = append(res.BuildArgs, policy.Env{Name: k, Value: values[k]})
		}
	}
	if build.isUnknown() {
		r.note("build_args", build)
	}
	res.Labels = r.stringMap("labels", build.get("label"))
	return []Part{r.part(policy.KindImage, res)}
}
