package driver

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Validate refuses an order that no backend could carry out: a field that the
// core should have resolved, or one out of bounds. All problems are joined,
// each with its Field; code: invalid. [Backend.Check] begins with it.
func (s Spec) Validate() error {
	var errs []error
	refuse := func(field, problem, fix string) { errs = append(errs, Invalid(field, problem, fix)) }
	if !labelKey(s.Token) {
		refuse("token", fmt.Sprintf("%q is no instance name", s.Token), "use 1 to 63 letters, digits, '.', '_', '-', unique per wanted sandbox")
	}
	if s.Facts.Instance != s.Token {
		refuse("facts.instance", "the instance is not the token", "set both to the same name")
	}
	if s.Image == "" {
		refuse("image", "is empty", "name an image; only package sandbox fills in a backend's default")
	}
	if _, ok := isolationNames[s.Isolation]; !ok {
		refuse("isolation", fmt.Sprintf("%v is no tier", s.Isolation), `use "container", "user-kernel" or "microvm"`)
	}
	if s.Profile > Compat {
		refuse("profile", fmt.Sprintf("%v is no profile", s.Profile), `use "strict" or "compat"`)
	}
	if s.Network.Mode > Proxy {
		refuse("network.mode", fmt.Sprintf("%v is no mode", s.Network.Mode), `use "transparent" or "proxy"`)
	}
	if s.Lifetime < time.Second || s.Lifetime > MaxLifetime || s.Lifetime%time.Second != 0 {
		refuse("lifetime", fmt.Sprintf("%v is not whole seconds between 1s and %v", s.Lifetime, MaxLifetime), `set lifetime, as "300s"; nothing lives for ever`)
	}
	if m := s.MaxLifetime; m != 0 && (m < s.Lifetime || m > MaxLifetime || m%time.Second != 0) {
		refuse("max_lifetime", fmt.Sprintf("%v is not whole seconds between the lifetime %v and %v", m, s.Lifetime, MaxLifetime),
			"leave it out for a lifetime that cannot be extended")
	}
	if full, err := s.Resources.Resolve(); err != nil {
		errs = append(errs, err)
	} else if full != s.Resources {
		refuse("resources", "a cap is not set", "resolve the order with Resources.Resolve")
	}
	if rules, err := Canonical(s.Network.Egress); err != nil {
		errs = append(errs, err)
	} else if len(rules) != len(s.Network.Egress) || len(rules) > 0 && !reflect.DeepEqual(rules, s.Network.Egress) {
		refuse("network.egress", "the rules are not canonical", "pass them through driver.Canonical")
	}
	errs = append(errs, s.Trust.Validate(), ValidateEnv("env", s.Env), ValidateLabels("labels", s.Labels))
	return Join(errs...)
}

// Supports refuses what spec asks for and i does not declare, and a floor that
// i does not reach. All problems are joined, each with its Field; code:
// unsupported.
func (i Info) Supports(spec Spec) error {
	var errs []error
	need := func(c Capability, field string, asked bool, fix string) {
		if asked && !i.Can(c) {
			errs = append(errs, &Error{Code: CodeUnsupported, Backend: i.Name, Field: field, Hint: fix,
				Err: fmt.Errorf("the backend does not declare %q", string(c))})
		}
	}
	need(CanStrict, "profile", spec.Profile == Strict, `set profile to "compat", or choose another backend`)
	need(CanCompat, "profile", spec.Profile == Compat, `set profile to "strict", or choose another backend`)
	need(CanDetach, "detached", spec.Detached, "leave detached out, or choose another backend")
	need(CanExtend, "max_lifetime", spec.LongestLife() > spec.Lifetime, "leave max_lifetime out, or choose another backend")
	need(CanMultiTenant, "multi_tenant", spec.MultiTenant, "leave multi_tenant out, or choose another backend")
	need(CanExpose, "network.expose", len(spec.Network.Expose) > 0, "remove the exposed ports, or choose another backend")
	transparent := spec.Network.Mode == Transparent
	need(CanEgressProxy, "network.mode", !transparent && len(spec.Network.Egress) > 0, `set mode to "transparent", or choose another backend`)
	need(CanLearn, "network.learn", spec.Network.Learn, "leave learn out, or choose another backend")
	for n, r := range spec.Network.Egress {
		at := fmt.Sprintf("network.egress[%d]", n)
		need(CanEgressHost, at+".host", transparent && r.Host != "", "remove the rule, or choose another backend")
		need(CanEgressCIDR, at+".cidr", transparent && r.Host == "", "remove the rule, or choose another backend")
	}
	if !i.Isolation.Satisfies(spec.Isolation) {
		errs = append(errs, &Error{Code: CodeUnsupported, Backend: i.Name, Field: "isolation", Hint: "lower the floor, or choose a backend that reaches it",
			Err: fmt.Errorf("a sandbox may turn out %v, and the floor is %v", i.Isolation, spec.Isolation)})
	}
	return Join(errs...)
}

// Validate refuses a command that no backend could run. All problems are
// joined, each with its Field; code: invalid.
func (c Cmd) Validate() error {
	var errs []error
	if len(c.Args) == 0 || c.Args[0] == "" {
		errs = append(errs, Invalid("args", "there is no program", "give the program and its arguments as a list"))
	}
	for n, a := range c.Args {
		if strings.IndexByte(a, 0) >= 0 {
			errs = append(errs, Invalid(fmt.Sprintf("args[%d]", n), "contains a NUL byte", "pass binary data in a file or by stdin"))
		}
	}
	if strings.IndexByte(c.Dir, 0) >= 0 {
		errs = append(errs, Invalid("dir", "contains a NUL byte", "give a POSIX path"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, Invalid("timeout", fmt.Sprintf("%v is not positive", c.Timeout), `set timeout, as "300s"; no command runs for ever`))
	}
	errs = append(errs, ValidateEnv("env", c.Env))
	secrets := make(map[string]string, len(c.Secrets))
	for k, s := range c.Secrets {
		secrets[k] = s.Reveal()
		if _, both := c.Env[k]; both {
			errs = append(errs, Invalid(fmt.Sprintf("secrets[%q]", k), "is in env too", "give it once"))
		}
	}
	errs = append(errs, ValidateEnv("secrets", secrets))
	return Join(errs...)
}
