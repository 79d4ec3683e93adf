package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

// seeds are archives of every kind that the tests know.
func seeds(t testing.TB) [][]byte {
	t.Helper()
	var long []*tar.Header
	for i := range 12 {
		long = append(long, file(fmt.Sprintf("d%d/f", i), "content"))
	}
	return [][]byte{
		nil, make([]byte, 1024),
		written(t, file("a", "content"), dir("d"), file("d/b", ""), file(".c", "x")),
		written(t, link("a", "../outside"), file("a/secret", "x")), written(t, file("out/secret", "x")), written(t, file("in/x", "x")), written(t, dir("out")), written(t, file("file", "x")),
		written(t, file("../outside/secret", "x")), written(t, file("/etc/passwd", "x")), written(t, file("a/../../outside/secret", "x")),
		written(t, kindOf(tar.TypeLink, "h"), kindOf(tar.TypeChar, "c"), kindOf(tar.TypeBlock, "b"), kindOf(tar.TypeFifo, "f"), kindOf('Z', "z")),
		written(t, &tar.Header{Typeflag: tar.TypeReg, Name: "setuid", Mode: 0o7777}, &tar.Header{Typeflag: tar.TypeDir, Name: "sticky", Mode: 0o7000}),
		written(t, &tar.Header{Typeflag: tar.TypeReg, Name: "pax", Format: tar.FormatPAX, PAXRecords: map[string]string{"path": "../outside/secret", "SCHILY.xattr.user.x": "y"}}),
		written(t, &tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"path": "../x"}}),
		written(t, long...), sparseArchive("sparse", 4096), sparseArchive("bomb", 1<<60), oldSparse(t, "old", 5000), oldSparse(t, "bomb", 1<<40),
	}
}

// mend gives every header block the checksum that it should have, so that
// what is tried gets past it.
func mend(data []byte) []byte {
	data = bytes.Clone(data)
	for b := data; len(b) >= 512; b = b[512:] {
		if !bytes.HasPrefix(b[257:], []byte("ustar")) {
			continue
		}
		copy(b[148:], "        ")
		sum := 0
		for _, c := range b[:512] {
			sum += int(c)
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	}
	return data
}

// FuzzExtract extracts anything into a directory that has links planted in
// it. Whatever it is: nothing happens outside, only files and directories are
// made, without special bits, within the limits, and nothing is left half.
func FuzzExtract(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	limits := archive.Limits{Bytes: 10_000, Entries: 16, Depth: 5, Name: 300}
	f.Fuzz(func(t *testing.T, data []byte) {
		top := t.TempDir()
		outside, in := filepath.Join(top, "outside"), filepath.Join(top, "in")
		planted := map[string]string{"out": "../outside", "in": "real", "file": "../outside/secret", "abs": outside, "up": ".."}
		err := errors.Join(os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "secret"), []byte("untouched"), 0o644), os.MkdirAll(filepath.Join(in, "real"), 0o755))
		for name, target := range planted {
			err = errors.Join(err, os.Symlink(target, filepath.Join(in, name)))
		}
		root, rerr := os.OpenRoot(in)
		if err := errors.Join(err, rerr); err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		report, err := archive.Extract(t.Context(), bytes.NewReader(mend(data)), root, archive.Options{Limits: limits})
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		made, size := 0, int64(0)
		walk := func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if name, err = filepath.Rel(in, name); err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if target, ok := planted[name]; ok && d.Type() == fs.ModeSymlink {
				if now, err := root.Readlink(name); err != nil || now != target {
					t.Errorf("%s is a link to %q now, %v", name, now, err)
				}
				return nil
			}
			if name == "." || name == "real" {
				return nil
			}
			if info.Mode()&^(fs.ModePerm|fs.ModeDir) != 0 || bytes.Contains([]byte(name), []byte(".sandboxio-")) {
				t.Errorf("%q %v was made", name, info.Mode())
			}
			if made++; info.Mode().IsRegular() {
				size += info.Size()
			} else if d.IsDir() { // it may be shut to all but root
				if err := os.Chmod(filepath.Join(in, name), 0o700); err != nil {
					return err
				}
			}
			return nil
		}
		if err := filepath.WalkDir(in, walk); err != nil {
			t.Error(err)
		}
		if made > limits.Entries || size > limits.Bytes || report.Bytes > limits.Bytes || report.Files+report.Dirs+report.LeftOutCount > limits.Entries {
			t.Errorf("%d things of %d bytes were made; %+v", made, size, report)
		}
		if err == nil && size > report.Bytes {
			t.Errorf("%d bytes are there, %d reported", size, report.Bytes)
		}
		if b, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(b) != "untouched" {
			t.Errorf("outside: %q, %v", b, err)
		}
		if names, err := os.ReadDir(outside); err != nil || len(names) != 1 {
			t.Errorf("outside: %v, %v", names, err)
		}
		if names, err := os.ReadDir(top); err != nil || len(names) != 2 {
			t.Errorf("above: %v, %v", names, err)
		}
	})
}
