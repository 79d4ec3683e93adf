package docker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestCreateHandsOverWhatWasAttested(t *testing.T) {
	f := newFake(t)
	sb, err := f.open(t).Create(limited(t, 20*time.Second), testSpec("one"))
	if err != nil {
		t.Fatal(err)
	}
	st := sb.Status()
	if st.Isolation != driver.Container || st.Evidence.Source != "probe" || st.State != driver.StateRunning {
		t.Errorf("status %+v", st)
	}
	if d := time.Until(st.Deadline); d < 55*time.Second || d > 62*time.Second {
		t.Errorf("deadline in %v", d)
	}
	if err := sb.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := f.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := sb.Kill(t.Context()); err != nil {
		t.Errorf("killing one that is gone: %v", err)
	}
}

// createCalls are the calls of one Create, in order.
var createCalls = map[bool][]string{
	false: {"ping", "info", "image", "volume", "create", "copy", "attach", "start"},
	true:  {"ping", "info", "image", "volume", "create", "copy", "start", "exec", "execstart"},
}

func TestM119AFailedCreateLeavesNothing(t *testing.T) {
	for detached, calls := range createCalls {
		for _, call := range calls {
			for name, how := range map[string]fault{"refused": refuse, "dropped": drop, "answer lost": lose} {
				t.Run(strings.Join([]string{map[bool]string{true: "detached", false: "owned"}[detached], call, name}, "/"), func(t *testing.T) {
					f := newFake(t)
					f.fault = func(c string, _ http.ResponseWriter) fault {
						if c == call {
							return how
						}
						return none
					}
					spec := testSpec("one")
					spec.Detached = detached
					_, err := f.open(t).Create(limited(t, 20*time.Second), spec)
					if err == nil {
						t.Fatal("it succeeded")
					}
					if errors.Is(err, driver.CodeLeaked) {
						t.Errorf("it says leaked, though it could remove all: %v", err)
					}
					var e *driver.Error
					if !errors.As(err, &e) || e.Backend != Name || e.Hint == "" {
						t.Errorf("not an error to act on: %#v", err)
					}
					if left := f.left(); len(left) > 0 {
						t.Errorf("left: %v", left)
					}
				})
			}
		}
	}
}

func TestM176CancellingACreateLeavesNothing(t *testing.T) {
	for detached, calls := range createCalls {
		for _, call := range append(slices.Clone(calls), "wait") {
			for _, how := range []fault{hang, none} { // while the call hangs, or just after it was done
				name := map[bool]string{true: "detached", false: "owned"}[detached] + "/" + call + map[fault]string{hang: "/during", none: "/after"}[how]
				t.Run(name, func(t *testing.T) {
					f := newFake(t)
					ctx, cancel := context.WithCancel(limited(t, 30*time.Second))
					defer cancel()
					f.fault = func(c string, _ http.ResponseWriter) fault {
						if c != call {
							return none
						}
						if how == hang {
							time.AfterFunc(10*time.Millisecond, cancel)
						}
						return how
					}
					f.after = func(c string) {
						if c == call && how == none {
							cancel()
						}
					}
					spec := testSpec("one")
					spec.Detached = detached
					sb, err := f.open(t).Create(ctx, spec)
					if err == nil {
						// The call was done before anybody noticed: then it was handed over in full.
						if kerr := sb.Kill(t.Context()); kerr != nil {
							t.Fatal(kerr)
						}
					} else if !errors.Is(err, context.Canceled) || driver.CodeOf(err) != "" {
						t.Errorf("not the context's own error: %v", err)
					}
					if left := f.left(); len(left) > 0 {
						t.Errorf("left: %v", left)
					}
				})
			}
		}
	}
}

func TestAnEngineThatCannotRemoveIsReportedAsALeak(t *testing.T) {
	f := newFake(t)
	f.fault = func(c string, _ http.ResponseWriter) fault {
		if c == "start" || c == "remove" {
			return refuse
		}
		return none
	}
	b := f.open(t)
	b.removeLimit = 300 * time.Millisecond
	_, err := b.Create(limited(t, 20*time.Second), testSpec("one"))
	if !errors.Is(err, driver.CodeLeaked) {
		t.Fatalf("not leaked: %v", err)
	}
	if text := err.Error(); !strings.Contains(text, f.find(f.left()[0]).ID) || !strings.Contains(text, "sandboxio reap --kill") {
		t.Errorf("it names neither container nor command: %v", err)
	}
}

