package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/system"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// gvisor makes a report what gVisor's kernel shows.
func gvisor(r guest.Report) guest.Report {
	r.Release, r.Kernel = "4.19.0-gvisor", "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016"
	r.Cgroup.MemorySwap, r.Cgroup.PIDs = -2, r.NProc+1
	for i, m := range r.Mounts {
		switch {
		case m.Point == "/dev":
			r.Mounts[i].Type = "dev"
		case m.Type == "tmpfs":
			r.Mounts[i].Options = []string{"rw", "nosuid"}
		}
	}
	return r
}

func TestARuntimeIsHeldToItsName(t *testing.T) {
	for name, c := range map[string]struct {
		runtime string
		report  func(guest.Report) guest.Report
		tier    driver.Isolation
		refused string
	}{
		"the default is a container":                 {"", nil, driver.Container, ""},
		"the default may turn out to be gVisor":      {"", gvisor, driver.UserKernel, ""},
		"gVisor is gVisor":                           {"runsc", gvisor, driver.UserKernel, ""},
		"gVisor by another name is still measured":   {"kata", gvisor, driver.UserKernel, ""},
		"what is only called gVisor is refused":      {"runsc", nil, 0, "called user-kernel, and inside it is container"},
		"a runtime that the engine lacks is refused": {"gvisor", gvisor, 0, `no runtime "gvisor"`},
		"a release that only ends like gVisor's is refused": {"runsc", func(r guest.Report) guest.Report {
			r.Release = "6.1.0-gvisor"
			return r
		}, 0, "inside it is container"},
		"gVisor without a cap of processes is refused": {"runsc", func(r guest.Report) guest.Report {
			r = gvisor(r)
			r.Cgroup.PIDs = -1
			return r
		}, 0, "pids"},
		"gVisor without our filter is refused": {"runsc", func(r guest.Report) guest.Report {
			r = gvisor(r)
			r.Seccomp = 0
			return r
		}, 0, "seccomp"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.report = c.report
			f.info = map[string]any{"Runtimes": map[string]any{"runc": map[string]any{}, "runsc": map[string]any{}, "kata": map[string]any{}}}
			b := f.open(t)
			b.opts.Runtime = c.runtime
			sb, err := b.Create(t.Context(), testSpec("one"))
			if c.refused != "" {
				if !errors.Is(err, driver.CodeUnsupported) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v", err)
				}
				if left := f.left(); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if st := sb.Status(); st.Isolation != c.tier || st.Evidence.Detail == "" {
				t.Errorf("%v: %+v", st.Isolation, st.Evidence)
			}
			f.mu.Lock()
			got := f.containers[sb.Status().ID].Host.Runtime
			f.mu.Unlock()
			if got != c.runtime {
				t.Errorf("the container's runtime is %q", got)
			}
			if err := sb.Kill(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestThePlanTellsTheRuntime(t *testing.T) {
	spec := testSpec("one")
	spec.Isolation = driver.UserKernel
	b, err := Open(t.Context(), Options{Runtime: "runsc"})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := b.Check(spec)
	if err != nil || plan.Isolation != driver.UserKernel {
		t.Fatalf("%+v, %v", plan, err)
	}
	told := map[string]driver.Mechanism{}
	for _, m := range plan.Caps {
		told[m.Name] = m
	}
	if !strings.Contains(told["syscalls"].By, "runsc") || !strings.Contains(told["memory"].Limits, "whole sandbox") || !strings.Contains(told["pids"].By, "gVisor") {
		t.Errorf("%+v", told)
	}
	if b, err = Open(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Check(spec); !errors.Is(err, driver.CodeUnsupported) || !strings.Contains(err.Error(), `"runsc"`) {
		t.Errorf("%v", err)
	}
	spec.Isolation = driver.MicroVM
	if _, err := b.Check(spec); !errors.Is(err, driver.CodeUnsupported) || strings.Contains(err.Error(), `"runsc"`) {
		t.Errorf("%v", err)
	}
}

func TestRegisteredNamesWhatThereIs(t *testing.T) {
	err := Options{Runtime: "runsc"}.registered(system.Info{Runtimes: map[string]system.RuntimeWithStatus{"runc": {}, "crun": {}}})
	e, ok := errors.AsType[*driver.Error](err)
	if !ok || e.Field != "runtime" || e.Hint == "" || !strings.Contains(err.Error(), "crun, runc") {
		t.Errorf("%#v", err)
	}
}
