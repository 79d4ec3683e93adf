package policy

import (
	"maps"
	"slices"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// FromRequest is the input for a sandbox about to be created by a program.
func FromRequest(req sandbox.Request) Input {
	return Input{
		Kind:     KindSandbox,
		Stage:    StageRuntime,
		Name:     req.Template,
		Resource: FromSpec(req.Backend, req.Spec, req.Plan, req.Secrets),
	}
}

// FromSpec is the resource for an order: what a program asks for, and what a
// template or sandbox resource would ask for. What no order can ask for is
// false or none; what each backend does beyond it is not said. In a plan, a field that is not
// known yet stays zero in spec and is named in [Input.Unknown].
func FromSpec(backend driver.Info, spec driver.Spec, plan driver.Plan, secrets []string) Resource {
	trust := spec.Trust.String()
	if trust == "" {
		trust = "unstated"
	}
	r := Resource{
		Backend:         text(backend.Name),
		Image:           ImageOf(spec.Image),
		Isolation:       new(max(spec.Isolation, plan.Isolation).String()),
		Trust:           &trust,
		TrustReason:     text(spec.Trust.Reason()),
		MultiTenant:     &spec.MultiTenant,
		Profile:         new(spec.Profile.String()),
		LifetimeSeconds: seconds(spec.LongestLife()),
		Resources:       CapsOf(spec.Resources),
		Network:         NetworkOf(spec.Network),
		Secrets:         slices.Sorted(slices.Values(secrets)),
		Labels:          maps.Clone(spec.Labels),
		Reaper:          text(spec.Facts.Reaper),
		Detached:        &spec.Detached,
		Owner:           text(spec.Facts.Owner),
		Tenant:          text(spec.Facts.Tenant),
		Process:         Process{Privileged: new(false)},
		Restart:         new("no"),
		ServiceToken:    new(false),
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		r.Env = append(r.Env, Env{Name: name, Value: spec.Env[name]})
	}
	return r
}

// ImageOf takes a reference apart. Of one that cannot be parsed it tells only
// that it is not pinned, since the text may hold anything.
func ImageOf(ref string) Image {
	if ref == "" {
		return Image{}
	}
	img, err := driver.ParseImage(ref)
	if err != nil {
		return Image{Pinned: new(false)}
	}
	return Image{
		Ref: &ref, Registry: text(img.Registry), Repository: text(img.Repository),
		Tag: text(img.Tag), Digest: text(img.Digest), Pinned: new(img.Pinned()), Insecure: new(false), Made: new(false),
	}
}

// CapsOf are the caps of a resolved order; a zero is a missing one.
func CapsOf(r driver.Resources) Caps {
	return Caps{CPUMillis: count(r.CPUMillis), MemoryMiB: count(r.MemoryMiB), DiskMiB: count(r.DiskMiB), PIDs: count(r.PIDs)}
}

// NetworkOf is a network in the words of the document, in the order given.
func NetworkOf(n driver.Network) Network {
	out := Network{Default: new("deny"), Mode: new(n.Mode.String()), Learn: &n.Learn, Expose: ports(n.Expose)}
	for _, r := range n.Egress {
		e := Egress{Host: text(r.Host), Ports: ports(r.Ports), Why: text(r.Why)}
		if r.Prefix.IsValid() {
			e.CIDR = new(r.Prefix.String())
		}
		out.Egress = append(out.Egress, e)
	}
	return out
}

// ScheduleOf is a reaper's schedule in the words of the document.
func ScheduleOf(s driver.Schedule) Schedule {
	return Schedule{IntervalSeconds: seconds(s.Interval), Cron: text(s.Cron), MaxAgeSeconds: seconds(s.MaxAge), DryRun: &s.DryRun}
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func count(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// seconds rounds up, so that no limit looks shorter than it is.
func seconds(d time.Duration) *int64 {
	if d > 0 {
		d += time.Second - 1
	}
	return count(int64(d / time.Second))
}

func ports(in []uint16) []int64 {
	out := make([]int64, len(in))
	for i, p := range in {
		out[i] = int64(p)
	}
	return out
}
