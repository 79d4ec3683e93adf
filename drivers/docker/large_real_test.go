//go:build dockertest

package docker_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

// counting is content of any size that is never the same twice.
type counting struct {
	left int64
	n    uint64
	sum  hash.Hash
}

func newCounting(size int64) *counting { return &counting{left: size, sum: sha256.New()} }

func (c *counting) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), c.left)
	for i := int64(0); i < n; i += 8 {
		var word [8]byte
		c.n++
		binary.LittleEndian.PutUint64(word[:], c.n)
		copy(b[i:n], word[:])
	}
	c.sum.Write(b[:n])
	c.left -= n
	return int(n), nil
}

// oneFile is a file system with one file, "big", that is made as it is read.
type oneFile struct {
	size    int64
	content *counting
}

func (o oneFile) Open(name string) (fs.File, error) {
	if name == "." {
		return os.DirFS("/nonexistent").Open(".")
	}
	return o, nil
}
func (o oneFile) ReadDir(string) ([]fs.DirEntry, error) {
	return []fs.DirEntry{fs.FileInfoToDirEntry(o)}, nil
}
func (o oneFile) Stat() (fs.FileInfo, error) { return o, nil }
func (o oneFile) Read(b []byte) (int, error) { return o.content.Read(b) }
func (o oneFile) Close() error               { return nil }
func (o oneFile) Name() string               { return "big" }
func (o oneFile) Size() int64                { return o.size }
func (o oneFile) Mode() fs.FileMode          { return 0o644 }
func (o oneFile) ModTime() time.Time         { return time.Unix(1e9, 0) }
func (o oneFile) IsDir() bool                { return false }
func (o oneFile) Sys() any                   { return nil }

// rootOf makes "." a directory, which fs.WalkDir asks for.
type rootOf struct{ oneFile }

func (r rootOf) Stat(string) (fs.FileInfo, error) { return dirInfo(r), nil }

type dirInfo struct{ oneFile }

func (dirInfo) Name() string      { return "." }
func (dirInfo) Mode() fs.FileMode { return fs.ModeDir | 0o755 }
func (dirInfo) IsDir() bool       { return true }

// peak samples the host's live heap until it is stopped.
func peak() (stop func() uint64) {
	done, most := make(chan struct{}), uint64(0)
	var wg sync.WaitGroup
	wg.Go(func() {
		var m runtime.MemStats
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	})
	return func() uint64 { close(done); wg.Wait(); return most }
}

