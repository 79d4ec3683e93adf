package plan

import (
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// A volume that is a path of the host is a mount of it, whoever mounts it under
// whatever name. Only that is asked about.

// dockerVolume reads a docker_volume; nil for one that the engine keeps itself.
func dockerVolume(r *reader, root node) []Part {
	options := root.get("driver_opts").settled()
	device := options.get("device")
	switch {
	case options.isUnknown(), device.isUnknown():
	case !strings.HasPrefix(device.str(), "/"):
		return nil
	}
	return []Part{r.hostVolume("docker", device)}
}

// persistentVolume reads a volume of Kubernetes, of the provider's or of a
// manifest; nil for one that is no path of a node's.
func persistentVolume(r *reader, spec node, manifest bool) []Part {
	from := spec
	if !manifest {
		from = first(spec.get("persistent_volume_source"))
	}
	names := []string{"host_path", "local"}
	if manifest {
		names = []string{"hostPath", "local"}
	}
	for _, name := range names {
		block := first(from.get(name))
		if block.isNull() && !block.isUnknown() {
			continue
		}
		return []Part{r.hostVolume("kubernetes", block.get("path"))}
	}
	return nil
}

func (r *reader) hostVolume(backend string, source node) Part {
	res := others(backend)
	res.Mounts = []policy.Mount{{Type: new("bind"), Source: textOf(source)}}
	r.unknown = slices.Clone(everything)
	r.mount(0, source, source, source)
	p := r.part(policy.KindContainer, res)
	p.Only = "mounts"
	return p
}
