//go:build dockertest

package guest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// put writes a file.
func (b *box) put(name string, mode fs.FileMode, r io.Reader) error {
	b.t.Helper()
	w, err := b.guest.Files().Create(limited(b.t, 60*time.Second), name, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		_ = w.Close()
		return err
	}
	return w.Close()
}

func (b *box) get(name string) (string, driver.FileInfo, error) {
	b.t.Helper()
	r, info, err := b.guest.Files().Open(limited(b.t, 60*time.Second), name)
	if err != nil {
		return "", info, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return string(data), info, err
}

func (b *box) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestFilesComeBackAsTheyWent(t *testing.T) {
	b := owned(t)
	for name, data := range map[string]string{
		"plain": "hello", "empty": "", "binary": "\xff\xfe\x00\r\n\x00", "sp ace; $(id) \"q\" 'r'": "x", "ümläut-\xff": "y", ".dot": "z", "-rf": "dash", "new\nline": "nl",
	} {
		b.must(b.put(name, 0o644, strings.NewReader(data)))
		got, info, err := b.get(name)
		if err != nil || got != data || info.Size != int64(len(data)) || info.Name != name {
			t.Errorf("%q: %q, %+v, %v", name, got, info, err)
		}
	}
	infos, err := b.guest.Files().List(t.Context(), ".")
	if err != nil || len(infos) != 8 {
		t.Errorf("%d entries: %+v, %v", len(infos), infos, err)
	}
	b.must(b.put("/tmp/seen", 0o600, strings.NewReader("by the next program")))
	if r := b.run("cat", "/tmp/seen"); r.stdout != "by the next program" {
		t.Errorf("%+v", r)
	}
}

func TestALargeFileGoesBothWays(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true}})
	const size = 48 << 20
	sum := sha256.New()
	_, _ = io.Copy(sum, zeros(size))
	start := time.Now()
	b.must(b.put("large", 0o644, zeros(size)))
	up := time.Since(start)
	r, info, err := b.guest.Files().Open(limited(t, 60*time.Second), "large")
	b.must(err)
	defer r.Close()
	got := sha256.New()
	start = time.Now()
	n, err := io.Copy(got, r)
	if err != nil || n != size || info.Size != size || !bytes.Equal(got.Sum(nil), sum.Sum(nil)) {
		t.Errorf("%d bytes, %+v, %v", n, info, err)
	}
	t.Logf("%d MiB up in %v, down in %v", size>>20, up, time.Since(start))
}

func TestM82LinksLeadNowhereTheWorkloadCannotGo(t *testing.T) {
	b := owned(t)
	b.run("sh", "-c", `ln -s /etc/passwd pw; ln -s /proc/1/environ env; ln -s /proc/self/root rootlink; ln -s loop loop; ln -s /dev/zero zero; ln -s ../../../../.sandboxio g
		mkfifo fifo; mkdir d; ln -s /work/d up; echo in > d/f; ln -s /nowhere dangling; mkdir outer; ln -s /work/d outer/d`)
	if got, _, err := b.get("pw"); err != nil || !strings.Contains(got, "root:") {
		t.Errorf("a link to what the workload may read: %q, %v", got, err)
	}
	if got, _, err := b.get("up/f"); err != nil || got != "in\n" {
		t.Errorf("through a link to a directory: %q, %v", got, err)
	}
	for name, want := range map[string]driver.Code{
		"env": driver.CodeDenied, "rootlink/etc/passwd": driver.CodeDenied, "zero": driver.CodeDenied, "g/sandboxio-guest": driver.CodeDenied, "loop": driver.CodeInvalid,
		"/proc/self/environ": driver.CodeDenied, "/sys/kernel": driver.CodeDenied, "/dev/null": driver.CodeDenied, "/dev/shm/x": driver.CodeDenied, "/.sandboxio/sandboxio-guest": driver.CodeDenied,
		"fifo": driver.CodeInvalid, "d": driver.CodeInvalid, "dangling": driver.CodeNotFound, "/etc/shadow": driver.CodeDenied, "nothing": driver.CodeNotFound, "d/f/x": driver.CodeInvalid,
		"../proc/self/status": driver.CodeDenied, "/work/../proc/version": driver.CodeDenied, "/": driver.CodeInvalid, "": driver.CodeInvalid, "a\x00b": driver.CodeInvalid,
	} {
		start := time.Now()
		_, _, err := b.get(name)
		if driver.CodeOf(err) != want {
			t.Errorf("open %q: %v, want %s", name, err, want)
		}
		if time.Since(start) > 2*time.Second {
			t.Errorf("open %q took %v", name, time.Since(start))
		}
	}
	ctx := limited(t, 20*time.Second)
	f := b.guest.Files()
	for _, name := range []string{"/proc/x", "/dev/x", "/dev/shm/x", "/.sandboxio/x", "rootlink/tmp/x"} {
		if _, err := f.Create(ctx, name, 0o644); driver.CodeOf(err) != driver.CodeDenied || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("create %s: %v", name, err)
		}
		if err := f.Mkdir(ctx, name, 0o755); driver.CodeOf(err) != driver.CodeDenied {
			t.Errorf("mkdir %s: %v", name, err)
		}
		if err := f.Remove(ctx, name, true); driver.CodeOf(err) != driver.CodeDenied {
			t.Errorf("remove %s: %v", name, err)
		}
		if err := f.Rename(ctx, "d/f", name); driver.CodeOf(err) != driver.CodeDenied {
			t.Errorf("rename to %s: %v", name, err)
		}
		if _, err := f.Stat(ctx, name); driver.CodeOf(err) != driver.CodeDenied {
			t.Errorf("stat %s: %v", name, err)
		}
		if _, err := f.List(ctx, name); driver.CodeOf(err) != driver.CodeDenied {
			t.Errorf("list %s: %v", name, err)
		}
	}
	info, err := f.Stat(ctx, "pw")
	if err != nil || info.Mode&fs.ModeSymlink == 0 || info.Link != "/etc/passwd" {
		t.Errorf("a link itself: %+v, %v", info, err)
	}
	// A link in a file's place is replaced; what it led to stays.
	b.must(b.put("dangling", 0o644, strings.NewReader("new")))
	b.must(f.Remove(ctx, "up", true))
	b.must(f.Remove(ctx, "outer", true))
	if got, _, err := b.get("d/f"); err != nil || got != "in\n" {
		t.Errorf("removing a link removed what it led to: %v", err)
	}
	if _, err := f.Create(ctx, "/etc/x", 0o644); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the read-only root: %v", err)
	}
}

