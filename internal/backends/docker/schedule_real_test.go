//go:build dockertest

package docker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// withKeeper gives the engine an image for schedules, of the command in
// SANDBOXIO_CLI or one built here.
func withKeeper(t *testing.T, b *Backend) {
	t.Helper()
	cli := os.Getenv("SANDBOXIO_CLI")
	if cli == "" {
		cli = filepath.Join(t.TempDir(), "sandboxio")
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", cli, "../../../cmd/sandboxio")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	rep, err := Setup(t.Context(), b.opts, SetupOptions{Guest: guestBinary(t), CLI: cli})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := guest.Digest()
	if err != nil || rep.Keeper != keeperTag(digest) {
		t.Fatalf("%+v %v", rep, err)
	}
}

// Several who put one schedule at the same time leave one keeper, the one that
// was told so: another would go on killing by a schedule that was refused.
func TestRealOneScheduleHasOneKeeper(t *testing.T) {
	b, image := engine(t)
	withKeeper(t, b)
	name := realSpec(t, image).Token
	t.Cleanup(func() {
		if err := b.DeleteSchedule(cleanup(t), name); err != nil {
			t.Error(err)
		}
	})
	const puts = 4
	won := make(chan string, puts)
	var all sync.WaitGroup
	for i := range puts {
		all.Go(func() {
			st, err := b.PutSchedule(t.Context(), driver.Schedule{Name: name, Interval: time.Hour + time.Duration(i)*time.Second})
			if err == nil {
				won <- st.ID
			} else if !errors.Is(err, driver.CodeConflict) {
				t.Errorf("put %d: %v", i, err)
			}
		})
	}
	all.Wait()
	close(won)
	var ids []string
	for id := range won {
		ids = append(ids, id)
	}
	left, err := b.keepers(t.Context(), raw(t, b), name)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || !slices.Contains(ids, left[0].ID) {
		t.Errorf("put were %v, left are %v", ids, left)
	}

	// A container that is none of ours keeps its name, and the old keeper stays.
	stranger := keeperPrefix + name + "-s"
	if _, err := raw(t, b).ContainerRename(t.Context(), left[0].ID, client.ContainerRenameOptions{NewName: stranger}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutSchedule(t.Context(), driver.Schedule{Name: name + "-s", Interval: time.Hour}); !errors.Is(err, driver.CodeConflict) {
		t.Errorf("over a stranger: %v", err)
	}
	if now, err := b.keepers(t.Context(), raw(t, b), name+"-s"); err != nil || len(now) != 0 {
		t.Errorf("left are %v, %v", now, err)
	}
}

// Who is overtaken between any two steps is told so, and not that something is
// broken.
func TestRealAKeeperThatIsReplacedWhileItStartsIsAConflict(t *testing.T) {
	b, image := engine(t)
	withKeeper(t, b)
	cli := raw(t, b)
	for _, c := range []struct {
		call string
		stop bool // only, and not remove
	}{
		{"POST /containers/…/start #1", false},
		{"GET /containers/…/json #2", false}, // the first is whether there is one
		{"GET /containers/…/json #2", true},
		{"GET /containers/…/logs #1", false},
		{"GET /containers/…/json #3", true},
	} {
		t.Run(fmt.Sprintf("%s/%t", c.call, c.stop), func(t *testing.T) {
			name := realSpec(t, image).Token
			opts := b.opts
			opts.KeeperSocket = strings.TrimPrefix(needed(t, "SANDBOXIO_TEST_DOCKER"), "unix://") // its own calls do not count
			mine, m := meddled(t, opts)
			m.fault = func(call string) fault {
				if call != c.call {
					return none
				}
				found, err := b.keepers(t.Context(), cli, name)
				if err != nil || len(found) != 1 {
					t.Errorf("%d keepers, %v", len(found), err)
				}
				for _, k := range found {
					if c.stop {
						_, err = cli.ContainerKill(t.Context(), k.ID, client.ContainerKillOptions{Signal: "KILL"})
					} else {
						err = b.remove(t.Context(), cli, k.ID)
					}
					if err != nil {
						t.Error(err)
					}
				}
				return none
			}
			_, err := mine.PutSchedule(t.Context(), driver.Schedule{Name: name, Interval: time.Hour})
			if !errors.Is(err, driver.CodeConflict) || !slices.Contains(m.calls(), c.call) {
				t.Errorf("it says %v, after %v", err, m.calls())
			}
			if left, err := b.keepers(t.Context(), cli, name); err != nil || len(left) != 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}

func TestRealAScheduleSweepsWithoutUs(t *testing.T) {
	b, image := engine(t)
	withKeeper(t, b)
	name := realSpec(t, image).Token
	t.Cleanup(func() {
		if err := b.DeleteSchedule(cleanup(t), name); err != nil {
			t.Error(err)
		}
	})
	put := func(s driver.Schedule) driver.ScheduleStatus {
		t.Helper()
		began := time.Now()
		st, err := b.PutSchedule(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("it runs after %v", time.Since(began).Round(time.Millisecond))
		got, err := b.Schedule(t.Context(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(st, got); d != "" || !got.Running {
			t.Errorf("put, then read: %s", d)
		}
		if d := cmp.Diff(s, got.Schedule); d != "" {
			t.Errorf("it is another: %s", d)
		}
		return got
	}
	if _, err := b.Schedule(t.Context(), name); !errors.Is(err, driver.CodeNotFound) {
		t.Errorf("before: %v", err)
	}
	first := put(driver.Schedule{Name: name, Interval: time.Hour})
	second := put(driver.Schedule{Name: name, Interval: time.Second})
	if first.ID == second.ID || !isGone(t, b, first.ID) {
		t.Error("the one it replaced is still there")
	}

	// One that is frozen past its deadline cannot end itself.
	spec := realSpec(t, image)
	spec.Detached, spec.Lifetime, spec.Facts.Reaper = true, 2*time.Second, name
	due := create(t, b, spec)
	if _, err := raw(t, b).ContainerPause(t.Context(), due.Status().ID, client.ContainerPauseOptions{}); err != nil {
		t.Fatal(err)
	}
	// And one whose time has not come, and one of another schedule's.
	spec = realSpec(t, image)
	spec.Detached, spec.Facts.Reaper = true, name
	young := create(t, b, spec)
	spec = realSpec(t, image)
	spec.Detached, spec.Lifetime, spec.Facts.Reaper = true, 2*time.Second, name+"-other"
	other := create(t, b, spec)
	if _, err := raw(t, b).ContainerPause(t.Context(), other.Status().ID, client.ContainerPauseOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the keeper removes it", func() bool { return isGone(t, b, due.Status().ID) })
	if isGone(t, b, young.Status().ID) || isGone(t, b, other.Status().ID) {
		t.Error("it removed one that was not due, or not its own")
	}

	res, err := raw(t, b).ContainerInspect(t.Context(), second.ID, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if h := res.Container.HostConfig; h.NetworkMode != "none" || !h.ReadonlyRootfs || len(h.CapAdd) > 0 || len(h.Mounts) != 1 || h.Memory == 0 {
		t.Errorf("the keeper has more than it needs: %+v", h)
	}
	if err := b.DeleteSchedule(t.Context(), name); err != nil || !isGone(t, b, second.ID) {
		t.Errorf("deleted: %v", err)
	}
	if err := b.DeleteSchedule(t.Context(), name); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
}

func TestRealAKeeperThatFailsIsNotLeftAndReplacesNothing(t *testing.T) {
	b, image := engine(t)
	withKeeper(t, b)
	name := realSpec(t, image).Token
	t.Cleanup(func() {
		if err := b.DeleteSchedule(cleanup(t), name); err != nil {
			t.Error(err)
		}
	})
	good, err := b.PutSchedule(t.Context(), driver.Schedule{Name: name, Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.PutSchedule(t.Context(), driver.Schedule{Name: name, Cron: "this is no cron expression"}); err == nil {
		t.Fatal("a keeper that cannot start was accepted")
	} else {
		t.Log(err)
	}
	opts := b.opts
	opts.KeeperImage = image // it has no /sandboxio
	broken, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	if _, err := broken.PutSchedule(t.Context(), driver.Schedule{Name: name, Interval: time.Minute}); err == nil {
		t.Fatal("an image without the command was accepted")
	}
	if st, err := b.Schedule(t.Context(), name); err != nil || st.ID != good.ID || !st.Running {
		t.Errorf("the one before: %+v %v", st, err)
	}
	found, err := b.keepers(t.Context(), raw(t, b), name)
	if err != nil || len(found) != 1 {
		t.Errorf("%d keepers, %v", len(found), err)
	}
}

func TestRealSetupCanBeRepeatedAndRepairs(t *testing.T) {
	b, image := engine(t)
	again, err := Setup(t.Context(), b.opts, SetupOptions{Guest: guestBinary(t)})
	if err != nil || len(again.Changed) > 0 {
		t.Errorf("the second time: %+v %v", again, err)
	}
	for name, so := range map[string]SetupOptions{
		"no guest":      {},
		"no such file":  {Guest: filepath.Join(t.TempDir(), "none")},
		"not a program": {Guest: "setup.go"},
		"a dynamic one": {Guest: "/bin/sh"},
	} {
		if _, err := Setup(t.Context(), b.opts, so); !errors.Is(err, driver.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// The same guest with a byte more is another guest, with a volume of its
	// own; one made empty, or wrong, beforehand is filled or made anew.
	content, err := os.ReadFile(guestBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	variant := filepath.Join(t.TempDir(), "guest")
	if err := os.WriteFile(variant, append(content, t.TempDir()...), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := readBinary("guest", variant)
	if err != nil {
		t.Fatal(err)
	}
	cli, volume := raw(t, b), volumeName(file.digest)
	t.Cleanup(func() {
		if _, err := cli.VolumeRemove(cleanup(t), volume, client.VolumeRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
		if _, err := cli.ImageRemove(cleanup(t), guestTag(file.digest), client.ImageRemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
	if _, err := cli.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: volume}); err != nil {
		t.Fatal(err)
	}
	if _, err := Setup(t.Context(), b.opts, SetupOptions{Guest: variant}); err != nil {
		t.Errorf("an empty volume: %v", err)
	}
	c, err := cli.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: looseConfig(image, "sh", "-c", "echo tampered > /v/sandboxio-guest && cat /v/sandboxio-guest"),
		HostConfig: &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: "/v"}}}})
	if err != nil {
		t.Fatal(err)
	}
	said := runRaw(t, b, c.ID)
	if _, err := cli.ContainerRemove(t.Context(), c.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if said != "tampered" {
		t.Fatalf("the volume was not changed: %q", said)
	}
	if rep, err := Setup(t.Context(), b.opts, SetupOptions{Guest: variant}); err != nil || len(rep.Changed) == 0 {
		t.Errorf("a tampered volume: %+v %v", rep, err)
	}
	if rep, err := Setup(t.Context(), b.opts, SetupOptions{Guest: variant}); err != nil || len(rep.Changed) > 0 {
		t.Errorf("after the repair: %+v %v", rep, err)
	}
}
