package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Spec is a wish for one sandbox. Its zero value is strict: no network, a
// read-only root, 300 s to live, modest caps. Only the image may have to be
// named, where the backend has no default.
//
// With a Template, the template decides what was reviewed; the Spec may only
// tighten it (a shorter Lifetime, smaller Resources, a higher Isolation) and
// add what belongs to this one sandbox: Env, Labels, Tenant, Owner.
type Spec struct {
	Template    *Template
	Image       string        // empty = the template's, or the backend's default
	Isolation   Isolation     // the floor; what Trust requires applies too, and the higher one holds
	Trust       Trust         // zero = unstated: a warning on the container tier
	MultiTenant bool          // code of several tenants shares the host
	Profile     Profile       // zero = Strict
	Lifetime    time.Duration // zero = 300 s; rounded up to whole seconds; negative is refused
	MaxLifetime time.Duration // how far from creation Sandbox.Extend may move the end; zero = Lifetime: not at all
	Resources   Resources     // zero fields = 1000 millis, 512 MiB, 256 MiB, 256 PIDs
	Network     Network       // zero = reaches nothing
	Env         map[string]string
	Labels      map[string]string
	Tenant      string // who the run belongs to; recorded, and a native label
	Owner       string // who answers for it; zero = the Runtime's owner
	Detached    bool   // outlives its creator, up to its deadline
}

// floorFor is the isolation that trust alone requires.
func floorFor(t Trust, multiTenant bool) Isolation {
	switch {
	case t.IsUntrusted() && multiTenant:
		return MicroVM
	case t.IsUntrusted():
		return UserKernel
	}
	return Unverified
}

// resolve turns the wish into an order for the backend that info describes.
// It decides every default in one place and does no I/O.
func (s Spec) resolve(info driver.Info) (driver.Spec, error) {
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	if s.Template != nil {
		t, err := s.Template.Resolve()
		check(err)
		check(s.overlay(t, info))
	}
	o := driver.Spec{
		Image: s.Image, Trust: s.Trust, MultiTenant: s.MultiTenant, Profile: s.Profile, Detached: s.Detached,
		Isolation: max(s.Isolation, floorFor(s.Trust, s.MultiTenant)),
		Env:       maps.Clone(s.Env), Labels: maps.Clone(s.Labels),
	}
	if o.Image == "" {
		o.Image = info.DefaultImage
	}
	if o.Image == "" {
		check(driver.Invalid("image", "no image was named, and the backend has no default", `set Image, as "registry/repository@sha256:…"`))
	} else if o.Image != info.DefaultImage {
		_, err := driver.ParseImage(o.Image)
		check(err)
	}
	if o.Profile > Compat {
		check(driver.Invalid("profile", fmt.Sprintf("%d is no profile", o.Profile), "use Strict or Compat"))
	}
	check(s.Trust.Validate())
	var err error
	o.Lifetime, err = resolveLifetime(s.Lifetime)
	check(err)
	o.MaxLifetime, err = s.maxLifetime(o.Lifetime)
	check(err)
	o.Resources, err = s.Resources.Resolve()
	check(err)
	o.Network, err = resolveNetwork(s.Network)
	check(err)
	check(driver.ValidateEnv("env", s.Env))
	check(driver.ValidateLabels("labels", s.Labels))
	check(printable("tenant", s.Tenant))
	check(printable("owner", s.Owner))
	o.Facts.Tenant = s.Tenant
	if s.Template != nil {
		o.Facts.Template, err = s.Template.Digest()
		check(err)
		o.Facts.Reaper = s.Template.Reaper
	}
	return o, driver.Join(errs...)
}

