package wish

import (
	"fmt"
	"math"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Order is what the policy judges of a template: every default filled in, the
// rules as they were written, so that findings point at them.
func Order(t sandbox.Template, info driver.Info) driver.Spec {
	if t.Image == "" {
		t.Image = info.DefaultImage
	}
	if t.Lifetime == 0 {
		t.Lifetime = driver.DefaultLifetime
	}
	if full, err := t.Resources.Resolve(); err == nil {
		t.Resources = full
	}
	return driver.Spec{
		Image: t.Image, Isolation: t.Isolation, Trust: t.Trust, MultiTenant: t.MultiTenant, Profile: t.Profile, Lifetime: t.Lifetime,
		Resources: t.Resources, Network: t.Network, Env: t.Env, Labels: t.Labels, Facts: driver.Facts{Reaper: t.Reaper},
	}
}

// Duration reads "300s", "5m", "1h30m"; an explicit zero is refused. Code:
// invalid, with the given field.
func Duration(field, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, driver.Invalid(field, fmt.Sprintf("%q is not a duration above zero", text), `write a number and a unit, as "300s", "5m" or "1h30m"`)
	}
	return d, nil
}

// Port refuses what is no port, since one left out would mean the default
// ones. Code: invalid.
func Port(field string, n int64) (uint16, error) {
	if n < 1 || n > math.MaxUint16 {
		return 0, driver.Invalid(field, fmt.Sprintf("%d is not a port", n), "list ports between 1 and 65535, or leave ports out for 80 and 443")
	}
	return uint16(n), nil
}

// NoPorts refuses an empty list of ports, which would say that nothing is
// allowed and mean the default ones. Code: invalid.
func NoPorts(field string) error {
	return driver.Invalid(field, "the list of ports is empty", "list ports between 1 and 65535, or leave ports out for 80 and 443")
}

// Rule refuses what package driver's canonical form refuses, told for the rule
// at the given field alone, so that one bad rule does not hide what is wrong
// with another. Code: invalid.
func Rule(field string, r driver.Rule) error {
	_, err := driver.Canonical([]driver.Rule{r})
	if err == nil {
		return nil
	}
	var errs []error
	for _, p := range driver.Problems(err) {
		moved := *p
		moved.Field = field + p.Field[min(len("network.egress[0]"), len(p.Field)):]
		errs = append(errs, &moved)
	}
	return driver.Join(errs...)
}
