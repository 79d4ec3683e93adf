// Package mutant holds backends that lie: each wraps a real one and breaks one
// promise. They judge the judge: the suite of package drivertest must fail
// each by exactly the checks that its lie concerns, on a fake as on a real
// provider.
package mutant

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

// Mutant is one lie.
type Mutant struct {
	Name string // "it ignores a command's timeout"

	// Lie wraps a backend. The harness says its programs.
	Lie func(b driver.Backend, h drivertest.Harness) driver.Backend

	// Fails are the names of the checks that it must fail, and no others.
	// Those that do not apply to the backend are left out of account.
	Fails []string
}

// All lists every mutant. Each works around any backend that can be told the
// lie; [Mutant.Possible] tells which can.
func All() []Mutant {
	return slices.Concat(lifecycle, finding, exec, streams, files, variables, orders, proxies, honesty)
}

// Possible reports whether the lie can be told by such a backend: a policy
// that is refused anyway cannot be ignored.
func (m Mutant) Possible(b driver.Backend, h drivertest.Harness) bool {
	info, lied := b.Info(), m.Lie(b, h).Info()
	return slices.ContainsFunc(drivertest.Checks(), func(c drivertest.Check) bool {
		return slices.Contains(m.Fails, c.Name) && c.Applies(lied)
	}) && (!strings.Contains(m.Name, "network") || info.Can(driver.CanEgressCIDR)) &&
		(!strings.Contains(m.Name, "strict") || info.Can(driver.CanCompat))
}

// Judge runs the suite over the mutant. It returns nil if exactly the checks
// that must fail do.
func Judge(ctx context.Context, b driver.Backend, h drivertest.Harness, m Mutant) error {
	lying := h
	lying.Open = func(ctx context.Context) (driver.Backend, error) {
		second, err := h.Open(ctx)
		if err != nil {
			return nil, err
		}
		return m.Lie(second, h), nil
	}
	liar := m.Lie(b, h)
	var problems []string
	for _, r := range drivertest.Examine(ctx, liar, lying) {
		must := slices.Contains(m.Fails, r.Check.Name)
		switch failed := r.Verdict == drivertest.Failed; {
		case must && !failed:
			problems = append(problems, fmt.Sprintf("it passes %q (%s)", r.Check.Name, r.Verdict))
		case failed && !must:
			problems = append(problems, fmt.Sprintf("it fails %q: %v", r.Check.Name, r.Err))
		}
	}
	for _, name := range m.Fails {
		if !slices.ContainsFunc(drivertest.Checks(), func(c drivertest.Check) bool { return c.Name == name }) {
			problems = append(problems, fmt.Sprintf("there is no check %q", name))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s: %s", m.Name, strings.Join(problems, "\n\t"))
	}
	return nil
}

// Honest is the control: the wrapping of the mutants without a lie.
func Honest() Mutant { return Mutant{Name: "it tells the truth", Lie: wrap(lie{})} }