func TestAGibibyteGoesBothWaysAtConstantMemory(t *testing.T) {
	const big, small = 1 << 30, 256 << 20
	const hostMost, guestMost, helperMost = 48 << 20, 24 << 10, 32 << 10 // bytes of heap, KiB of RSS
	sb := real(t, sandbox.Spec{Resources: sandbox.Resources{DiskMiB: 2600, MemoryMiB: 512, PIDs: 64, CPUMillis: 2000}})
	f := sb.Files()
	// It watches PID 1 and the file helpers from inside, where they can be seen.
	watch, err := sb.Start(t.Context(), sandbox.Cmd{Timeout: 10 * time.Minute, Args: []string{"python3", "-uc", `
import os, time
most = {}
while not os.path.exists("/tmp/stop"):
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            kind = open(f"/proc/{p}/cmdline").read().split("\0")[1:2]
            for l in open(f"/proc/{p}/status"):
                if l.startswith("VmHWM") and kind in (["init"], ["files"]): most[kind[0]] = max(most.get(kind[0], 0), int(l.split()[1]))
        except OSError: pass
    time.sleep(0.05)
print(most.get("init", 0), most.get("files", 0))
`}})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 1)
	go func() {
		var out bytes.Buffer
		for chunk, err := range watch.Output() {
			if err != nil {
				break
			}
			out.Write(chunk.Data)
		}
		seen <- out.String()
	}()
	step := func(what string, size int64, do func() ([]byte, error), want func() []byte) {
		t.Helper()
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		stop, begun := peak(), time.Now()
		sum, err := do()
		took, most := time.Since(begun), stop()
		if err != nil || !bytes.Equal(sum, want()) {
			t.Fatalf("%s: %v, or another sum", what, err)
		}
		grown := int64(most) - int64(before.HeapAlloc)
		t.Logf("%s: %d MiB in %v, %.0f MiB/s, the host's heap grew by %.1f MiB", what, size>>20, took.Round(time.Millisecond), float64(size>>20)/took.Seconds(), float64(grown)/(1<<20))
		if grown > hostMost {
			t.Errorf("%s: the host's heap grew by %d MiB", what, grown>>20)
		}
	}
	up, down := newCounting(big), newCounting(small)
	step("upload", big, func() ([]byte, error) {
		_, err := f.Upload(t.Context(), rootOf{oneFile{big, up}}, "d")
		return up.sum.Sum(nil), err
	}, func() []byte { return up.sum.Sum(nil) })
	step("open", big, func() ([]byte, error) {
		r, _, err := f.Open(t.Context(), "d/big")
		if err != nil {
			return nil, err
		}
		defer r.Close()
		sum := sha256.New()
		_, err = io.Copy(sum, r)
		return sum.Sum(nil), err
	}, func() []byte { return up.sum.Sum(nil) })
	step("create", small, func() ([]byte, error) {
		w, err := f.Create(t.Context(), "e/small", 0o644)
		if err != nil {
			if err = f.Mkdir(t.Context(), "e", 0o755); err == nil {
				w, err = f.Create(t.Context(), "e/small", 0o644)
			}
		}
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, down); err != nil {
			return nil, err
		}
		return down.sum.Sum(nil), w.Close()
	}, func() []byte { return down.sum.Sum(nil) })
	step("download", small, func() ([]byte, error) {
		dir := filepath.Join(t.TempDir(), "out")
		if _, err := f.Download(t.Context(), "e", dir, archive.Limits{}); err != nil {
			return nil, err
		}
		r, err := os.Open(filepath.Join(dir, "small"))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		sum := sha256.New()
		_, err = io.Copy(sum, r)
		return sum.Sum(nil), err
	}, func() []byte { return down.sum.Sum(nil) })
	if err := f.Write(t.Context(), "/tmp/stop", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var guest, helper int64
	text := <-seen
	if n, err := fmt.Sscan(strings.TrimSpace(text), &guest, &helper); n != 2 || guest == 0 || helper == 0 {
		t.Fatalf("%q, %v", text, err)
	}
	t.Logf("at most, PID 1 had %.1f MiB and a file helper %.1f MiB", float64(guest)/1024, float64(helper)/1024)
	if guest > guestMost || helper > helperMost {
		t.Errorf("PID 1 had %d KiB, a file helper %d KiB", guest, helper)
	}
}

func TestASparseFileCostsWhatItHolds(t *testing.T) {
	sb := real(t, sandbox.Spec{Resources: sandbox.Resources{DiskMiB: 1000}})
	shell(t, sb, `mkdir s && truncate -s 900M s/hole && printf abc | dd of=s/hole bs=1 seek=500000000 conv=notrunc status=none`)
	dir := filepath.Join(t.TempDir(), "out")
	report, err := sb.Files().Download(t.Context(), "s", dir, archive.Limits{})
	if err != nil || report.Bytes != 900<<20 {
		t.Fatalf("%+v, %v", report, err)
	}
	if _, err := sb.Files().Upload(t.Context(), os.DirFS(dir), "back"); err != nil {
		t.Fatal(err)
	}
	if got := shell(t, sb, `cmp s/hole back/hole && stat -c %s back/hole && test $(stat -c %b back/hole) -le 256 && echo little`); got != "943718400\nlittle\n" {
		t.Errorf("%q", got)
	}
	if _, err := sb.Files().Download(t.Context(), "s", filepath.Join(t.TempDir(), "out"), archive.Limits{Bytes: 100 << 20}); sandbox.CodeOf(err) != sandbox.CodeExhausted {
		t.Errorf("a hole counts: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "hole"), 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Files().Upload(t.Context(), os.DirFS(dir), "back"); sandbox.CodeOf(err) != sandbox.CodeExhausted {
		t.Errorf("a hole beyond the disk: %v", err)
	}
}
