package plan

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/redact"
)

// builder makes items of resources.
type builder struct {
	opts     Options
	source   *Source
	provider provider // as the configuration has it
}

// provider is what the provider's configuration says of backends.
type provider struct {
	backend node // default_backend
	image   node // docker.image: what a template without one means
}

// providerOf reads a provider block. Without a default, the only backend
// configured is meant, and docker when none is.
func providerOf(n node) provider {
	p := provider{backend: n.get("default_backend"), image: first(n.get("docker")).get("image")}
	if !p.backend.isNull() {
		return p
	}
	var configured []string
	for _, name := range []string{"docker", "memory"} {
		if block := n.get(name); block.isUnknown() || block.len() > 0 || !block.isNull() {
			configured = append(configured, name)
		}
	}
	switch len(configured) {
	case 0:
		p.backend.value = "docker"
	case 1:
		p.backend.value = configured[0]
	default:
		p.backend.unknown = true
	}
	return p
}

// merge keeps what two blocks have in common.
func (p provider) merge(q provider) provider {
	common := func(a, b node) node {
		if a.isUnknown() || b.isUnknown() || a.value != b.value {
			return node{unknown: true}
		}
		return a
	}
	return provider{backend: common(p.backend, q.backend), image: common(p.image, q.image)}
}

// first is the block of a kind that is there once at most: a list of one, or
// the value itself.
func first(n node) node {
	if _, ok := n.value.([]any); ok {
		return n.at(0)
	}
	if _, ok := n.unknown.([]any); ok {
		return n.at(0)
	}
	return n
}

// named is a backend attribute, or what the provider takes for one left out.
func (b *builder) named(n node) node {
	if !n.isNull() {
		return n
	}
	n.value, n.unknown, n.secret = b.provider.backend.value, b.provider.backend.unknown, b.provider.backend.secret
	return n
}

// backend opens a backend by name, which connects to nothing. Whoever needs
// the default image learns whether it is known.
func (b *builder) backend(ctx context.Context, r *reader, name string, needsImage bool) (driver.Backend, error) {
	image := b.provider.image
	if needsImage && image.isUnknown() {
		r.unknown = append(r.unknown, "image")
	}
	if needsImage && image.isSecret() {
		r.sensitive = append(r.sensitive, "image")
	}
	return b.opts.Backend(ctx, name, image.str())
}

// reads says how a type of resource is read; nil for one that is none of ours.
func (b *builder) reads(kind string) func(context.Context, *reader, node) []Part {
	switch kind {
	case "sandboxio_template":
		return b.template
	case "sandboxio_sandbox":
		return b.sandbox
	case "sandboxio_network_policy":
		return func(_ context.Context, r *reader, n node) []Part { return networkPolicy(r, n) }
	case "sandboxio_reaper_schedule":
		return func(_ context.Context, r *reader, n node) []Part { return b.schedule(r, n) }
	case "docker_container":
		return func(_ context.Context, r *reader, n node) []Part { return dockerContainer(r, n) }
	case "docker_service":
		return func(_ context.Context, r *reader, n node) []Part { return dockerService(r, n) }
	case "docker_volume":
		return func(_ context.Context, r *reader, n node) []Part { return dockerVolume(r, n) }
	case "kubernetes_persistent_volume", "kubernetes_persistent_volume_v1":
		return func(_ context.Context, r *reader, n node) []Part {
			return persistentVolume(r, first(n.get("spec")), false)
		}
	case "kubernetes_manifest":
		return func(_ context.Context, r *reader, n node) []Part { return manifestParts(r, n.get("manifest")) }
	case "docker_image", "docker_registry_image":
		return func(_ context.Context, r *reader, n node) []Part {
			return dockerImage(r, n, kind == "docker_registry_image")
		}
	}
	if slices.Contains(podKinds, kind) {
		return func(_ context.Context, r *reader, n node) []Part { return podOf(kind, n).parts(r) }
	}
	return nil
}

// podKinds are the resources that describe a pod.
var podKinds = func() []string {
	out := []string{"kubernetes_daemonset", "kubernetes_daemon_set_v1", "kubernetes_cron_job_v1beta1"}
	for _, kind := range []string{"pod", "deployment", "job", "cron_job", "stateful_set", "replication_controller"} {
		out = append(out, "kubernetes_"+kind, "kubernetes_"+kind+"_v1")
	}
	return out
}()

// foreign reports whether somebody else's provider has this type.
func foreign(kind string) bool { return !strings.HasPrefix(kind, "sandboxio_") }

// build makes the item of one resource. before is what the state has of an
// object that stays, or null; found is what was written and dropped.
func (b *builder) build(ctx context.Context, kind string, before, after node, found ...stray) Item {
	i := Item{Type: kind, source: b.source}
	read := b.reads(kind)
	r := newReader()
	i.Parts = read(ctx, r, after)
	r.tell(found)
	i.Problem = r.err()
	if !before.isNull() && i.Problem == nil {
		i.Unchanged = same(read(ctx, newReader(), before), i.Parts)
	}
	var hidden []string
	secrets(after.value, after.secret, &hidden)
	secrets(before.value, before.secret, &hidden)
	i.secrets = redact.New(hidden...)
	return i
}

// same reports whether both ask the same, with all of it known.
func same(before, after []Part) bool {
	return slices.EqualFunc(before, after, func(a, b Part) bool {
		return len(b.Input.Unknown) == len(notAsked(b)) && reflect.DeepEqual(a.Input.Resource, b.Input.Resource)
	})
}

func notAsked(p Part) []string {
	if p.Only == "" {
		return nil
	}
	return everything
}

// module takes the calls out of a module's address: "module.a[\"x\"].module.b"
// is a, b.
func module(address string) []string {
	var out []string
	for rest := address; rest != ""; {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, "module."); !ok {
			return out
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			return append(out, rest)
		}
		out = append(out, rest[:end])
		rest = afterKey(rest[end:])
		rest = strings.TrimPrefix(rest, ".")
	}
	return out
}

// afterKey drops an instance key, which may hold brackets and quotes.
func afterKey(s string) string {
	if !strings.HasPrefix(s, "[") {
		return s
	}
	quoted := false
	for i := 1; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ']' && !quoted:
			return s[i+1:]
		}
	}
	return ""
}
