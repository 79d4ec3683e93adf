package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// ledger is a sink that remembers.
type ledger struct {
	mu  sync.Mutex
	all []sandbox.Record
}

func (k *ledger) Record(_ context.Context, r sandbox.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, r)
	return nil
}

// since gives the operations after the first n, and how many there are.
func (k *ledger) since(n int) ([]string, int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, r := range k.all[n:] {
		out = append(out, strings.TrimSpace(r.Op+" "+string(r.Code)))
	}
	return out, len(k.all)
}

// filled is a sandbox with some files.
func filled(t *testing.T, wrap func(driver.Files) driver.Files) (*sandbox.Sandbox, *ledger) {
	t.Helper()
	b, _ := world(t)
	if wrap != nil {
		b = lying{b, func(ctx context.Context, sp driver.Spec, b driver.Backend) (driver.Sandbox, error) {
			sb, err := b.Create(ctx, sp)
			return otherFiles{sb, wrap}, err
		}}
	}
	sink := &ledger{}
	opts := unguarded
	opts.Sinks = []sandbox.Sink{sink}
	sb, err := sandbox.New(b, opts).Create(t.Context(), sandbox.Spec{Resources: sandbox.Resources{DiskMiB: 4}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb, sink
}

type otherFiles struct {
	driver.Sandbox
	wrap func(driver.Files) driver.Files
}

func (o otherFiles) Files() driver.Files { return o.wrap(o.Sandbox.Files()) }

var project = fstest.MapFS{
	"main.py": {Data: []byte("print(1)\r\n"), Mode: 0o644, ModTime: time.Unix(1e9, 0)}, ".env": {Data: []byte("A=b"), Mode: 0o600, ModTime: time.Unix(1e9, 0)},
	"bin": {Mode: fs.ModeDir | 0o755}, "bin/run": {Data: []byte("#!/bin/sh\n"), Mode: 0o755, ModTime: time.Unix(1e9, 0)}, "bin/root": {Data: []byte("x"), Mode: 0o755 | fs.ModeSetuid, ModTime: time.Unix(1e9, 0)},
	"empty": {Mode: fs.ModeDir | 0o750}, "secrets": {Data: []byte("/etc/shadow"), Mode: fs.ModeSymlink | 0o777},
}

func list(t *testing.T, fsys fs.FS) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && name != "." {
			out = append(out, fmt.Sprintf("%s %v", name, info.Mode()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestM84M92M93ADirectoryGoesUpAndComesDown(t *testing.T) {
	t.Parallel()
	sb, sink := filled(t, nil)
	f := sb.Files()
	_, before := sink.since(0)
	up, err := f.Upload(t.Context(), project, "src/app")
	if err != nil || up.Files != 4 || up.Dirs != 2 || fmt.Sprint(up.LeftOut) != `["secrets" (symbolic link)]` {
		t.Fatalf("%+v, %v", up, err)
	}
	// Executable bits (M84), dotfiles (M93), carriage returns (M92).
	want := []string{".env -rw-------", "bin drwxr-xr-x", "bin/root -rwxr-xr-x", "bin/run -rwxr-xr-x", "empty drwxr-x---", "main.py -rw-r--r--"}
	if diff := cmp.Diff(want, list(t, f.FS(t.Context(), "src/app"))); diff != "" {
		t.Error(diff)
	}
	if b, err := f.Read(t.Context(), "src/app/main.py"); err != nil || string(b) != "print(1)\r\n" {
		t.Errorf("%q, %v", b, err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	_, middle := sink.since(0)
	down, err := f.Download(t.Context(), "src/app", dir, archive.Limits{})
	if err != nil || down.Files != up.Files || down.Dirs != up.Dirs || down.Bytes != up.Bytes || down.LeftOutCount != 0 {
		t.Errorf("%+v, %v", down, err)
	}
	if diff := cmp.Diff(want, list(t, os.DirFS(dir))); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(dir, "main.py")); err != nil || info.ModTime().Unix() != 1e9 {
		t.Errorf("%v, %v", info, err)
	}
	if ops, _ := sink.since(middle); !slices.Equal(ops, []string{"download"}) {
		t.Errorf("%q", ops)
	}
	if ops, _ := sink.since(before); ops[0] != "upload" || ops[1] == "upload" {
		t.Errorf("%q", ops)
	}
	if n := leftIn(t, filepath.Dir(dir)); n != 1 {
		t.Errorf("%d things beside it", n-1)
	}
}

func leftIn(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestSandboxPathsArePOSIXOnEveryHost(t *testing.T) {
	t.Parallel()
	sb, _ := filled(t, nil)
	f := sb.Files()
	for _, c := range []struct{ name, write, read string }{
		{"a path of Windows is one name (M95)", `C:\work\x`, `/work/C:\work\x`},
		{"dots are cleaned with slashes (M95)", "/work/a/../b", "/work/b"},
		{"shell words are only words (M98)", "$(touch x); 'y'", "/work/$(touch x); 'y'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := f.Write(t.Context(), c.write, []byte("1"), 0o600)
			if _, rerr := f.Read(t.Context(), c.read); err != nil || rerr != nil {
				t.Errorf("%v, %v", err, rerr)
			}
		})
	}
	if _, err := f.Upload(t.Context(), project, `a\b`); err != nil {
		t.Error(err)
	}
	if info, err := f.Stat(t.Context(), `/work/a\b/bin/run`); err != nil || info.Mode != 0o755 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestADownloadIsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	broken := errors.New("the wire broke")
	for _, c := range []struct {
		name   string
		stream func(whole []byte, cancel func()) io.Reader
		limits archive.Limits
		code   sandbox.Code
		is     error
	}{
		{"the stream breaks", func(b []byte, _ func()) io.Reader {
			return io.MultiReader(bytes.NewReader(b[:len(b)/2]), errReader{&driver.Error{Code: driver.CodeGone, Err: broken}})
		}, archive.Limits{}, sandbox.CodeGone, broken},
		{"the stream is cut off", func(b []byte, _ func()) io.Reader { return bytes.NewReader(b[:len(b)-1024]) }, archive.Limits{}, sandbox.CodeInvalid, io.ErrUnexpectedEOF},
		{"the answer is an error in JSON (M97)", func([]byte, func()) io.Reader { return strings.NewReader(`{"error": "not found", "code": 404}`) }, archive.Limits{}, sandbox.CodeInvalid, nil},
		{"there is too much (M83)", func(b []byte, _ func()) io.Reader { return bytes.NewReader(b) }, archive.Limits{Entries: 3}, sandbox.CodeExhausted, nil},
		{"the caller leaves", func(b []byte, cancel func()) io.Reader {
			return io.MultiReader(bytes.NewReader(b[:len(b)/2]), onRead(cancel), bytes.NewReader(b[len(b)/2:]))
		}, archive.Limits{}, "", context.Canceled},
	} {
		for _, exists := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dir exists %v", c.name, exists), func(t *testing.T) {
				t.Parallel()
				var whole bytes.Buffer
				if _, err := archive.Write(t.Context(), &whole, project); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				sb, sink := filled(t, func(d driver.Files) driver.Files { return packs{d, c.stream(whole.Bytes(), cancel)} })
				top := t.TempDir()
				dir := filepath.Join(top, "out")
				if exists {
					if err := os.Mkdir(dir, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				_, before := sink.since(0)
				_, err := sb.Files().Download(ctx, "x", dir, c.limits)
				if sandbox.CodeOf(err) != c.code || err == nil || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%v", err)
				}
				if ops, _ := sink.since(before); len(ops) != 1 {
					t.Errorf("%q", ops)
				}
				if exists && leftIn(t, dir) != 0 || leftIn(t, top) != map[bool]int{true: 1}[exists] {
					t.Errorf("left: %q", list(t, os.DirFS(top)))
				}
			})
		}
	}
}

type packs struct {
	driver.Files
	r io.Reader
}

func (p packs) Pack(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(p.r), nil }

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

type onRead func()

func (f onRead) Read([]byte) (int, error) { f(); return 0, io.EOF }

func TestWhereADownloadMayGo(t *testing.T) {
	t.Parallel()
	sb, _ := filled(t, nil)
	f := sb.Files()
	if _, err := f.Upload(t.Context(), project, "p"); err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	full := filepath.Join(top, "full")
	if err := errors.Join(os.Mkdir(full, 0o755), os.WriteFile(filepath.Join(full, "mine"), nil, 0o600), os.Mkdir(filepath.Join(top, "vacant"), 0o711)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, from, dir string
		code            sandbox.Code
		is              error
	}{
		{"a new directory", "p", filepath.Join(top, "new"), "", nil},
		{"an empty one", "p", filepath.Join(top, "vacant"), "", nil},
		{"one that holds something", "p", full, sandbox.CodeConflict, fs.ErrExist},
		{"what came before", "p", filepath.Join(top, "new"), sandbox.CodeConflict, fs.ErrExist},
		{"below what does not exist", "p", filepath.Join(top, "a", "b"), sandbox.CodeInvalid, fs.ErrNotExist},
		{"a file", "p", filepath.Join(full, "mine"), sandbox.CodeInvalid, nil},
		{"nowhere", "p", "", sandbox.CodeInvalid, nil},
		{"from what does not exist", "q", filepath.Join(top, "other"), sandbox.CodeNotFound, fs.ErrNotExist},
		{"from a file", "p/main.py", filepath.Join(top, "other"), sandbox.CodeInvalid, nil},
		{"from the kernel's", "/proc", filepath.Join(top, "other"), sandbox.CodeDenied, fs.ErrPermission},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.Download(t.Context(), c.from, c.dir, archive.Limits{})
			if sandbox.CodeOf(err) != c.code || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v", err)
			}
		})
	}
	if got := leftIn(t, top); got != 3 {
		t.Errorf("%d things: %q", got, list(t, os.DirFS(top)))
	}
	if got := list(t, os.DirFS(full)); !slices.Equal(got, []string{"mine -rw-------"}) {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(filepath.Join(top, "vacant")); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("%v, %v", info, err)
	}
}

// An archive from inside may want to hurt the host.
func TestWhatAHostileArchiveCannotDo(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := archive.NewWriter(&b)
	for _, e := range []archive.Entry{
		{Name: "open", Mode: 0o777 | fs.ModeSetuid}, {Name: "shut", Mode: 0}, {Name: "d", Mode: fs.ModeDir}, {Name: "d/in", Mode: 0o666},
		{Name: "passwd", Mode: fs.ModeSymlink, Link: "/etc/passwd"}, {Name: "sda", Mode: fs.ModeDevice}, {Name: "pipe", Mode: fs.ModeNamedPipe},
	} {
		if err := w.Add(e, strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sb, _ := filled(t, func(d driver.Files) driver.Files { return packs{d, bytes.NewReader(b.Bytes())} })
	dir := t.TempDir()
	report, err := sb.Files().Download(t.Context(), "x", dir, archive.Limits{})
	if err != nil || report.LeftOutCount != 3 {
		t.Errorf("%+v, %v", report, err)
	}
	if diff := cmp.Diff([]string{"d drwx------", "d/in -rw-r--r--", "open -rwxr-xr-x", "shut -r--------"}, list(t, os.DirFS(dir))); diff != "" {
		t.Error(diff)
	}
}

func TestAnUploadThatFails(t *testing.T) {
	t.Parallel()
	sb, _ := filled(t, nil)
	f := sb.Files()
	if _, err := f.Upload(t.Context(), nil, "x"); sandbox.CodeOf(err) != sandbox.CodeInvalid {
		t.Errorf("%v", err)
	}
	if _, err := f.Upload(t.Context(), os.DirFS(filepath.Join(t.TempDir(), "nothing")), "x"); sandbox.CodeOf(err) != sandbox.CodeInvalid || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := f.Upload(t.Context(), project, "/etc/x"); sandbox.CodeOf(err) != sandbox.CodeDenied {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Upload(ctx, project, "y"); err != context.Canceled { //nolint:errorlint // it is the context's own
		t.Errorf("%v", err)
	}
	if _, err := f.Stat(t.Context(), "y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	big := fstest.MapFS{"big": {Data: make([]byte, 10<<20)}}
	if _, err := f.Upload(t.Context(), big, "z"); sandbox.CodeOf(err) != sandbox.CodeExhausted {
		t.Errorf("%v", err)
	}
}

func TestTheViewIsAnFS(t *testing.T) {
	t.Parallel()
	sb, sink := filled(t, nil)
	f := sb.Files()
	if _, err := f.Upload(t.Context(), project, "/work/p"); err != nil {
		t.Fatal(err)
	}
	for _, l := range [][2]string{{"bin/run", "p/link"}, {"../p/bin", "p/dir"}, {"dir/../main.py", "p/far"}, {"/work/p/empty", "p/abs"}, {"link", "p/twice"}} {
		if res, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"link", l[0], l[1]}}); err != nil || res.Err() != nil {
			t.Fatal(err, res)
		}
	}
	for _, dir := range []string{"p", "/work/p", "./p/../p/"} {
		if err := fstest.TestFS(f.FS(t.Context(), dir), "main.py", ".env", "bin/run", "bin/root", "empty", "link", "dir", "far", "abs", "twice"); err != nil {
			t.Error(err)
		}
	}
	view := f.FS(t.Context(), "p")
	for name, want := range map[string]string{
		"link": "-rwxr-xr-x 10 2001-09-09 01:46:40 link", "far": "-rw-r--r-- 10 2001-09-09 01:46:40 far", "twice": "-rwxr-xr-x 10 2001-09-09 01:46:40 twice",
	} {
		info, err := fs.Stat(view, name)
		if err != nil || fs.FormatFileInfo(utc{info}) != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if info, err := fs.Stat(view, "dir"); err != nil || !info.IsDir() || info.Name() != "dir" {
		t.Errorf("%v, %v", info, err)
	}
	if got, err := fs.ReadLink(view, "far"); err != nil || got != "dir/../main.py" {
		t.Errorf("%q, %v", got, err)
	}
	_, before := sink.since(0)
	_, err1 := fs.Stat(view, "twice")
	_, err2 := fs.ReadFile(view, "twice")
	_, err3 := fs.ReadDir(view, "dir")
	d, err4 := view.Open("dir")
	_, err5 := view.Open("nothing")
	_, err6 := view.Open("../p")
	if err := errors.Join(err1, err2, err3, err4, d.Close()); err != nil || !errors.Is(err5, fs.ErrNotExist) || !errors.Is(err6, fs.ErrInvalid) {
		t.Errorf("%v; %v; %v", err, err5, err6)
	}
	if ops, _ := sink.since(before); !slices.Equal(ops, []string{"stat", "read", "list", "open", "open not-found"}) {
		t.Errorf("one Record per operation: %q", ops)
	}
	if pe, ok := errors.AsType[*fs.PathError](err5); !ok || pe.Path != "nothing" {
		t.Errorf("%T", err5)
	}
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := view.Open("main.py"); !errors.Is(err, sandbox.CodeGone) {
		t.Errorf("%v", err)
	}
}

type utc struct{ fs.FileInfo }

func (u utc) ModTime() time.Time { return u.FileInfo.ModTime().UTC() }

func TestALoopOfLinksEnds(t *testing.T) {
	t.Parallel()
	sb, _ := filled(t, nil)
	for _, l := range [][2]string{{"b", "a"}, {"a", "b"}, {"/proc/self/environ", "out"}, {"/proc", "proc"}} {
		if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"link", l[0], l[1]}}); err != nil {
			t.Fatal(err)
		}
	}
	view := sb.Files().FS(t.Context(), ".")
	for name, code := range map[string]sandbox.Code{"a": sandbox.CodeInvalid, "out": sandbox.CodeDenied, "proc": sandbox.CodeDenied} {
		_, serr := fs.Stat(view, name)
		_, oerr := view.Open(name)
		_, rerr := fs.ReadFile(view, name)
		for _, err := range []error{serr, oerr, rerr} {
			if sandbox.CodeOf(err) != code {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	sb, _ := filled(t, func(d driver.Files) driver.Files { return endless{d} })
	if b, err := sb.Files().Read(t.Context(), "x"); sandbox.CodeOf(err) != sandbox.CodeExhausted || b != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// endless says that a file has one byte, and never stops.
type endless struct{ driver.Files }

func (endless) Open(context.Context, string) (io.ReadCloser, driver.FileInfo, error) {
	return io.NopCloser(zeroes{}), driver.FileInfo{Size: 1}, nil
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { return len(b), nil }
