package memory_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// tarOf is an archive of those names; one that ends in "/" is a directory,
// "a>b" a link.
func tarOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o640, Size: 1}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Mode, h.Size = tar.TypeDir, 0o750, 0
		} else if from, to, ok := strings.Cut(name, ">"); ok {
			h.Typeflag, h.Name, h.Linkname, h.Size = tar.TypeSymlink, from, to, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x")[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// box is a sandbox in a world of its own.
func box(t *testing.T) driver.Sandbox {
	t.Helper()
	w := memory.NewWorld()
	t.Cleanup(func() { _ = w.Close() })
	spec := order(t.Name())
	spec.Profile = driver.Strict
	s, err := memory.Open(memory.Options{World: w}).Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unpack(t *testing.T, f driver.Files, name string, data []byte) error {
	t.Helper()
	w, err := f.Unpack(t.Context(), name)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return errors.Join(err, w.Close())
}

// packed lists what Pack gives.
func packed(t *testing.T, f driver.Files, name string) ([]string, error) {
	t.Helper()
	r, err := f.Pack(t.Context(), name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	in := archive.NewReader(r, archive.Limits{})
	var out []string
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			for _, l := range in.Report().LeftOut {
				out = append(out, l.String())
			}
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, e.Name+" "+e.Mode.String())
	}
}

func TestADirectoryIsUnpackedAndPacked(t *testing.T) {
	s := box(t)
	f := s.Files()
	if err := unpack(t, f, "in/to", tarOf(t, "a", "d/", "d/.b", "e/f/g")); err != nil {
		t.Fatal(err)
	}
	run(t, s, "link", "/etc/passwd", "in/to/link")
	run(t, s, "fifo", "in/to/d/fifo")
	got, err := packed(t, f, "in/to")
	slices.Sort(got)
	want := []string{`"d/fifo" (FIFO or socket)`, `"link" (symbolic link)`, "a -rw-r-----", "d drwxr-x---", "d/.b -rw-r-----", "e drwxr-xr-x", "e/f drwxr-xr-x", "e/f/g -rw-r-----"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for name, code := range map[string]driver.Code{"nothing": driver.CodeNotFound, "in/to/a": driver.CodeInvalid, "/proc": driver.CodeDenied, "/": driver.CodeDenied, "": driver.CodeInvalid} {
		if _, err := packed(t, f, name); driver.CodeOf(err) != code {
			t.Errorf("pack %q: %v", name, err)
		}
	}
}

func TestAnArchiveThatMemoryRefuses(t *testing.T) {
	s := box(t)
	f := s.Files()
	run(t, s, "link", "/tmp", "link")
	for _, c := range []struct {
		name string
		in   string
		data []byte
		code driver.Code
		is   error
	}{
		{"climbs out", ".", tarOf(t, "../x"), driver.CodeInvalid, nil},
		{"goes through a link that is there", ".", tarOf(t, "link/x"), driver.CodeConflict, fs.ErrExist},
		{"holds a link", ".", tarOf(t, "a", "l>/etc/passwd"), driver.CodeInvalid, nil},
		{"is cut off", ".", tarOf(t, "a")[:700], driver.CodeInvalid, io.ErrUnexpectedEOF},
		{"goes into a file", "/etc/passwd", tarOf(t, "a"), driver.CodeConflict, fs.ErrExist},
		{"goes where nothing is written", "/etc", tarOf(t, "x/"), driver.CodeDenied, nil},
		{"goes to a place of the kernel's", "/", tarOf(t, "proc/x"), driver.CodeDenied, fs.ErrPermission},
		{"is larger than the disk", ".", append(tarOf(t), make([]byte, 30<<20)...), driver.CodeExhausted, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := unpack(t, f, c.in, c.data); driver.CodeOf(err) != c.code || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v", err)
			}
		})
	}
	if infos, err := f.List(t.Context(), "/tmp"); err != nil || len(infos) != 0 {
		t.Errorf("through the link came %v, %v", infos, err)
	}
}

func TestAStreamEndsWithItsContextAndItsSandbox(t *testing.T) {
	s := box(t)
	f := s.Files()
	if err := unpack(t, f, ".", tarOf(t, "a")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begin := func(ctx context.Context) []error {
		r, err1 := f.Pack(ctx, ".")
		w, err2 := f.Unpack(ctx, "new")
		o, _, err3 := f.Open(ctx, "a")
		c, err4 := f.Create(ctx, "new/file", 0o644)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		if ctx.Done() != nil && ctx != t.Context() {
			cancel()
		} else if err := s.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err1 = r.Read(make([]byte, 1))
		_, err2 = w.Write([]byte("x"))
		_, err3 = o.Read(make([]byte, 1))
		_, err4 = c.Write([]byte("x"))
		return []error{err1, err2, err3, err4, w.Close(), c.Close()}
	}
	for i, err := range begin(ctx) {
		if !errors.Is(err, context.Canceled) || driver.CodeOf(err) != "" {
			t.Errorf("%d: cancelled: %v", i, err)
		}
	}
	for i, err := range begin(t.Context()) {
		if driver.CodeOf(err) != driver.CodeGone {
			t.Errorf("%d: ended: %v", i, err)
		}
	}
}
