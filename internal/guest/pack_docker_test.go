//go:build dockertest

package guest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// tarOf is an archive of those names, each a file that holds its own name;
// "a/" is a directory, "a>b" a link, "a|" a FIFO.
func tarOf(t testing.TB, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o7755, Size: int64(len(name)), ModTime: time.Unix(1e9, 0)}
		from, to, isLink := strings.Cut(name, ">")
		switch {
		case isLink:
			h.Typeflag, h.Name, h.Linkname, h.Size = tar.TypeSymlink, from, to, 0
		case strings.HasSuffix(name, "/"):
			h.Typeflag, h.Mode, h.Size = tar.TypeDir, 0o2750, 0
		case strings.HasSuffix(name, "|"):
			h.Typeflag, h.Size = tar.TypeFifo, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, name[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (b *box) unpack(name string, data []byte) error {
	b.t.Helper()
	w, err := b.guest.Files().Unpack(limited(b.t, 60*time.Second), name)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return errors.Join(err, w.Close())
}

// packed describes what Pack gives.
func (b *box) packed(name string) ([]string, error) {
	b.t.Helper()
	r, err := b.guest.Files().Pack(limited(b.t, 60*time.Second), name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	in := archive.NewReader(r, archive.Limits{Depth: 300})
	var out []string
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			for _, l := range in.Report().LeftOut {
				out = append(out, l.String())
			}
			slices.Sort(out)
			return out, nil
		}
		if err != nil {
			return out, err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return out, err
		}
		out = append(out, fmt.Sprintf("%s %v %s", e.Name, e.Mode, text))
	}
}

func TestM84M93ADirectoryIsUnpackedAndPacked(t *testing.T) {
	b := owned(t)
	b.must(b.unpack("in/to", tarOf(t, "a", "d/", "d/.b", "e/f/g", "\xff\n", "d/sh ut/", "ü")))
	if r := b.run("sh", "-c", `cd in/to && mkfifo d/fifo && ln -s /etc/passwd l && ln a hard && mkdir none && chmod 4711 e/f/g && stat -c '%a %Y %U' a d; cat a`); r.stdout != "755 1000000000 UNKNOWN\n750 "+strings.Fields(r.stdout)[4]+" UNKNOWN\na" {
		t.Errorf("%+v", r)
	}
	got, err := b.packed("in/to")
	want := []string{
		`"d/fifo" (FIFO or socket)`, `"l" (symbolic link)`, "a -rwxr-xr-x a", "d drwxr-x--- ", "d/.b -rwxr-xr-x d/.b", "d/sh ut drwxr-x--- ", "e drwxr-xr-x ", "e/f drwxr-xr-x ",
		"e/f/g -rwx--x--x e/f/g", "hard -rwxr-xr-x a", "none drwxr-xr-x ", "ü -rwxr-xr-x ü", "\xff\n -rwxr-xr-x \xff\n",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestWhatIsNotPacked(t *testing.T) {
	b := owned(t)
	b.run("sh", "-c", "echo x > f; mkfifo fifo; mkdir -p in/shut; chmod 0 in/shut; ln -s /proc/self p; mkdir -p deep/$(yes d | head -300 | tr '\\n' '/')")
	for name, code := range map[string]driver.Code{
		"nothing": driver.CodeNotFound, "f": driver.CodeInvalid, "fifo": driver.CodeInvalid, "/": driver.CodeDenied, "/proc": driver.CodeDenied, "/dev": driver.CodeDenied, "p": driver.CodeDenied,
		"/.sandboxio": driver.CodeDenied, "in/shut": driver.CodeDenied, "in": driver.CodeDenied, "deep": driver.CodeExhausted, "a\x00b": driver.CodeInvalid, "": driver.CodeInvalid,
	} {
		if got, err := b.packed(name); driver.CodeOf(err) != code {
			t.Errorf("pack %q: %d entries, %.300v, want %s", name, len(got), err, code)
		}
	}
	b.run("sh", "-c", "chmod 700 in/shut; rm -rf deep")
}

func TestAnArchiveThatTheGuestRefuses(t *testing.T) {
	b := owned(t)
	b.run("sh", "-c", "ln -s /tmp link; mkdir dir; mkfifo fifo; echo old > file; ln -s /proc/self p")
	for _, c := range []struct {
		name string
		in   string
		data []byte
		code driver.Code
		is   error
		says string
	}{
		{"climbs out (M82)", ".", tarOf(t, "../x"), driver.CodeInvalid, nil, "leads out"},
		{"is absolute (M82)", ".", tarOf(t, "/work/x"), driver.CodeInvalid, nil, "absolute"},
		{"goes through a link that is there (M82)", ".", tarOf(t, "link/x"), driver.CodeConflict, fs.ErrExist, `"link"`},
		{"goes through a FIFO that is there", ".", tarOf(t, "fifo/x"), driver.CodeConflict, fs.ErrExist, `"fifo"`},
		{"wants a file where a directory is", ".", tarOf(t, "dir"), driver.CodeInvalid, nil, `"dir"`},
		{"wants a directory where a file is", ".", tarOf(t, "file/"), driver.CodeConflict, fs.ErrExist, `"file"`},
		{"holds a link (M82)", ".", tarOf(t, "l>/etc/passwd"), driver.CodeInvalid, nil, "symbolic link"},
		{"holds a FIFO", ".", tarOf(t, "f|"), driver.CodeInvalid, nil, "FIFO"},
		{"is cut off", ".", tarOf(t, "a")[:512], driver.CodeInvalid, nil, "cut off"},
		{"is no archive", ".", bytes.Repeat([]byte("nonsense"), 1000), driver.CodeInvalid, nil, "tar"},
		{"goes into a file", "file", tarOf(t, "a"), driver.CodeConflict, fs.ErrExist, ""},
		{"goes into the kernel's", "p", tarOf(t, "a"), driver.CodeDenied, fs.ErrPermission, ""},
		{"goes into the kernel's from above", "/", tarOf(t, "proc/x"), driver.CodeDenied, fs.ErrPermission, "/proc"},
		{"goes into shared memory from above", "/", tarOf(t, "dev/shm/x"), driver.CodeDenied, fs.ErrPermission, "/dev"},
		{"goes into the read-only root", "/", tarOf(t, "etc/x"), driver.CodeDenied, fs.ErrPermission, "etc/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := b.unpack(c.in, c.data)
			if driver.CodeOf(err) != c.code || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	if r := b.run("sh", "-c", "ls -A /tmp; cat file; ls -A"); r.stdout != "old\ndir\nfifo\nfile\nlink\np\n" {
		t.Errorf("%q", r.stdout)
	}
}

func TestAnUnpackingThatIsGivenUpLeavesNothingHalf(t *testing.T) {
	b := owned(t)
	b.must(b.put("b", 0o644, strings.NewReader("old")))
	ctx, cancel := context.WithCancel(limited(t, 20*time.Second))
	w, err := b.guest.Files().Unpack(ctx, ".")
	b.must(err)
	data := tarOf(t, "a", strings.Repeat("b", 1))
	if _, err := w.Write(data[:1024+512]); err != nil { // all of a, b's header
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "a is there", func() bool { got, _, _ := b.get("a"); return got == "a" })
	cancel()
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	eventually(t, 20*time.Second, "nothing else is left", func() bool { return b.run("ls", "-A").stdout == "a\nb\n" })
	if got, _, err := b.get("b"); got != "old" {
		t.Errorf("%q, %v", got, err)
	}
	eventually(t, 20*time.Second, "no helper is left", func() bool { return !strings.Contains(b.top(), "sandboxio-guest files") })
}

func TestAFullDiskEndsAnUnpacking(t *testing.T) {
	b := owned(t)
	var data bytes.Buffer
	w := archive.NewWriter(&data)
	b.must(w.Add(archive.Entry{Name: "small", Size: 1}, strings.NewReader("x")))
	b.must(w.Add(archive.Entry{Name: "big", Size: 100 << 20}, zeros(100<<20)))
	b.must(w.Close())
	err := b.unpack("d", data.Bytes())
	if driver.CodeOf(err) != driver.CodeExhausted || !strings.Contains(fmt.Sprint(err), `"big"`) {
		t.Errorf("%v", err)
	}
	eventually(t, 20*time.Second, "only what was whole is there", func() bool { return b.run("ls", "-A", "d").stdout == "small\n" })
}

func TestAStreamThatTheSandboxLeavesIsGone(t *testing.T) {
	b := owned(t)
	b.must(b.put("large", 0o644, zeros(32<<20)))
	f := b.guest.Files()
	ctx := limited(t, 30*time.Second)
	r, err := f.Pack(ctx, ".")
	b.must(err)
	o, _, err := f.Open(ctx, "large")
	b.must(err)
	w, err := f.Unpack(ctx, "new")
	b.must(err)
	c, err := f.Create(ctx, "file", 0o644)
	b.must(err)
	go func() { _ = b.guest.End(context.WithoutCancel(ctx)) }()
	_, err1 := io.Copy(io.Discard, r)
	_, err2 := io.Copy(io.Discard, o)
	block := make([]byte, 1<<20)
	var err3, err4 error
	for err3 == nil && ctx.Err() == nil {
		_, err3 = c.Write(block)
	}
	for err4 == nil && ctx.Err() == nil {
		_, err4 = w.Write(block)
	}
	for i, err := range []error{err1, err2, err3, err4, c.Close(), w.Close()} {
		if driver.CodeOf(err) != driver.CodeGone && !(i >= 2 && driver.CodeOf(err) == driver.CodeExhausted) && !(i >= 2 && driver.CodeOf(err) == driver.CodeInvalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestPackingAndUnpackingOnAnImageWithoutAnything(t *testing.T) {
	b := newBox(t, want{boot: guest.Boot{Owned: true}, image: emptyImage(t)})
	b.must(b.unpack("d", tarOf(t, "a", "b/c")))
	got, err := b.packed("/work")
	if want := []string{"d drwxr-xr-x ", "d/a -rwxr-xr-x a", "d/b drwxr-xr-x ", "d/b/c -rwxr-xr-x b/c"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// emptyImage is an image with no program at all.
func emptyImage(t testing.TB) string {
	t.Helper()
	ctx := limited(t, 30*time.Second)
	const name = "sandboxio-test-empty:files"
	r, err := engine.ImageImport(ctx, client.ImageImportSource{Source: bytes.NewReader(tarOf(t, "etc/")), SourceName: "-"}, name, client.ImageImportOptions{})
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := engine.ImageRemove(ctx, name, client.ImageRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	return name
}
