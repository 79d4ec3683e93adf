package plan

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// everything is all of a sandbox but its environment.
var everything = []string{
	"backend", "image", "isolation", "trust", "trust_reason", "multi_tenant", "profile", "lifetime_seconds", "resources", "network",
	"secrets", "labels", "reaper", "detached", "owner", "tenant", "schedule",
}

var bareDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// owner is what the provider writes on the sandboxes it makes.
const owner = "terraform"

// sandbox reads a sandboxio_sandbox. Its order is the one the runtime makes of
// template and wish.
func (b *builder) sandbox(ctx context.Context, r *reader, root node) []Part {
	var parts []Part
	if order := b.order(ctx, r, root); order != nil {
		r.name = order.Template
		parts = append(parts, r.part(policy.KindSandbox, policy.FromRequest(*order).Resource))
	} else {
		parts = append(parts, r.part(policy.KindSandbox, policy.FromSpec(driver.Info{}, driver.Spec{}, driver.Plan{}, nil)))
	}
	if start := root.get("start"); !start.isNull() && !start.isUnknown() {
		parts = append(parts, command(r, start))
	}
	return parts
}

// order is what the runtime would be asked for, or nil while that is not known
// or cannot be read.
func (b *builder) order(ctx context.Context, r *reader, root node) *sandbox.Request {
	text, lifetime, backend := root.get("template"), root.get("lifetime"), b.named(root.get("backend"))
	r.top = text.path
	r.places["lifetime"], r.places["lifetime_seconds"], r.places["backend"] = lifetime.path, lifetime.path, backend.path
	spec := sandbox.Spec{Detached: true}
	var err error
	if s := lifetime.str(); s != "" {
		spec.Lifetime, err = wish.Duration("lifetime", s)
		r.fail(err)
	}
	spec.Env, spec.Labels = r.stringMap("env", root.get("env")), r.stringMap("labels", root.get("labels"))
	if text.isUnknown() || lifetime.isUnknown() || backend.isUnknown() || len(r.unknown) > 0 {
		// The runtime makes one order of template and wish, so nothing of it
		// is known before all of it is.
		r.unknown, r.sensitive = append(slices.Clone(everything), "env"), nil
		return nil
	}
	if bareDigest.MatchString(text.str()) {
		// All that the state knows after an import.
		r.unknown, r.sensitive = append(slices.Clone(everything), "env"), nil
		return nil
	}
	if text.isSecret() {
		r.sensitive = append(r.sensitive, everything...)
	}
	if spec.Template, err = sandbox.ParseTemplate([]byte(text.str())); err != nil {
		for _, p := range driver.Problems(err) {
			r.fail(driver.Invalid("template", fmt.Sprintf("not a manifest: %s: %v", p.Field, p.Err), p.Hint))
		}
		return nil
	}
	made, err := b.backend(ctx, r, backend.str(), false)
	if err != nil {
		r.fail(err)
		return nil
	}
	seen := capture{policy: spec.Template.Policy}
	if _, err := sandbox.New(lenient{made}, sandbox.Options{Owner: owner, Guard: &seen}).Check(ctx, spec); err != nil {
		r.fail(err)
		return nil
	}
	return &seen.request
}

// command is what a start command is given in clear: its variables and its
// arguments, as the provider has them judged.
func command(r *reader, start node) Part {
	own := newReader()
	own.name = r.name
	var out policy.Resource
	values := own.stringMap("env", start.get("env"))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out.Env = append(out.Env, policy.Env{Name: name, Value: values[name]})
	}
	args := start.get("command")
	for i := range args.len() {
		name := fmt.Sprintf("argument_%d", i)
		out.Env = append(out.Env, policy.Env{Name: name, Value: own.text(fmt.Sprintf("env[%q]", name), args.at(i))})
	}
	own.unknown = append(own.unknown, everything...)
	r.fail(own.err())
	p := own.part(policy.KindSandbox, out)
	p.Only = "env"
	return p
}

// capture is a Guard that remembers what it was asked.
type capture struct {
	policy  string // the digest that the template names
	request sandbox.Request
}

func (c *capture) Judge(_ context.Context, req sandbox.Request) (sandbox.Verdict, error) {
	c.request = req
	return sandbox.Verdict{Decision: sandbox.Allow, Policy: c.policy}, nil
}

// lenient is a backend of which only the promise of its tier is asked: what
// else it can enforce depends on how the machine that applies is set up.
type lenient struct{ driver.Backend }

func (l lenient) Check(spec driver.Spec) (driver.Plan, error) {
	p, err := l.Backend.Check(spec)
	if err != nil {
		return driver.Plan{Isolation: l.Info().Isolation}, nil //nolint:nilerr // judged all the same
	}
	return p, nil
}
