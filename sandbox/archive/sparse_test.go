package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

// block makes a header block, as a program without our scruples would.
func block(name string, flag byte, size int64, more func(b []byte)) []byte {
	b := make([]byte, 512)
	copy(b, name)
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[124:], fmt.Sprintf("%011o\x00", size))
	copy(b[136:], "00000000000\x00")
	b[156] = flag
	if more != nil {
		more(b)
	} else {
		copy(b[257:], "ustar\x0000")
	}
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

func pad(b []byte) []byte { return append(b, make([]byte, -len(b)&511)...) }

func record(k, v string) string {
	n := len(k) + len(v) + 3
	for len(fmt.Sprint(n))+len(k)+len(v)+3 != n {
		n = len(fmt.Sprint(n)) + len(k) + len(v) + 3
	}
	return fmt.Sprintf("%d %s=%s\n", n, k, v)
}

// sparseArchive is a file of that size with three bytes in its middle.
func sparseArchive(name string, size int64) []byte {
	records := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", name) + record("GNU.sparse.realsize", fmt.Sprint(size))
	out := block("pax", tar.TypeXHeader, int64(len(records)), nil)
	out = append(out, pad([]byte(records))...)
	content := pad(fmt.Appendf(nil, "1\n%d\n3\n", size/2))
	content = append(content, "mid"...)
	out = append(out, block("placeholder", tar.TypeReg, int64(len(content)), nil)...)
	return append(append(out, pad(content)...), make([]byte, 1024)...)
}

// oldSparse is the same in GNU's first format.
func oldSparse(t testing.TB, name string, size int64) []byte {
	t.Helper()
	octal := func(b []byte, n int64) {
		if n < 1<<33 {
			copy(b, fmt.Sprintf("%011o", n))
			return
		}
		b[0] = 0x80
		for i := range 8 {
			b[11-i] = byte(n >> (8 * i))
		}
	}
	out := block(name, tar.TypeGNUSparse, 3, func(b []byte) {
		copy(b[257:], "ustar  \x00")
		octal(b[386:], size/2)
		octal(b[386+12:], 3)
		octal(b[483:], size)
	})
	return append(append(out, pad([]byte("mid"))...), make([]byte, 1024)...)
}

// Of a file in too many pieces the holes are sent as zeros, from its beginning.
func TestAFileInManyPiecesArrivesWhole(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(5000) {
		if _, err := f.WriteAt([]byte{byte(i)}, i*(16<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	if _, err := archive.Write(t.Context(), &made, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	root, _ := destination(t)
	if _, err := extract(t, root, made.Bytes(), archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := root.ReadFile("f")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d came, %v", len(got), len(want), err)
	}
}

func TestSparseFilesStaySparse(t *testing.T) {
	const size = 48 << 20
	for name, data := range map[string][]byte{"pax": sparseArchive("f", size), "gnu": oldSparse(t, "f", size)} {
		t.Run(name, func(t *testing.T) {
			root, _ := destination(t)
			report, err := extract(t, root, data, archive.Limits{})
			if err != nil || report.Bytes != size || report.Files != 1 {
				t.Fatalf("%+v, %v", report, err)
			}
			f, err := root.Open("f")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			mid := make([]byte, 5)
			_, rerr := f.ReadAt(mid, size/2-1)
			if err != nil || rerr != nil || info.Size() != size || !bytes.Equal(mid, []byte("\x00mid\x00")) {
				t.Errorf("%v, %q, %v, %v", info, mid, err, rerr)
			}
			if used := allocated(info); used > 1<<20 {
				t.Errorf("%d bytes are allocated", used)
			}
		})
	}
}

func TestZerosThatWereSentAreWritten(t *testing.T) {
	root, _ := destination(t)
	if _, err := extract(t, root, written(t, file("f", strings.Repeat("\x00", 1<<20))), archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(root.Name() + "/f")
	if err != nil || info.Size() != 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestHolesAreNotSent(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // no holes are known there
	}
	const size = 64 << 20
	src := t.TempDir()
	for name, at := range map[string][]int64{"begin": {0}, "middle": {1 << 20, 30 << 20}, "end": {size - 3}, "none": {}} {
		f, err := os.Create(filepath.Join(src, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range at {
			if _, err := f.WriteAt([]byte("abc"), at); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(f.Truncate(size), f.Close(), os.Chmod(f.Name(), 0o640), os.Chtimes(f.Name(), time.Unix(1e9, 0), time.Unix(1e9, 0))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(src, "dense"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	report, err := archive.Write(t.Context(), &b, os.DirFS(src))
	if err != nil || report.Bytes != 4*size+1<<20 {
		t.Fatalf("%+v, %v", report, err)
	}
	if b.Len() > 2<<20 {
		t.Errorf("%d bytes were sent", b.Len())
	}
	root, _ := destination(t)
	if _, err := extract(t, root, b.Bytes(), archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"begin", "middle", "end", "none", "dense"} {
		want, err1 := os.ReadFile(filepath.Join(src, name))
		got, err2 := root.ReadFile(name)
		was, err3 := os.Stat(filepath.Join(src, name))
		is, err4 := root.Stat(name)
		if err := errors.Join(err1, err2, err3, err4); err != nil || !bytes.Equal(want, got) || is.Mode() != was.Mode() || is.ModTime().Unix() != was.ModTime().Unix() {
			t.Errorf("%s: %d bytes of %d, %v and %v, %v", name, len(got), len(want), was, is, err)
		}
		if used := allocated(is); used > 1<<20 {
			t.Errorf("%s: %d bytes are allocated", name, used)
		}
	}
	if _, err := extract(t, root, b.Bytes(), archive.Limits{Bytes: size}); err == nil {
		t.Error("holes do not count")
	}
}