// overlay lays the template t under the wish: what the wish leaves zero is
// the template's, and what it sets may only tighten.
func (s *Spec) overlay(t Template, info driver.Info) error {
	var errs []error
	refuse := func(field, problem string) {
		errs = append(errs, driver.Invalid(field, problem, "leave it to the template, or have the template changed and reviewed"))
	}
	if t.Backend != "" && t.Backend != info.Name {
		refuse("template", fmt.Sprintf("%q was reviewed for the backend %q, not for %q", t.Name, t.Backend, info.Name))
	}
	if s.Image != "" && s.Image != t.Image {
		refuse("image", fmt.Sprintf("%q is not the template's %q", s.Image, t.Image))
	}
	s.Image = t.Image
	s.Isolation = max(s.Isolation, t.Isolation)
	if !s.Trust.Stated() || s.Trust == t.Trust {
		s.Trust = t.Trust
	} else if !s.Trust.IsUntrusted() {
		refuse("trust", "a wish cannot vouch for more than its template does")
	}
	s.MultiTenant = s.MultiTenant || t.MultiTenant
	if s.Profile == Compat && t.Profile == Strict {
		refuse("profile", "the template is strict")
	}
	s.Profile = t.Profile
	if s.Lifetime == 0 {
		s.Lifetime = t.Lifetime
	} else if s.Lifetime > t.Lifetime {
		refuse("lifetime", fmt.Sprintf("%v is longer than the template's %v", s.Lifetime, t.Lifetime))
	}
	if s.MaxLifetime > t.Lifetime {
		refuse("max_lifetime", fmt.Sprintf("%v is longer than the template's lifetime of %v", s.MaxLifetime, t.Lifetime))
	}
	for _, c := range []struct {
		field  string
		wish   *int64
		atMost int64
	}{
		{"cpu_millis", &s.Resources.CPUMillis, t.Resources.CPUMillis},
		{"memory_mib", &s.Resources.MemoryMiB, t.Resources.MemoryMiB},
		{"disk_mib", &s.Resources.DiskMiB, t.Resources.DiskMiB},
		{"pids", &s.Resources.PIDs, t.Resources.PIDs},
	} {
		if *c.wish == 0 {
			*c.wish = c.atMost
		} else if *c.wish > c.atMost {
			refuse("resources."+c.field, fmt.Sprintf("%d is more than the template's %d", *c.wish, c.atMost))
		}
	}
	if len(s.Network.Egress) > 0 || len(s.Network.Expose) > 0 || s.Network.Learn {
		refuse("network", "the template decides what a sandbox may reach")
	}
	if s.Network.Mode != driver.Transparent && s.Network.Mode != t.Network.Mode {
		refuse("network.mode", fmt.Sprintf("%s is not the template's %s", s.Network.Mode, t.Network.Mode))
	}
	s.Network = t.Network
	var err error
	s.Env, err = merge("env", t.Env, s.Env)
	errs = append(errs, err)
	for _, name := range t.Secrets {
		if _, ok := s.Env[name]; ok {
			refuse(fmt.Sprintf("env[%q]", name), "the template declares it as a secret")
		}
	}
	s.Labels, err = merge("labels", t.Labels, s.Labels)
	errs = append(errs, err)
	return driver.Join(errs...)
}

func merge(field string, base, more map[string]string) (map[string]string, error) {
	out := maps.Clone(base)
	if out == nil {
		out = make(map[string]string, len(more))
	}
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(more)) {
		if old, ok := base[k]; ok && old != more[k] {
			errs = append(errs, driver.Invalid(fmt.Sprintf("%s[%q]", field, k), "the template sets another value", "choose another name, or change the template"))
		}
		out[k] = more[k]
	}
	return out, driver.Join(errs...)
}

func resolveLifetime(d time.Duration) (time.Duration, error) {
	if d == 0 {
		return driver.DefaultLifetime, nil
	}
	if d < 0 || d > driver.MaxLifetime {
		return d, lifetimeError(d.String())
	}
	return (d + time.Second - 1).Truncate(time.Second), nil
}

func (s Spec) maxLifetime(lifetime time.Duration) (time.Duration, error) {
	d := s.MaxLifetime
	if d == 0 {
		return lifetime, nil
	}
	if d < lifetime || d > driver.MaxLifetime {
		return d, driver.Invalid("max_lifetime", d.String()+" is not between the lifetime and the longest there is",
			fmt.Sprintf("use %v to %v, or leave it out for a lifetime that cannot be extended", lifetime, driver.MaxLifetime))
	}
	return (d + time.Second - 1).Truncate(time.Second), nil
}

func lifetimeError(got string) error {
	return driver.Invalid("lifetime", got+" is not a lifetime", fmt.Sprintf("use 1s to %s, or leave it out for %s; a sandbox cannot live for ever", driver.MaxLifetime, driver.DefaultLifetime))
}

func resolveNetwork(n Network) (Network, error) {
	rules, err := driver.Canonical(n.Egress)
	n.Egress = rules
	if n.Mode > driver.Proxy {
		err = driver.Join(err, driver.Invalid("network.mode", fmt.Sprintf("%d is no mode", n.Mode), "use Transparent or Proxy"))
	}
	n.Expose = slices.Clone(n.Expose)
	slices.Sort(n.Expose)
	n.Expose = slices.Compact(n.Expose)
	if len(n.Expose) == 0 {
		n.Expose = nil
	} else if n.Expose[0] == 0 {
		err = driver.Join(err, driver.Invalid("network.expose", "0 is not a port", "list ports between 1 and 65535"))
	}
	return n, err
}

func printable(field, v string) error {
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return driver.Invalid(field, fmt.Sprintf("%q is not printable ASCII", v), "use at most 256 printable ASCII characters")
		}
	}
	if len(v) > 256 {
		return driver.Invalid(field, fmt.Sprintf("%d characters are too many", len(v)), "use at most 256 printable ASCII characters")
	}
	return nil
}
