package drivertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// second opens one more backend for the rest of the check.
func (t *trial) second(f func(b driver.Backend) error) error {
	b, err := t.h.Open(t)
	if err != nil {
		return fmt.Errorf("open a second backend: %w", err)
	}
	return errors.Join(f(b), b.Close())
}

var finding = []Check{
	{Name: "list: sandboxes are found by their labels and facts, and no others (M125)", Capability: driver.CanList, Kind: Proof, Func: with(func(t *trial) error {
		one, two := t.spec(), t.spec()
		one.Labels["drivertest.n"], two.Labels["drivertest.n"] = "1", "2"
		one.Facts.Tenant, two.Facts.Tenant = "t-"+one.Token, "t-"+one.Token
		for _, spec := range []driver.Spec{one, two} {
			if _, err := t.createFrom(spec); err != nil {
				return err
			}
		}
		for _, c := range []struct {
			by   map[string]string
			want []string
		}{
			{map[string]string{"drivertest": one.Token}, []string{one.Token}},
			{map[string]string{driver.LabelInstance: two.Token}, []string{two.Token}},
			{map[string]string{driver.LabelTenant: one.Facts.Tenant}, []string{one.Token, two.Token}},
			{map[string]string{driver.LabelTenant: one.Facts.Tenant, "drivertest.n": "2"}, []string{two.Token}},
			{map[string]string{"drivertest": one.Token, "drivertest.n": "2"}, nil},
			{map[string]string{"drivertest": one.Token, "drivertest.n": ""}, nil},
			{map[string]string{"drivertest": one.Token, driver.LabelRole: driver.RoleSandbox, driver.LabelManaged: "true"}, []string{one.Token}},
		} {
			var got []string
			for st, err := range t.b.List(t, c.by) {
				if err != nil {
					return fmt.Errorf("list %v: %w", c.by, err)
				}
				got = append(got, st.Facts.Instance)
				spec := one
				if st.Facts.Instance == two.Token {
					spec = two
				}
				if st.ID == "" || st.Deadline.IsZero() || st.State != driver.StateRunning || st.Facts != spec.Facts || !maps.Equal(st.Labels, spec.Labels) {
					return fmt.Errorf("listed by %v: %+v; ordered were %+v, %v", c.by, st, spec.Facts, spec.Labels)
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				return fmt.Errorf("list %v finds %q, want %q", c.by, got, c.want)
			}
		}
		for _, err := range t.b.List(t, map[string]string{driver.LabelTenant: one.Facts.Tenant}) {
			return err // leaving early is allowed
		}
		return nil
	})},
	{Name: "list: the backend tells its own time", Capability: driver.CanList, Kind: Proof, Func: with(func(t *trial) error {
		clock, ok := driver.As[driver.Clock](t.b)
		if !ok {
			return errors.New("it is no driver.Clock")
		}
		now, err := clock.Now(t)
		if skew := time.Since(now).Abs(); err != nil || skew > 30*time.Second {
			return fmt.Errorf("it is %v off, %v", skew, err)
		}
		return nil
	})},
	{Name: "list, undeclared: listing is refused", Capability: driver.CanList, Kind: Refusal, Func: with(func(t *trial) error {
		for _, err := range t.b.List(t, nil) {
			return wantCode("list", err, driver.CodeUnsupported)
		}
		return errors.New("it lists nothing, and says nothing")
	})},
	{Name: "attach: another backend joins a sandbox, uses it and ends it", Capability: driver.CanAttach, Kind: Proof, Func: inside(func(t *trial, s driver.Sandbox) error {
		return t.second(func(b driver.Backend) error {
			joined, err := b.Attach(t, s.Status().ID)
			if err != nil {
				return fmt.Errorf("attach: %w", err)
			}
			was, is := s.Status(), joined.Status()
			// Who attaches may have measured nothing; then it is unverified.
			if is.Isolation != driver.Unverified && is.Isolation != was.Isolation {
				return fmt.Errorf("attached, it is %v; created, it was %v", is.Isolation, was.Isolation)
			}
			if is.ID != was.ID || is.Facts != was.Facts || is.Deadline.Sub(was.Deadline).Abs() > 2*time.Second {
				return fmt.Errorf("attached to %+v, which was %+v", is, was)
			}
			if _, err := t.say(joined, Write, "/tmp/joined"); err != nil {
				return fmt.Errorf("a program through the second: %w", err)
			}
			if got, err := t.say(s, Copy, "/tmp/joined"); err != nil || got != "x" {
				return fmt.Errorf("a program through the first: %q, %v", got, err)
			}
			if err := joined.Kill(t); err != nil {
				return fmt.Errorf("kill through the second: %w", err)
			}
			if err := t.gone(s); err != nil {
				return err
			}
			_, err = b.Attach(t, is.ID)
			return wantCode("attaching to what is gone", err, driver.CodeGone, driver.CodeNotFound)
		})
	})},
	{Name: "attach: it creates nothing", Capability: driver.CanAttach, Kind: Proof, Func: with(func(t *trial) error {
		for _, id := range []string{"drivertest-no-such-id", "", "../..", "a b", "-v"} {
			_, err := t.b.Attach(t, id)
			if err := wantCode(fmt.Sprintf("attach to %q", id), err, driver.CodeNotFound, driver.CodeInvalid); err != nil {
				return err
			}
		}
		return nil
	})},
	{Name: "attach, undeclared: it is refused", Capability: driver.CanAttach, Kind: Refusal, Func: inside(func(t *trial, s driver.Sandbox) error {
		_, err := t.b.Attach(t, s.Status().ID)
		return wantCode("attach", err, driver.CodeUnsupported)
	})},
	{Name: "detach: a detached sandbox and its programs outlive their backend", Capability: driver.CanDetach, Kind: Proof, Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Detached = true
		var id string
		err := t.second(func(b driver.Backend) error {
			s, err := b.Create(t, spec)
			if err != nil {
				return err
			}
			id = s.Status().ID
			cmd := t.cmd(Beat, "/tmp/beat")
			cmd.Detached = true
			_, err = s.Start(t, cmd)
			return err
		})
		if id == "" {
			return err
		}
		s, aerr := t.b.Attach(t, id)
		if aerr != nil {
			return errors.Join(err, fmt.Errorf("attach after its creator left: %w", aerr))
		}
		t.keep(s)
		if err != nil {
			return err
		}
		if !s.Status().Detached {
			return fmt.Errorf("its status is %+v", s.Status())
		}
		return t.beats(s, "/tmp/beat")
	})},
	refused(driver.CanDetach, "detached", func(s *driver.Spec) { s.Detached = true }),
}
