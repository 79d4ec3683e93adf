//go:build linux

package pid1

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

func TestOnlyPID1IsInit(t *testing.T) {
	boot := wire.Boot{Owned: true, Lifetime: time.Second, Longest: time.Second, UID: 1, NProc: 1}
	if err := run(boot); err == nil || !strings.Contains(err.Error(), "PID 1") {
		t.Errorf("%v", err)
	}
}

func TestAProcesssMarkIsItsSupplementaryGroup(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		want   marked
		ok     bool
	}{
		"a marked one":               {"Name:\tsh\nState:\tS (sleeping)\nGroups:\t2000000007 \nThreads:\t1\n", marked{pid: 9, mark: 2000000007}, true},
		"among other groups":         {"Name:\tsh\nState:\tR (running)\nGroups:\t5 27 2000000007 \nThreads:\t4\n", marked{pid: 9, mark: 2000000007}, true},
		"no group":                   {"Name:\tsh\nState:\tS (sleeping)\nGroups:\t \nThreads:\t1\n", marked{pid: 9}, false},
		"an image's group":           {"Name:\tsh\nState:\tS\nGroups:\t65534 2000000000 \n", marked{pid: 9}, false},
		"a zombie":                   {"Name:\tsh\nState:\tZ (zombie)\nGroups:\t2000000007 \nThreads:\t1\n", marked{pid: 9, mark: 2000000007, dead: true}, true},
		"a zombie with live threads": {"Name:\tsh\nState:\tZ (zombie)\nGroups:\t2000000007 \nThreads:\t2\n", marked{pid: 9, mark: 2000000007}, true},
		"a name that lies":           {"Name:\tx\\nGroups:\\t2000000009\nState:\tS\nGroups:\t2000000007 \nThreads:\t1\n", marked{pid: 9, mark: 2000000007}, true},
		"nothing":                    {"", marked{pid: 9}, false},
	} {
		got, ok := parseStatus(9, []byte(c.status))
		if ok != c.ok || got.mark != c.want.mark || ok && got != c.want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func TestMountinfo(t *testing.T) {
	got, ok := parseMount(`36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - tmpfs a\134b rw,size=64k` + "\n")
	want := wire.Mount{Point: "/mnt 2", Options: []string{"rw", "noatime"}, Type: "tmpfs", Source: `a\b`, Super: []string{"rw", "size=64k"}}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Error(diff)
	}
	for _, line := range []string{"", "36 35", "36 35 98:0 / /x rw", "36 35 98:0 / /x rw - ext4"} {
		if m, ok := parseMount(line); ok {
			t.Errorf("%q is %+v", line, m)
		}
	}
}

func TestTheEarlierOfTwoClocksEndsASandbox(t *testing.T) {
	now := time.Now()
	deadline := now.Add(time.Minute)
	if left := timeLeft(now, deadline); left != time.Minute {
		t.Errorf("%v left", left)
	}
	if left := timeLeft(now.Add(2*time.Minute), deadline); left > 0 {
		t.Errorf("%v left after both", left)
	}
	woken := time.Unix(0, now.UnixNano()).Add(time.Hour) // the wall clock alone went on
	if left := timeLeft(woken, deadline); left > 0 {
		t.Errorf("%v left after a sleep of the machine", left)
	}
}

func TestADeadlineMovesWithinWhatWasGrantedAndNeverIntoThePast(t *testing.T) {
	g := &guest{boot: wire.Boot{Longest: time.Hour}, moved: make(chan struct{}, 1)}
	g.live(time.Minute)
	began := time.Now()
	for name, c := range map[string]struct {
		at time.Duration
		ok bool
	}{
		"later": {30 * time.Minute, true}, "earlier": {time.Second, true}, "the last moment": {time.Hour - time.Second, true},
		"beyond": {time.Hour + time.Second, false}, "now": {0, false}, "the past": {-time.Second, false}, "long ago": {-time.Duration(began.UnixNano()), false},
	} {
		before := g.deadline
		bad := g.extend(began.Add(c.at).UnixNano())
		want := before
		if c.ok {
			want = began.Add(c.at)
		}
		if (bad == nil) != c.ok || !g.deadline.Round(0).Equal(want.Round(0)) || bad != nil && (bad.Code != "invalid" || bad.Field != "deadline") {
			t.Errorf("%s: %+v, the deadline is %v", name, bad, g.deadline)
		}
		if left := time.Until(g.deadline) - time.Until(g.deadline.Round(0)); left.Abs() > time.Millisecond {
			t.Errorf("%s: the two clocks are %v apart", name, left)
		}
	}
}

func TestErrorsOfTheSystemHaveACode(t *testing.T) {
	for errno, want := range map[error]wire.Failure{
		unix.ENOENT: {Code: "not-found", Kind: wire.KindNotExist}, unix.EEXIST: {Code: "conflict", Kind: wire.KindExist}, unix.EROFS: {Code: "denied", Kind: wire.KindPermission},
		unix.ENOSPC: {Code: "exhausted"}, unix.EISDIR: {Code: "invalid"}, errors.New("odd"): {Code: "internal"},
	} {
		got := failure(errno, "", "")
		if got.Code != want.Code || got.Kind != want.Kind || got.Text == "" {
			t.Errorf("%v: %+v", errno, got)
		}
	}
}

func TestAForbiddenPlaceHasNoOtherSpelling(t *testing.T) {
	for _, name := range []string{"/proc", "/proc/1", "/sys/kernel", "/dev/shm", "/.sandboxio/sandboxio-guest"} {
		if refuseName(name) == nil {
			t.Errorf("%s is allowed", name)
		}
	}
	for _, name := range []string{"/", "/work", "/process", "/developer", "/tmp/proc"} {
		if err := refuseName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheWalkerSeesEveryLink(t *testing.T) {
	dir := t.TempDir()
	for link, to := range map[string]string{"out": "/proc/self", "loop": "loop", "up": "..", "here": ".", "abs": dir} {
		if err := unix.Symlink(to, dir+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	if err := mkdir(dir+"/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/a/b": "", "/here/a/./b": "", "/abs/abs/a/b/../b": "", "/up/" + dir[strings.LastIndexByte(dir, '/')+1:] + "/a": "",
		"/out": "denied", "/out/root": "denied", "/loop": "too many", "/a/c": "no such",
	} {
		fd, err := directory(dir + name)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	if err := mkdir(dir+"/out/x", 0o755); err == nil {
		t.Error("made a directory in /proc")
	}
}

func TestEnvThatWouldChangeOnTheWayIsRefusedWithoutItsValue(t *testing.T) {
	for _, kv := range [][2]string{{"", "canary"}, {"A=B", "canary"}, {"A\x00", "canary"}, {"A", "canary\x00"}} {
		bad := badEnv("env", [][2]string{{"OK", "x=y\nz"}, kv})
		if bad == nil || strings.Contains(bad.Error()+bad.Field+bad.Hint, "canary") {
			t.Errorf("%q: %+v", kv[0], bad)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("Name:\tsh\nState:\tZ (zombie)\nGroups:\t2000000007 \nThreads:\t2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := parseStatus(1, b)
		if ok != (m.mark != 0) || ok && m.mark <= markBase {
			t.Fatalf("%+v, %v", m, ok)
		}
	})
}

func FuzzParseMount(f *testing.F) {
	f.Add(`36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root rw`)
	f.Fuzz(func(t *testing.T, line string) {
		if m, ok := parseMount(line); ok && (m.Type == "" || slices.Contains(m.Options, "") && !strings.Contains(line, ",")) {
			t.Fatalf("%+v", m)
		}
	})
}
