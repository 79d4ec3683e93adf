package docker

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func testOrder(t *testing.T, spec driver.Spec) order {
	t.Helper()
	d, err := divide(spec.Resources.DiskMiB, spec.Profile, []string{"/data"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	return order{spec: spec, image: &image{id: testImage, unset: steering([]string{"LD_PRELOAD=x", "A=b"})}, helper: &helper{volume: "sandboxio-guest-x"},
		disk: d, uid: 4_000_000, created: now, deadline: now.Add(spec.Lifetime), expires: now.Add(spec.LongestLife())}
}

func TestTheContainerIsWhatWasOrdered(t *testing.T) {
	spec := testSpec("one")
	spec.Env = map[string]string{"CANARY": "canary"}
	spec.Labels = map[string]string{"team": "a"}
	opts := testOrder(t, spec).options()
	c, h := opts.Config, opts.HostConfig
	if opts.Name != "sandboxio-one-1700000060" {
		t.Errorf("name %s", opts.Name)
	}
	for what, ok := range map[string]bool{
		"the image by id":                         c.Image == testImage,
		"the guest as entrypoint":                 slices.Equal(c.Entrypoint, []string{guest.Binary}),
		"root, for the guest":                     c.User == "0:0",
		"no health check":                         slices.Equal(c.Healthcheck.Test, []string{"NONE"}),
		"stdin for one owner":                     c.OpenStdin && c.StdinOnce && c.AttachStdin && !c.Tty,
		"no network":                              h.NetworkMode == "none",
		"a read-only root":                        h.ReadonlyRootfs,
		"all capabilities dropped":                slices.Equal(h.CapDrop, []string{"ALL"}),
		"but the guest's three":                   slices.Equal(h.CapAdd, []string{"SETUID", "SETGID", "KILL"}),
		"no new privileges":                       slices.Contains(h.SecurityOpt, "no-new-privileges:true"),
		"our seccomp profile":                     slices.Contains(h.SecurityOpt, "seccomp="+seccompProfile) && len(seccompProfile) > 1000,
		"memory with the disk in it":              h.Memory == 768<<20,
		"no swap":                                 h.MemorySwap == h.Memory,
		"a pid cap, with the guest's on top":      *h.PidsLimit == 256+guestShare,
		"a cpu cap":                               h.CPUQuota == h.CPUPeriod && h.CPUPeriod == cpuPeriod,
		"the OOM killer on":                       !*h.OomKillDisable,
		"no log":                                  h.LogConfig.Type == "none",
		"removal by the engine":                   h.AutoRemove && h.RestartPolicy.Name == container.RestartPolicyDisabled,
		"an ipc namespace of its own":             h.IpcMode == container.IPCModePrivate,
		"a cgroup namespace too":                  h.CgroupnsMode == container.CgroupnsModePrivate,
		"a small /dev/shm":                        h.ShmSize > 0 && h.ShmSize < 64<<20,
		"no device, host path (M96) or privilege": len(h.Devices) == 0 && len(h.Binds) == 0 && !h.Privileged && len(h.VolumesFrom) == 0 && h.UsernsMode == "" && h.PidMode == "",
		"a tmpfs over the volume":                 strings.Contains(h.Tmpfs["/data"], "uid=4000000") && strings.Contains(h.Tmpfs["/data"], "nosuid,nodev,size="),
		"the guest, read-only":                    len(h.Mounts) == 1 && h.Mounts[0].ReadOnly && h.Mounts[0].Target == guest.Dir && h.Mounts[0].VolumeOptions.NoCopy,
		"the loader's variables gone":             slices.Contains(c.Env, "LD_PRELOAD") && slices.Contains(c.Env, "GODEBUG"),
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
	for _, kv := range c.Env {
		if strings.Contains(kv, "=") {
			t.Errorf("%s is in the container's configuration", kv)
		}
	}
	want := map[string]string{"team": "a", driver.LabelManaged: "true", driver.LabelRole: "sandbox", driver.LabelInstance: "one", driver.LabelOwner: "owner", driver.LabelOwn: "team",
		driver.LabelCreated: "1700000000", driver.LabelMaxExpires: "1700000060"}
	if !maps.Equal(c.Labels, want) {
		t.Errorf("labels %v", c.Labels)
	}
	if limits := h.Ulimits; len(limits) != 2 || limits[0].Name != "core" || limits[0].Hard != 0 || limits[1].Name != "nproc" || limits[1].Hard != 256 {
		t.Errorf("limits %v", limits)
	}

	spec.Detached = true
	c = testOrder(t, spec).options().Config
	if c.OpenStdin || c.StdinOnce || c.AttachStdin || c.AttachStdout || c.Labels[labelDetached] != "true" {
		t.Errorf("detached: %+v", c)
	}
	spec.Profile = driver.Compat
	h = testOrder(t, spec).options().HostConfig
	if h.ReadonlyRootfs || h.StorageOpt["size"] != "128MiB" || h.Memory != 768<<20 {
		t.Errorf("compat: %v %v", h.ReadonlyRootfs, h.StorageOpt)
	}
}

func TestEverySandboxHasAUserOfItsOwn(t *testing.T) {
	seen := map[uint32]bool{}
	for range 1000 {
		u := newUID()
		if u < 1<<20 || u >= 2_000_000_000 || seen[u] {
			t.Fatalf("uid %d", u)
		}
		seen[u] = true
	}
}

func TestNamesHoldTheDeadline(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for _, instance := range []string{"a", "a-b", "a-1", "x.y_z", strings.Repeat("n", 64)} {
		got, deadline, ok := parseName("/" + containerName(instance, at))
		if !ok || got != instance || !deadline.Equal(at) {
			t.Errorf("%s: %s %v %v", instance, got, deadline, ok)
		}
	}
	for _, name := range []string{"", "sandboxio", "sandboxio-", "sandboxio-x", "sandboxio-x-", "sandboxio-x-y", "sandboxio--1", "sandboxio-x-0", "sandboxio-x-01", "sandboxio-x-+1", "other-x-1", "sandboxio-x-99999999999999999999"} {
		if _, _, ok := parseName(name); ok {
			t.Errorf("%q is taken for a sandbox's name", name)
		}
	}
}

func TestTheLabelBoundsWhatANameSays(t *testing.T) {
	latest := time.Unix(1_700_000_000, 0)
	labels := map[string]string{driver.LabelMaxExpires: "1700000000", driver.LabelInstance: "x"}
	for name, c := range map[string]struct {
		name string
		want time.Time
	}{
		"its own name":              {"/sandboxio-x-1600000000", time.Unix(1_600_000_000, 0)},
		"renamed by somebody":       {"/renamed", latest},
		"under another's name":      {"/sandboxio-y-1600000000", latest},
		"beyond what was granted":   {"/sandboxio-x-1700000001", latest},
		"at the last second of all": {"/sandboxio-x-1700000000", latest},
	} {
		if d, expires, ok := deadlineOf(c.name, labels); !ok || !d.Equal(c.want) || !expires.Equal(latest) {
			t.Errorf("%s: %v %v %v", name, d, expires, ok)
		}
	}
	for _, label := range []string{"", "soon", "-1", "0"} {
		if _, _, ok := deadlineOf("sandboxio-x-1600000000", map[string]string{driver.LabelMaxExpires: label, driver.LabelInstance: "x"}); ok {
			t.Errorf("%q bounds nothing", label)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("/sandboxio-a-b-1700000000")
	f.Add("sandboxio--1")
	f.Fuzz(func(t *testing.T, s string) {
		if instance, deadline, ok := parseName(s); ok && containerName(instance, deadline) != strings.TrimPrefix(s, "/") {
			t.Errorf("%q is read as %q at %v", s, instance, deadline)
		}
	})
}

func TestAScheduleIsReadBackFromItsArguments(t *testing.T) {
	s := driver.Schedule{Name: "n", Interval: time.Minute, Labels: map[string]string{"a": `"--schedule"`}, MaxAge: time.Hour, DryRun: true}
	args, err := keeperArgs(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := scheduleIn(args)
	if err != nil || got.Name != s.Name || got.Interval != s.Interval || !maps.Equal(got.Labels, s.Labels) || got.MaxAge != s.MaxAge || !got.DryRun {
		t.Errorf("%+v %v", got, err)
	}
	for _, args := range [][]string{nil, {"keeper"}, {"--schedule"}, {"--schedule", "{"}} {
		if _, err := scheduleIn(args); err == nil {
			t.Errorf("%v holds a schedule", args)
		}
	}
	for name, bad := range map[string]driver.Schedule{
		"no name": {Interval: time.Minute}, "a path": {Name: "../x", Interval: time.Minute}, "neither": {Name: "n"}, "both": {Name: "n", Interval: time.Minute, Cron: "* * * * *"},
		"too often": {Name: "n", Interval: time.Millisecond}, "negative": {Name: "n", Interval: -time.Minute}, "a negative age": {Name: "n", Interval: time.Minute, MaxAge: -1},
	} {
		for _, p := range driver.Problems(validateSchedule(bad)) {
			if p.Code != driver.CodeInvalid || p.Field == "" || p.Hint == "" {
				t.Errorf("%s: %#v", name, p)
			}
		}
		if validateSchedule(bad) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