func TestM84ModesAreKeptAndSetuidIsNot(t *testing.T) {
	b := owned(t)
	f := b.guest.Files()
	for mode, want := range map[fs.FileMode]fs.FileMode{0o755: 0o755, 0o600: 0o600, 0o777: 0o777, 0o755 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky: 0o755, 0: 0} {
		b.must(b.put("m", mode, strings.NewReader("x")))
		info, err := f.Stat(t.Context(), "m")
		if err != nil || info.Mode != want {
			t.Errorf("%v: %v, %v", mode, info.Mode, err)
		}
	}
	b.must(b.put("run.sh", 0o755, strings.NewReader("#!/bin/sh\necho ran\n")))
	if r := b.run("./run.sh"); r.stdout != "ran\n" {
		t.Errorf("%+v", r)
	}
	b.must(f.Mkdir(t.Context(), "a/b/c", 0o750|fs.ModeSetgid))
	if info, err := f.Stat(t.Context(), "a/b/c"); err != nil || info.Mode != fs.ModeDir|0o750 {
		t.Errorf("%v, %v", info.Mode, err)
	}
}

func TestAFileAppearsCompleteOrNotAtAll(t *testing.T) {
	b := owned(t)
	f := b.guest.Files()
	b.must(b.put("name", 0o644, strings.NewReader("old")))
	ctx, cancel := context.WithCancel(limited(t, 20*time.Second))
	w, err := f.Create(ctx, "name", 0o644)
	b.must(err)
	if _, err := w.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := b.get("name"); got != "old" {
		t.Errorf("before Close: %q", got)
	}
	cancel()
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("closing after the end of ctx: %v", err)
	}
	if got, _, _ := b.get("name"); got != "old" {
		t.Errorf("after a cancelled write: %q", got)
	}
	eventually(t, 20*time.Second, "nothing else is left", func() bool {
		infos, err := f.List(t.Context(), ".")
		return err == nil && len(infos) == 1
	})
}

func TestAFullDiskIsExhaustedAndLeavesNothing(t *testing.T) {
	b := owned(t)
	err := b.put("big", 0o644, zeros(100<<20))
	if driver.CodeOf(err) != driver.CodeExhausted {
		t.Errorf("%v", err)
	}
	eventually(t, 20*time.Second, "nothing is left", func() bool {
		infos, err := b.guest.Files().List(t.Context(), ".")
		return err == nil && len(infos) == 0
	})
	b.must(b.put("small", 0o644, strings.NewReader("x")))
}

