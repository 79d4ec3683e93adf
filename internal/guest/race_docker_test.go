//go:build dockertest

package guest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// swapper makes /work/d and /work/d/x now a directory, now a link out of
// /work, now a FIFO, now a file, as fast as it can.
const swapper = `
import os, itertools
def gone(p):
    try:
        if os.path.isdir(p) and not os.path.islink(p):
            for n in os.listdir(p): gone(p + "/" + n)
            os.rmdir(p)
        else: os.unlink(p)
    except OSError: pass
def put(p, kind):
    # Through no link of its own making: what is behind them is for the test.
    try: fd = os.open(os.path.dirname(p), os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError: return
    try: put_in("/proc/self/fd/%d/%s" % (fd, os.path.basename(p)), kind)
    finally: os.close(fd)
def put_in(p, kind):
    q = p + ".new"
    try:
        gone(q)
        if kind == "dir":
            os.mkdir(q)
            open(q + "/in", "w").write("inside")
        elif kind == "file": open(q, "w").write("inside")
        elif kind == "fifo": os.mkfifo(q)
        else: os.symlink(kind, q)
        gone(p)
        os.rename(q, p)
    except OSError: pass
for p in ["/tmp/outside/deep", "/tmp/outside/x"]: os.makedirs(p)
for p in ["/tmp/outside/secret", "/tmp/outside/deep/secret", "/tmp/outside/x/secret"]: open(p, "w").write("CANARY")
print("up", flush=True)
kinds = ["dir", "/tmp/outside", "dir", "fifo", "/tmp/outside/secret", "file", "/proc/self", "dir", "../tmp/outside/deep", "/dev/zero"]
for i in itertools.count():
    put("/work/d/x", kinds[i % len(kinds)])
    put("/work/d/x", kinds[(i * 7 + 3) % len(kinds)])
    if i % 3 == 0: put("/work/d", kinds[(i // 3) % len(kinds)])
`

// race does all of that beside the swapper for some time. None may wait, or
// fail otherwise than by a refusal; each must have been done, and refused.
func race(t *testing.T, b *box, all map[string]func(context.Context) error) {
	t.Helper()
	b.start(driver.Cmd{Args: []string{"python3", "-uc", swapper}})
	eventually(t, 10*time.Second, "the swapper runs", func() bool { _, err := b.guest.Files().Stat(t.Context(), "/work/d.new"); return err == nil })
	const atLeast, atMost = 8 * time.Second, 60 * time.Second
	ctx := limited(t, atMost+20*time.Second)
	begun := time.Now()
	var wg sync.WaitGroup
	for name, do := range all {
		wg.Go(func() {
			done, refused, slowest := 0, 0, time.Duration(0)
			for took := time.Duration(0); took < atLeast || (done == 0 || refused == 0) && took < atMost; took = time.Since(begun) {
				before := time.Now()
				one, cancel := context.WithTimeout(ctx, 10*time.Second)
				err := do(one)
				if one.Err() != nil {
					t.Errorf("%s waits: %v", name, err)
				}
				cancel()
				slowest = max(slowest, time.Since(before))
				switch driver.CodeOf(err) {
				case "":
					done++
				case driver.CodeInvalid, driver.CodeDenied, driver.CodeConflict, driver.CodeNotFound:
					refused++
				default:
					t.Errorf("%s: %v", name, err)
				}
			}
			t.Logf("%s: %d times done, %d refused, %v at most", name, done, refused, slowest)
			if done == 0 {
				t.Errorf("%s never succeeded", name)
			}
		})
	}
	wg.Wait()
	eventually(t, 10*time.Second, "no helper is left", func() bool { return !strings.Contains(b.top(), "sandboxio-guest files") })
}

// What goes through a directory itself goes through no link that it finds.
func TestM82PlantedLinksAndFIFOsRaceAndLose(t *testing.T) {
	b := owned(t)
	f := b.guest.Files()
	archived := tarOf(t, "d/", "d/x/", "d/x/evil", "d/x/secret")
	pack := func(ctx context.Context) (io.ReadCloser, error) { return f.Pack(ctx, "/work") }
	race(t, b, map[string]func(context.Context) error{
		"unpack": func(ctx context.Context) error { return sent(f.Unpack(ctx, "/work"))(archived) },
		"pack": func(ctx context.Context) error {
			r, err := pack(ctx)
			if err != nil {
				return err
			}
			defer r.Close()
			in := archive.NewReader(r, archive.Limits{})
			for {
				e, err := in.Next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if text, err := io.ReadAll(in); err != nil {
					return err
				} else if strings.Contains(string(text), "CANARY") || strings.Contains(e.Name, "deep") {
					t.Errorf("packed from outside: %s %q", e.Name, text)
				}
			}
		},
		"download": func(ctx context.Context) error {
			r, err := pack(ctx)
			if err != nil {
				return err
			}
			defer r.Close()
			top := t.TempDir()
			root, err := os.OpenRoot(top)
			if err != nil {
				return err
			}
			defer func() { _ = errors.Join(root.Close(), os.RemoveAll(top)) }()
			_, err = archive.Extract(ctx, r, root, archive.Options{})
			return err
		},
		"remove": func(ctx context.Context) error { return f.Remove(ctx, "d", true) },
	})
	r := b.run("sh", "-c", "cd /tmp/outside && find . | sort | tr '\n' ' ' && cat secret deep/secret x/secret")
	if r.stdout != ". ./deep ./deep/secret ./secret ./x ./x/secret CANARYCANARYCANARY" {
		t.Errorf("outside there is %q", r.stdout)
	}
}

// A name that the caller gives goes through links to where the workload may
// go, and no further: nothing is opened that is no file, and nothing waits.
func TestNamesThatChangeMeanwhileKeepNobodyWaiting(t *testing.T) {
	b := owned(t)
	f := b.guest.Files()
	race(t, b, map[string]func(context.Context) error{
		"create": func(ctx context.Context) error { return sent(f.Create(ctx, "d/evil", 0o644))([]byte("evil")) },
		"unpack": func(ctx context.Context) error { return sent(f.Unpack(ctx, "d/x"))(tarOf(t, "y/", "y/evil")) },
		"mkdir":  func(ctx context.Context) error { return f.Mkdir(ctx, "d/x/sub", 0o755) },
		"remove": func(ctx context.Context) error { return f.Remove(ctx, "d/x/sub", true) },
		"list":   func(ctx context.Context) error { _, err := f.List(ctx, "d/x"); return err },
		"open": func(ctx context.Context) error {
			r, info, err := f.Open(ctx, "d/x")
			if err != nil {
				return err
			}
			defer r.Close()
			data, err := io.ReadAll(r)
			if text := string(data); err == nil && text != "inside" && text != "CANARY" && text != "" || !info.Mode.IsRegular() {
				t.Errorf("opened %v: %.100q", info.Mode, text)
			}
			return err
		},
	})
}

// sent writes data to what was opened for it.
func sent(w io.WriteCloser, err error) func([]byte) error {
	return func(data []byte) error {
		if err != nil {
			return err
		}
		_, err := w.Write(data)
		if cerr := w.Close(); err == nil {
			err = cerr
		}
		return err
	}
}