func TestM116RemovalIsSeenThrough(t *testing.T) {
	t.Run("the engine is removing it already", func(t *testing.T) {
		f := newFake(t)
		b := f.open(t)
		sb, err := b.Create(limited(t, 20*time.Second), testSpec("one"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		f.fault = func(c string, w http.ResponseWriter) fault {
			if c == "remove" {
				if n++; n < 4 {
					f.fail(w, 409, "removal of container is already in progress")
					return answered
				}
			}
			return none
		}
		if err := sb.Kill(t.Context()); err != nil || len(f.left()) > 0 {
			t.Errorf("%v, left %v", err, f.left())
		}
	})
	t.Run("the engine says removed and still has it", func(t *testing.T) {
		f := newFake(t)
		b := f.open(t)
		b.removeLimit = 200 * time.Millisecond
		sb, err := b.Create(limited(t, 20*time.Second), testSpec("one"))
		if err != nil {
			t.Fatal(err)
		}
		f.fault = func(c string, w http.ResponseWriter) fault {
			if c == "remove" {
				w.WriteHeader(204)
				return answered
			}
			return none
		}
		if err := sb.Kill(t.Context()); !errors.Is(err, driver.CodeLeaked) {
			t.Errorf("not leaked: %v", err)
		}
	})
}

func TestAGuestThatDiesIsExplained(t *testing.T) {
	f := newFake(t)
	f.guestDies = true
	_, err := f.open(t).Create(limited(t, 20*time.Second), testSpec("one"))
	if err == nil || !strings.Contains(err.Error(), "panic") || !strings.Contains(err.Error(), "exited with 70") {
		t.Errorf("it does not say how: %v", err)
	}
	if left := f.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAControlThatDoesNotHoldDestroys(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*guest.Report)
		says  string
	}{
		"no seccomp filter":         {func(r *guest.Report) { r.Seccomp = 0 }, "seccomp"},
		"privileges can be gained":  {func(r *guest.Report) { r.NoNewPrivs = 0 }, "no-new-privileges"},
		"a capability":              {func(r *guest.Report) { r.CapEff = 1 << 21 }, "effective capabilities"},
		"a bounding capability":     {func(r *guest.Report) { r.CapBnd |= 1 << 21 }, "bounding capabilities"},
		"the workload is root":      {func(r *guest.Report) { r.UIDs = []uint32{0, 0, 0, 0} }, "user and group"},
		"a group of root's":         {func(r *guest.Report) { r.Groups = []uint32{0} }, "supplementary groups"},
		"an inherited descriptor":   {func(r *guest.Report) { r.FDs = []int64{0, 1, 2, 7} }, "open file descriptors"},
		"a network interface":       {func(r *guest.Report) { r.Interfaces = []string{"eth0", "lo"} }, "interfaces"},
		"a route":                   {func(r *guest.Report) { r.Routes = 1 }, "routes"},
		"a writable root":           {func(r *guest.Report) { r.RootReadOnly = false }, "read-only root"},
		"no memory cap (M37)":       {func(r *guest.Report) { r.Cgroup.Memory = guest.Unlimited }, "memory"},
		"swap":                      {func(r *guest.Report) { r.Cgroup.MemorySwap *= 2 }, "memory and swap"},
		"no pids cap (M37)":         {func(r *guest.Report) { r.Cgroup.PIDs = guest.Unlimited }, "pids"},
		"no cpu cap (M37)":          {func(r *guest.Report) { r.Cgroup.CPUQuota = guest.Unlimited }, "cpu"},
		"a kernel door":             {func(r *guest.Report) { r.Doors = []string{"vsock"} }, "kernel doors"},
		"a dumpable PID 1":          {func(r *guest.Report) { r.PID1Dumpable = 1 }, "dumpable"},
		"PID 1 with more":           {func(r *guest.Report) { r.PID1CapEff = ^uint64(0) }, "PID 1's capabilities"},
		"no deadline":               {func(r *guest.Report) { r.Deadline = 0 }, "deadline"},
		"a deadline far away":       {func(r *guest.Report) { r.Deadline += int64(time.Hour) }, "deadline"},
		"nproc not lowered":         {func(r *guest.Report) { r.NProc = guest.Unlimited }, "processes"},
		"core dumps":                {func(r *guest.Report) { r.Core = guest.Unlimited }, "core size"},
		"a larger /work":            {func(r *guest.Report) { mountAt(r, "/work").Bytes *= 2 }, "size of /work"},
		"no /tmp":                   {func(r *guest.Report) { mountAt(r, "/tmp").Point = "/other" }, "/tmp"},
		"devices in /work":          {func(r *guest.Report) { mountAt(r, "/work").Options = []string{"rw", "nosuid"} }, "nodev"},
		"a writable mount":          {func(r *guest.Report) { mountAt(r, guest.Dir).Point = "/data" }, "/data"},
		"a writable guest":          {func(r *guest.Report) { mountAt(r, guest.Dir).Options = []string{"rw"} }, "guest's own mount"},
		"a disk mounted over /work": {func(r *guest.Report) { r.Mounts = append(r.Mounts, guest.Mount{Point: "/work", Type: "ext4"}) }, "/work"},
		"a larger /dev/shm":         {func(r *guest.Report) { mountAt(r, "/dev/shm").Bytes = 64 << 20 }, "/dev/shm"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.report = func(r guest.Report) guest.Report {
				c.spoil(&r)
				if name == "a writable mount" {
					mountAt(&r, "/data").Options = []string{"rw"}
				}
				return r
			}
			_, err := f.open(t).Create(limited(t, 20*time.Second), testSpec("one"))
			if !errors.Is(err, driver.CodeUnsupported) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "expected") {
				t.Errorf("%v", err)
			}
			if left := f.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func mountAt(r *guest.Report, p string) *guest.Mount {
	i := slices.IndexFunc(r.Mounts, func(m guest.Mount) bool { return m.Point == p })
	return &r.Mounts[i]
}

func TestWhatTheEngineLacksIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fakeEngine)
		code   driver.Code
		hint   string
	}{
		"the image":                 {func(f *fakeEngine) { f.images = nil }, driver.CodeNotFound, "docker load"},
		"the helper volume":         {func(f *fakeEngine) { f.volumes = nil }, driver.CodeNotFound, "sandboxio setup docker"},
		"the guest in the volume":   {func(f *fakeEngine) { f.binary = nil }, driver.CodeConflict, "sandboxio setup docker"},
		"the guest's own bytes":     {func(f *fakeEngine) { f.binary = []byte("something else") }, driver.CodeConflict, "docker volume rm"},
		"a volume that is a volume": {func(f *fakeEngine) { bindVolume(f) }, driver.CodeConflict, "docker volume rm"},
		"the memory cap (M37)":      {func(f *fakeEngine) { f.info = map[string]any{"MemoryLimit": false} }, driver.CodeUnsupported, "memory"},
		"the swap cap (M37)":        {func(f *fakeEngine) { f.info = map[string]any{"SwapLimit": false} }, driver.CodeUnsupported, "swapaccount=1"},
		"the pids cap (M37)":        {func(f *fakeEngine) { f.info = map[string]any{"PidsLimit": false} }, driver.CodeUnsupported, "pids"},
		"the cpu cap (M37)":         {func(f *fakeEngine) { f.info = map[string]any{"CpuCfsQuota": false} }, driver.CodeUnsupported, "CONFIG_CFS_BANDWIDTH"},
		"seccomp":                   {func(f *fakeEngine) { f.info = map[string]any{"SecurityOptions": []string{}} }, driver.CodeUnsupported, "seccomp"},
		"ids, being rootless (M37)": {func(f *fakeEngine) {
			f.info = map[string]any{"SecurityOptions": []string{"name=seccomp", "name=rootless"}}
		}, driver.CodeUnsupported, "rootless"},
		"a cap, and only warns (M37)": {func(f *fakeEngine) {
			f.warnings = []string{"Your kernel does not support swap limit capabilities. Limitation discarded."}
		}, driver.CodeUnsupported, "doctor"},
		"an image free of our labels": {func(f *fakeEngine) {
			f.images[testImage] = &container.Config{Labels: map[string]string{"sandboxio.managed": "true"}}
		}, driver.CodeInvalid, "rebuild"},
		"an image whose VOLUMEs are few": {func(f *fakeEngine) {
			f.images[testImage] = &container.Config{Volumes: map[string]struct{}{"/proc/x": {}}}
		}, driver.CodeInvalid, "VOLUME"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			c.change(f)
			_, err := f.open(t).Create(limited(t, 20*time.Second), testSpec("one"))
			if driver.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.hint) {
				t.Errorf("%v", err)
			}
			if left := f.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func bindVolume(f *fakeEngine) {
	for name, v := range f.volumes {
		v.Options = map[string]string{"type": "none", "o": "bind", "device": "/etc"}
		f.volumes[name] = v
	}
}

func TestTheGuestIsReadOnceForEachVolume(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	reads := func() int {
		n := 0
		for _, c := range f.called() {
			if c == "copy" {
				n++
			}
		}
		return n
	}
	for i, token := range []string{"one", "two"} {
		if _, err := b.Create(limited(t, 20*time.Second), testSpec(token)); err != nil {
			t.Fatal(err)
		}
		if reads() != 1 {
			t.Errorf("after %d creates it was read %d times", i+1, reads())
		}
	}
	for name, v := range f.volumes {
		v.CreatedAt = "2026-02-02T00:00:00Z" // made anew
		f.volumes[name] = v
	}
	f.binary = []byte("tampered")
	if _, err := b.Create(limited(t, 20*time.Second), testSpec("three")); !errors.Is(err, driver.CodeConflict) {
		t.Errorf("a volume made anew was trusted: %v", err)
	}
}

func TestNothingIsSentAfterTheCallerLeft(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(limited(t, 30*time.Second))
	defer cancel()
	f.after = func(c string) {
		if c == "image" {
			cancel() // before create is sent
		}
	}
	_, err := f.open(t).Create(ctx, testSpec("one"))
	if !errors.Is(err, context.Canceled) || len(f.left()) > 0 || slices.Contains(f.called(), "start") {
		t.Errorf("%v, left %v", err, f.left())
	}
}

func TestDetachedSandboxesAreReachedByTheBridge(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	spec := testSpec("pet")
	spec.Detached = true
	spec.Env = map[string]string{"A": "canary-in-env"}
	sb, err := b.Create(limited(t, 20*time.Second), spec)
	if err != nil {
		t.Fatal(err)
	}
	c := f.find(sb.Status().ID)
	if c.Config.OpenStdin || c.Config.StdinOnce {
		t.Error("a detached sandbox has a stdin")
	}
	if slices.ContainsFunc(c.Config.Env, func(kv string) bool { return strings.Contains(kv, "canary") }) {
		t.Error("the sandbox's env is in the container's configuration")
	}
	again, err := b.Attach(t.Context(), sb.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	if st := again.Status(); !st.Detached || st.Facts.Owner != "owner" || st.Labels["team"] != "a" || !st.Deadline.Equal(sb.Status().Deadline) {
		t.Errorf("status %+v", st)
	}
}

func TestListJudgesEverythingItself(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	for _, token := range []string{"one", "two"} {
		spec := testSpec(token)
		spec.Labels = map[string]string{"n": token}
		if _, err := b.Create(limited(t, 20*time.Second), spec); err != nil {
			t.Fatal(err)
		}
	}
	// What an image's labels, or a look-alike name, would enlist.
	labels := driver.Facts{Instance: "evil"}.Labels(driver.RoleSandbox, time.Now(), time.Now())
	f.mu.Lock()
	f.containers["evil"] = &fakeContainer{ID: strings.Repeat("e", 64), Name: "sandboxio-evil-1", Config: container.Config{Labels: labels, Entrypoint: []string{"/bin/sh"}}, State: container.StateRunning, exited: make(chan struct{})}
	f.containers["half"] = &fakeContainer{ID: strings.Repeat("f", 64), Name: "sandboxio-half-1", Config: container.Config{Labels: labels, Entrypoint: []string{guest.Binary}}, State: container.StateRunning, exited: make(chan struct{})}
	f.mu.Unlock()

	count := func(labels map[string]string) (n int) {
		for _, err := range b.List(t.Context(), labels) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	// The fake engine ignores filters: M125.
	for _, c := range []struct {
		labels map[string]string
		want   int
	}{{nil, 2}, {map[string]string{"n": "one"}, 1}, {map[string]string{"n": ""}, 0}, {map[string]string{driver.LabelOwner: "owner"}, 2}, {map[string]string{driver.LabelInstance: "two"}, 1}} {
		if got := count(c.labels); got != c.want {
			t.Errorf("%v lists %d, want %d", c.labels, got, c.want)
		}
	}
	for _, id := range []string{strings.Repeat("e", 64), strings.Repeat("f", 64), strings.Repeat("0", 64), "../../images/x", "", "one"} {
		if _, err := b.Attach(t.Context(), id); !errors.Is(err, driver.CodeNotFound) {
			t.Errorf("attach to %q: %v", id, err)
		}
	}
}

func TestASandboxThatEndedIsGone(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	sb, err := b.Create(limited(t, 20*time.Second), testSpec("one"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Attach(t.Context(), sb.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]driver.Sandbox{"its creator": sb, "an attached one": other} {
		if _, err := s.Start(limited(t, 10*time.Second), driver.Cmd{Args: []string{"true"}, Timeout: time.Second}); !errors.Is(err, driver.CodeGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