func TestOperationsOnNames(t *testing.T) {
	b := owned(t)
	f, ctx := b.guest.Files(), limited(t, 30*time.Second)
	b.must(f.Mkdir(ctx, "x/y/z", 0o755))
	b.must(f.Mkdir(ctx, "x/y", 0o755)) // an existing directory is no error
	b.must(b.put("x/f", 0o644, strings.NewReader("1")))
	if err := f.Mkdir(ctx, "x/f", 0o755); !errors.Is(err, fs.ErrExist) {
		t.Errorf("mkdir over a file: %v", err)
	}
	if err := f.Remove(ctx, "x", false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("removing a directory that is not empty: %v", err)
	}
	b.must(f.Rename(ctx, "x/f", "/tmp/../work/x/g"))
	if err := f.Rename(ctx, "x/f", "x/h"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("renaming what is not there: %v", err)
	}
	b.must(f.Remove(ctx, "x/g", false))
	if err := f.Remove(ctx, "x/g", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removing what is not there: %v", err)
	}
	b.run("sh", "-c", "mkdir -p x/deep/$(seq -s/ 1 200); touch x/deep/1/2/3/f; chmod 500 x/deep/1/2")
	if err := f.Remove(ctx, "x", true); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("removing what the workload may not: %v", err)
	}
	b.run("chmod", "700", "x/deep/1/2")
	b.must(f.Remove(ctx, "x", true))
	for _, name := range []string{"/", "/work/..", "."} {
		if err := f.Remove(ctx, name, true); err == nil {
			t.Errorf("%s was removed", name)
		}
	}
	b.run("sh", "-c", "i=0; mkdir many; while [ $i -lt 3000 ]; do : > many/$i; i=$((i+1)); done")
	infos, err := f.List(ctx, "many")
	if err != nil || len(infos) != 3000 {
		t.Errorf("%d entries, %v", len(infos), err)
	}
	if _, err := f.List(ctx, "many/1"); driver.CodeOf(err) != driver.CodeInvalid {
		t.Errorf("listing a file: %v", err)
	}
}

func TestAnAbandonedReaderEndsItsHelper(t *testing.T) {
	b := owned(t)
	b.must(b.put("large", 0o644, zeros(32<<20)))
	for range 20 {
		r, _, err := b.guest.Files().Open(limited(t, 20*time.Second), "large")
		b.must(err)
		_, _ = r.Read(make([]byte, 10))
		_ = r.Close()
	}
	eventually(t, 10*time.Second, "no helper is left", func() bool { return !strings.Contains(b.top(), "sandboxio-guest files") })
}

// A workload that ends or stops what serves file operations costs its host an
// error and no time, whatever it waited for: an answer, content, or to be rid
// of some.
func TestAHelperThatTheWorkloadStopsOrEndsIsNoTrap(t *testing.T) {
	for _, signal := range []string{"SIGSTOP", "SIGKILL"} {
		t.Run(signal, func(t *testing.T) {
			b := owned(t)
			b.must(b.put("f", 0o644, zeros(1<<20)))
			p := b.start(driver.Cmd{Args: []string{"python3", "-uc", `
import os, signal
print("up")
while True:
    for p in os.listdir("/proc"):
        try:
            if p.isdigit() and b"\0files\0" in open(f"/proc/{p}/cmdline", "rb").read(): os.kill(int(p), signal.` + signal + `)
        except OSError: pass`}})
			failed := 0
			for range 20 {
				for what, do := range map[string]func(ctx context.Context) error{
					"stat": func(ctx context.Context) error { _, err := b.guest.Files().Stat(ctx, "f"); return err },
					"read": func(ctx context.Context) error {
						r, _, err := b.guest.Files().Open(ctx, "f")
						if err == nil {
							_, err = io.Copy(io.Discard, r)
							_ = r.Close()
						}
						return err
					},
					"write": func(ctx context.Context) error {
						w, err := b.guest.Files().Create(ctx, "g", 0o600)
						if err == nil {
							_, err = io.Copy(w, zeros(1<<20))
							if cerr := w.Close(); err == nil {
								err = cerr
							}
						}
						return err
					},
				} {
					err := do(limited(t, 30*time.Second))
					if err != nil {
						failed++
					}
					if err != nil && driver.CodeOf(err) != driver.CodeExhausted {
						t.Errorf("%s: %v", what, err)
					}
				}
			}
			if failed == 0 {
				t.Error("no helper was caught")
			}
			t.Logf("%d of 60 helpers were caught", failed)
			b.must(p.Kill(limited(t, 10*time.Second)))
			eventually(t, 15*time.Second, "no helper is left", func() bool { return !strings.Contains(b.top(), "sandboxio-guest files") })
			if _, err := b.guest.Files().Stat(limited(t, 10*time.Second), "f"); err != nil {
				t.Error(err)
			}
		})
	}
}
