package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

// written makes an archive with the standard library's own writer, as anybody
// may.
func written(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := h.Uname // the tests' way of giving content
		h.Uname = ""
		if content != "" {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatalf("%+v: %v", h, err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name, content string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Uname: content}
}

func dir(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755} }

func link(name, target string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}
}

func kindOf(flag byte, name string) *tar.Header {
	return &tar.Header{Typeflag: flag, Name: name, Linkname: "target", Mode: 0o644}
}

// destination is a directory with something beside it that nobody may touch.
func destination(t testing.TB) (root *os.Root, outside string) {
	t.Helper()
	top := t.TempDir()
	outside = filepath.Join(top, "outside")
	if err := errors.Join(os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "secret"), []byte("untouched"), 0o644), os.Mkdir(filepath.Join(top, "in"), 0o755)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Join(top, "in"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = root.Close()
		if got := listing(t, os.DirFS(outside)); !slices.Equal(got, []string{"secret 644 untouched"}) {
			t.Errorf("outside there is %q", got)
		}
	})
	return root, outside
}

// listing describes all there is, links as links.
func listing(t testing.TB, fsys fs.FS) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if d.Type().IsRegular() && info.Size() < 100 {
			b, err := fs.ReadFile(fsys, name)
			if err != nil {
				return err
			}
			text = " " + string(b)
		}
		if d.Type() == 0 || d.IsDir() {
			out = append(out, fmt.Sprintf("%s%s %o%s", name, map[bool]string{true: "/"}[d.IsDir()], info.Mode().Perm(), text))
		} else {
			out = append(out, fmt.Sprintf("%s %v", name, d.Type()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func extract(t testing.TB, root *os.Root, data []byte, limits archive.Limits) (archive.Report, error) {
	t.Helper()
	return archive.Extract(t.Context(), bytes.NewReader(data), root, archive.Options{Limits: limits})
}

func TestADirectoryComesBackAsItWent(t *testing.T) {
	when := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	src := fstest.MapFS{
		"plain": {Data: []byte("hello\r\n\x00\xff"), Mode: 0o644, ModTime: when}, ".hidden": {Data: []byte("dot"), Mode: 0o600, ModTime: when},
		"dir": {Mode: fs.ModeDir | 0o750}, "dir/sub/deep": {Data: nil, Mode: 0o400, ModTime: when}, "dir/run": {Data: []byte("#!"), Mode: 0o755, ModTime: when},
		"closed": {Mode: fs.ModeDir | 0o555}, "closed/in": {Data: []byte("x"), Mode: 0o644}, "new\nline": {Data: []byte("n"), Mode: 0o644},
		"ümläut": {Data: []byte("u"), Mode: 0o644}, "link": {Data: []byte("plain"), Mode: fs.ModeSymlink}, "fifo": {Mode: fs.ModeNamedPipe}, "dev": {Mode: fs.ModeDevice},
		"setuid": {Data: []byte("s"), Mode: 0o755 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky}, "empty/sub": {Mode: fs.ModeDir | 0o700},
		strings.Repeat("n", 200) + "/" + strings.Repeat("m", 255): {Data: []byte("long"), Mode: 0o644},
	}
	var b bytes.Buffer
	wrote, err := archive.Write(t.Context(), &b, src)
	if err != nil {
		t.Fatal(err)
	}
	left := []archive.LeftOut{{Name: "dev", Why: "device"}, {Name: "fifo", Why: "FIFO or socket"}, {Name: "link", Why: "symbolic link"}}
	if diff := cmp.Diff(left, wrote.LeftOut); diff != "" || wrote.LeftOutCount != 3 || wrote.Files != 9 {
		t.Errorf("%+v %s", wrote, diff)
	}
	root, _ := destination(t)
	read, err := extract(t, root, b.Bytes(), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Chmod("closed", 0o755) })
	if read.LeftOut != nil || read.Files != wrote.Files || read.Dirs != wrote.Dirs || read.Bytes != wrote.Bytes {
		t.Errorf("wrote %+v, read %+v", wrote, read)
	}
	want := []string{
		".hidden 600 dot", "closed/ 555", "closed/in 644 x", "dir/ 750", "dir/run 755 #!", "dir/sub/ 555", "dir/sub/deep 400 ", "empty/ 555", "empty/sub/ 700", "new\nline 644 n",
		strings.Repeat("n", 200) + "/ 555", strings.Repeat("n", 200) + "/" + strings.Repeat("m", 255) + " 644 long", "plain 644 hello\r\n\x00\xff", "setuid 755 s", "ümläut 644 u",
	}
	if diff := cmp.Diff(want, listing(t, root.FS())); diff != "" {
		t.Error(diff)
	}
	if info, err := root.Stat("plain"); err != nil || !info.ModTime().Equal(when) {
		t.Errorf("%v, %v", info.ModTime(), err)
	}
	if info, err := root.Stat("setuid"); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAnArchiveThatIsRefused(t *testing.T) {
	whole := written(t, file("a", "content"), file("b", "content"))
	for _, c := range []struct {
		name  string
		data  []byte
		limit string
		says  string
	}{
		{"climbs out (M82)", written(t, file("../x", "x")), "", `"../x" leads out`},
		{"climbs out below (M82)", written(t, file("a/../../x", "x")), "", "leads out"},
		{"is absolute (M82)", written(t, file("/etc/x", "x")), "", "absolute"},
		{"names a directory above (M82)", written(t, dir("..")), "", "leads out"},
		{"has an empty part", written(t, file("a//b", "x")), "", "empty part"},
		{"has a dot inside", written(t, file("a/./b", "x")), "", "empty part"},
		{"gives the directory itself as a file", append(block("./", tar.TypeReg, 0, nil), make([]byte, 1024)...), "", "empty part"},
		{"has a part too long for any system", written(t, file(strings.Repeat("x", 256), "x")), "", "255"},
		{"is a file, then a directory", written(t, file("a", "x"), dir("a")), "", "comes twice"},
		{"is a directory, then a file", written(t, dir("a"), file("a", "x")), "", "comes twice"},
		{"is a file, then a link (M82)", written(t, file("a", "x"), link("a", "/etc/passwd")), "", "comes twice"},
		{"is a link, then goes through it (M82)", written(t, link("a", "../outside"), file("a/x", "x")), "", "in the way"},
		{"is a file, then goes through it", written(t, file("a", "x"), file("a/x", "x")), "", "in the way"},
		{"goes through it, then is a link", written(t, file("a/x", "x"), link("a", "../outside")), "", "comes twice"},
		{"is cut off in a file", whole[:600], "", "cut off"},
		{"is cut off between files", whole[:1024], "", "cut off"},
		{"is cut off in a header", whole[:700], "", "cut off"},
		{"has half an end", whole[:len(whole)-512], "", "cut off"},
		{"is nothing", nil, "", "cut off"},
		{"is no archive", bytes.Repeat([]byte("nonsense"), 1000), "", "no tar archive"},
		{"goes on for ever", append(slices.Clone(whole), bytes.Repeat([]byte("x"), 2<<20)...), "", "after its end"},
		{"is too large (M83)", written(t, file("a", strings.Repeat("x", 600)), file("b", strings.Repeat("x", 600))), "bytes", "1000 bytes"},
		{"has too many entries (M83)", written(t, file("a", ""), file("b", ""), file("c", ""), file("d", ""), file("e", ""), file("f", "")), "entries", "5 entries"},
		{"makes too many directories (M83)", written(t, file("a/b/c/x", ""), file("d/e/x", "")), "entries", "5 entries"},
		{"is too deep (M83)", written(t, dir("a/b/c/d/e")), "depth", "4 levels"},
		{"has too long a name (M83)", written(t, file(strings.Repeat("x", 101), "")), "name", "100 bytes"},
		{"leaves out too much (M83)", written(t, link("a", "x"), link("b", "x"), link("c", "x"), link("d", "x"), link("e", "x"), link("f", "x")), "entries", "5 entries"},
		{"is sparse and huge (M83)", sparseArchive("bomb", 1<<50), "bytes", "1000 bytes"},
		{"is of the old sparse kind and huge (M83)", oldSparse(t, "bomb", 1<<40), "bytes", "1000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, _ := destination(t)
			limits := archive.Limits{Bytes: 1000, Entries: 5, Depth: 4, Name: 100}
			if strings.Contains(c.name, "part too long") || strings.Contains(c.name, "for ever") {
				limits.Name = 0
			}
			_, err := extract(t, root, c.data, limits)
			e, ok := errors.AsType[*archive.Error](err)
			if !ok || e.Limit != c.limit || !strings.Contains(err.Error(), c.says) || (e.Hint() == "") != (c.limit == "") {
				t.Errorf("%T %v, %+v", err, err, e)
			}
			for _, l := range listing(t, root.FS()) {
				if strings.Contains(l, ".sandboxio-") {
					t.Errorf("left behind: %s", l)
				}
			}
		})
	}
}

func TestWhatIsNoFileIsLeftOutAndToldOf(t *testing.T) {
	root, _ := destination(t)
	headers := []*tar.Header{file("a", "x"), kindOf(tar.TypeSymlink, "s"), kindOf(tar.TypeLink, "h"), kindOf(tar.TypeChar, "c"), kindOf(tar.TypeBlock, "b"),
		kindOf(tar.TypeFifo, "f"), kindOf('Z', "z"), kindOf(tar.TypeSymlink, "evil\x1b[31m\n")}
	for i := range 200 {
		headers = append(headers, link(fmt.Sprint("many", i), "/etc/passwd"))
	}
	report, err := extract(t, root, written(t, headers...), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Files != 1 || report.LeftOutCount != 207 || len(report.LeftOut) != 100 {
		t.Errorf("%d files, %d of %d left out", report.Files, len(report.LeftOut), report.LeftOutCount)
	}
	if got := fmt.Sprint(report.LeftOut[:7]); got != `["s" (symbolic link) "h" (hard link) "c" (device) "b" (device) "f" (FIFO or socket) "z" (unknown kind) "evil\x1b[31m\n" (symbolic link)]` {
		t.Error(got)
	}
	if got := listing(t, root.FS()); !slices.Equal(got, []string{"a 644 x"}) {
		t.Errorf("%q", got)
	}
}

func TestWhatOtherProgramsWriteIsRead(t *testing.T) {
	root, _ := destination(t)
	global := &tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}, Name: "pax_global_header"}
	data := written(t, global, dir("./"), dir("./d/"), file("./d/f", "x"), file("e/implicit", "y"), &tar.Header{Typeflag: tar.TypeDir, Name: "e/", Mode: 0o700})
	report, err := extract(t, root, append(data, make([]byte, 9<<10)...), archive.Limits{})
	if err != nil || report.Files != 2 || report.Dirs != 2 || report.LeftOutCount != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if diff := cmp.Diff([]string{"d/ 755", "d/f 644 x", "e/ 700", "e/implicit 644 y"}, listing(t, root.FS())); diff != "" {
		t.Error(diff)
	}
}

func TestLinksPlantedInTheDestinationAreNotFollowed(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // making a link needs a privilege there
	}
	root, outside := destination(t)
	if err := errors.Join(root.Symlink("../outside", "out"), root.Mkdir("real", 0o755), root.Symlink("real", "inside"), root.Symlink("../outside/secret", "file"),
		root.Symlink(outside, "absolute"), os.WriteFile(filepath.Join(root.Name(), "old"), []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"out/secret", "inside/x", "absolute/secret", "out/new/x", "file/x", "old/x"} {
		if _, err := extract(t, root, written(t, file(name, "overwritten")), archive.Limits{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"out", "inside", "old"} {
		if _, err := extract(t, root, written(t, dir(name)), archive.Limits{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a directory %s: %v", name, err)
		}
	}
	if _, err := extract(t, root, written(t, file("real", "x")), archive.Limits{}); err == nil {
		t.Error("a file takes a directory's place")
	}
	// A link in a file's place is replaced, not followed.
	if _, err := extract(t, root, written(t, file("file", "new"), file("old", "new"), file("real/x", "in")), archive.Limits{}); err != nil {
		t.Error(err)
	}
	want := []string{"absolute L---------", "file 644 new", "inside L---------", "old 644 new", "out L---------", "real/ 755", "real/x 644 in"}
	if diff := cmp.Diff(want, listing(t, root.FS())); diff != "" {
		t.Error(diff)
	}
}

func TestAFileStaysUntilTheNewOneIsWhole(t *testing.T) {
	root, _ := destination(t)
	if err := root.WriteFile("a", []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	data := written(t, file("first", "1"), file("a", strings.Repeat("new", 100)))
	for cut := 1024; cut < len(data); cut += 50 {
		for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, fs.ErrClosed} {
			want := end
			if errors.Is(end, io.EOF) {
				want = io.ErrUnexpectedEOF
			}
			_, err := archive.Extract(t.Context(), io.MultiReader(bytes.NewReader(data[:cut]), iotest.ErrReader(end)), root, archive.Options{})
			if got, _ := root.ReadFile("a"); !errors.Is(err, want) || cut < 1536+300 && string(got) != "old" {
				t.Fatalf("cut at %d with %v: %v, %d bytes", cut, end, err, len(got))
			}
			if err := root.WriteFile("a", []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{"a 644 old", "first 644 1"}, listing(t, root.FS())); diff != "" {
		t.Error(diff)
	}
}

func TestExtractionEndsWithItsContext(t *testing.T) {
	root, _ := destination(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	data := written(t, file("a", strings.Repeat("x", 4096)))
	done := make(chan error)
	go func() {
		_, err := archive.Extract(ctx, r, root, archive.Options{})
		done <- err
	}()
	if _, err := w.Write(data[:1024]); err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = w.CloseWithError(io.ErrClosedPipe) // a reader that heeds its context would do so
	if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
	if got := listing(t, root.FS()); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

func TestOptionsRefuseNamesAndChangeModes(t *testing.T) {
	root, _ := destination(t)
	no := errors.New("not this one")
	opts := archive.Options{
		Refuse: func(name string) error {
			if strings.HasPrefix(name, "d/no") {
				return no
			}
			return nil
		},
		Mode: func(want fs.FileMode) fs.FileMode { return want&^0o022 | 0o700 },
	}
	open := &tar.Header{Typeflag: tar.TypeReg, Name: "d/open", Mode: 0o7777}
	shut := &tar.Header{Typeflag: tar.TypeDir, Name: "shut", Mode: 0}
	_, err := archive.Extract(t.Context(), bytes.NewReader(written(t, open, shut, file("d/no", "x"))), root, opts)
	if !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	root, _ = destination(t)
	_, err = archive.Extract(t.Context(), bytes.NewReader(written(t, open, shut)), root, opts)
	if diff := cmp.Diff([]string{"d/ 755", "d/open 755 ", "shut/ 700"}, listing(t, root.FS())); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
