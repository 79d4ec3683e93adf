package drivertest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing/fstest"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// entry is what is asked of one in an archive.
type entry struct {
	kind byte
	mode int64
	data string
	link string
}

// stream makes a tar stream of named entries, in that order.
func stream(names []string, entries map[string]entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		e := entries[name]
		err := w.WriteHeader(&tar.Header{Name: name, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.data)), Linkname: e.link})
		if err == nil {
			_, err = io.WriteString(w, e.data)
		}
		if err != nil {
			return nil, fmt.Errorf("tar of %q: %w", name, err)
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func (t *trial) unpack(f driver.Files, dir string, data []byte) error {
	w, err := f.Unpack(t, dir)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return errors.Join(err, w.Close())
}

// packed takes apart what Pack gives.
func (t *trial) packed(f driver.Files, dir string) (map[string]entry, error) {
	r, err := f.Pack(t, dir)
	if err != nil {
		return nil, err
	}
	out := map[string]entry{}
	read := tar.NewReader(r)
	for {
		h, err := read.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r) // to the whole end
			return out, errors.Join(err, r.Close())
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(read)
		}
		if err != nil {
			return out, errors.Join(err, r.Close())
		}
		out[strings.TrimSuffix(h.Name, "/")] = entry{h.Typeflag, h.Mode & 0o7777, string(data), h.Linkname}
	}
}

// archives asks how whole directories go in and come out.
var archives = []Check{
	onFiles("archive: a directory goes in and comes out with every name, mode and byte (M84, M93)", func(t *trial, s driver.Sandbox, f driver.Files) error {
		in := map[string]entry{
			"sub": {tar.TypeDir, 0o750, "", ""}, "empty": {tar.TypeDir, 0o755, "", ""},
			"program": {tar.TypeReg, 0o755, "\x00\xff\r\n", ""}, ".hidden": {tar.TypeReg, 0o600, "hidden", ""}, "sub/.deep": {tar.TypeReg, 0o640, "deep", ""},
			"sub/-odd\nü $(id)": {tar.TypeReg, 0o644, "odd", ""}, "big": {tar.TypeReg, 0o644, strings.Repeat("0123456789", 200_000), ""}, "none": {tar.TypeReg, 0o444, "", ""},
		}
		data, err := stream([]string{"sub", "empty", "program", ".hidden", "sub/.deep", "sub/-odd\nü $(id)", "big", "none"}, in)
		if err != nil {
			return err
		}
		if err := t.unpack(f, "tree", data); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if got, err := t.say(s, Copy, "/work/tree/sub/.deep"); err != nil || got != "deep" {
			return fmt.Errorf("a program reads %q, %v", got, err)
		}
		out, err := t.packed(f, "tree")
		if err != nil {
			return fmt.Errorf("pack: %w", err)
		}
		delete(out, ".")
		for name, want := range in {
			if got := out[name]; got != want {
				return fmt.Errorf("%q comes out as %c %o, %d bytes; it was %c %o, %d bytes", name, got.kind, got.mode, len(got.data), want.kind, want.mode, len(want.data))
			}
		}
		if len(out) != len(in) {
			return fmt.Errorf("%d entries come out as %d", len(in), len(out))
		}
		return nil
	}),
	onFiles("archive: no name and no link in one leads out of its directory (M82)", func(t *trial, s driver.Sandbox, f driver.Files) error {
		file := entry{tar.TypeReg, 0o644, "evil", ""}
		for what, c := range map[string]struct {
			names   []string
			entries map[string]entry
		}{
			"an absolute name":   {[]string{"/tmp/evil"}, map[string]entry{"/tmp/evil": file}},
			"a name with ..":     {[]string{"../../tmp/evil"}, map[string]entry{"../../tmp/evil": file}},
			"a name with a/..":   {[]string{"a/../../../tmp/evil"}, map[string]entry{"a/../../../tmp/evil": file}},
			"a symbolic link":    {[]string{"link", "link/evil"}, map[string]entry{"link": {tar.TypeSymlink, 0o777, "", "/tmp"}, "link/evil": file}},
			"a hard link":        {[]string{"hard"}, map[string]entry{"hard": {tar.TypeLink, 0o644, "", "/etc/passwd"}}},
			"a device":           {[]string{"device"}, map[string]entry{"device": {tar.TypeChar, 0o666, "", ""}}},
			"a link in its way":  {[]string{"planted/evil"}, map[string]entry{"planted/evil": file}},
			"a link as its file": {[]string{"out"}, map[string]entry{"out": file}},
		} {
			dir := "/work/" + strings.Map(func(r rune) rune {
				if r < 'a' || r > 'z' {
					return '-'
				}
				return r
			}, what)
			if err := f.Mkdir(t, dir, 0o755); err != nil {
				return err
			}
			_, perr := t.say(s, Link, "/tmp", dir+"/planted")
			_, oerr := t.say(s, Link, "/tmp/evil", dir+"/out")
			data, err := stream(c.names, c.entries)
			if err := errors.Join(perr, oerr, err); err != nil {
				return err
			}
			err = t.unpack(f, dir, data)
			if _, serr := f.Stat(t, "/tmp/evil"); serr == nil {
				return fmt.Errorf("%s leads out", what)
			}
			if strings.Contains(what, "in its way") || strings.Contains(what, "as its file") {
				continue // it may be replaced
			}
			if err := wantCode(what, err, driver.CodeInvalid); err != nil {
				return err
			}
		}
		return nil
	}),
	onFiles("archive: links and FIFOs come out as such, and are neither followed nor opened", func(t *trial, s driver.Sandbox, f driver.Files) error {
		if err := f.Mkdir(t, "tree", 0o755); err != nil {
			return err
		}
		_, lerr := t.say(s, Link, "/etc/passwd", "/work/tree/link")
		_, ferr := t.say(s, Fifo, "/work/tree/fifo")
		if err := errors.Join(lerr, ferr, t.writeFile(f, "tree/file", []byte("x"), 0o644)); err != nil {
			return err
		}
		var out map[string]entry
		err := t.bounded("pack", func() (err error) { out, err = t.packed(f, "tree"); return err })
		if err != nil {
			return err
		}
		if out["link"].kind != tar.TypeSymlink || out["link"].data != "" || out["fifo"].kind != tar.TypeFifo || out["file"].data != "x" {
			return fmt.Errorf("they come out as %v", out)
		}
		return nil
	}),
	onFiles("archive: what is cut off on its way in leaves no part of a file", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		data, err := stream([]string{"whole", "half"}, map[string]entry{"whole": {tar.TypeReg, 0o644, "whole", ""}, "half": {tar.TypeReg, 0o644, strings.Repeat("x", 1<<20), ""}})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		for _, dir := range []string{"left", "ended"} { // by its caller; by its stream
			w, err := f.Unpack(ctx, dir)
			if err != nil {
				return err
			}
			if _, err := w.Write(data[:len(data)/2]); err != nil {
				return err
			}
			if dir == "ended" {
				err = wantCode("close", w.Close(), driver.CodeInvalid)
			} else {
				cancel()
				err = plain("close", w.Close(), context.Canceled)
				ctx = t
			}
			if err != nil {
				return err
			}
			// Those that were whole may be there, and nothing else.
			if err := t.eventually(soon, "a part is left", func() (bool, error) {
				got, err := names(t, f, dir)
				return len(got) == 0 || len(got) == 1 && got[0] == "whole", err
			}); err != nil {
				return err
			}
		}
		return nil
	}),
	onFiles("archive: a caller who leaves while one comes out is told plainly", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		// Bytes that are no holes.
		if err := errors.Join(f.Mkdir(t, "tree", 0o755), t.writeFile(f, "tree/full", bytes.Repeat([]byte("x"), 4<<20), 0o644)); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		r, err := f.Pack(ctx, "tree")
		if err != nil {
			return err
		}
		defer r.Close()
		block := make([]byte, 4096)
		if _, err := r.Read(block); err != nil {
			return err
		}
		cancel()
		return t.bounded("reading on", func() error {
			for n := 0; ; {
				more, err := r.Read(block)
				if n += more; err != nil {
					return plain(fmt.Sprintf("after %d bytes", n), err, context.Canceled)
				}
			}
		})
	}),
	capped("caps: no more disk than allowed, unpacked from an archive", func(r *driver.Resources) { r.DiskMiB = 8 }, func(t *trial, s driver.Sandbox, r driver.Resources) error {
		if !t.b.Info().Can(driver.CanFiles) {
			return nil // "files, undeclared" asks
		}
		all, in := []string{}, map[string]entry{}
		for i := range 2 * int(r.DiskMiB) {
			name := fmt.Sprint(i)
			all, in[name] = append(all, name), entry{tar.TypeReg, 0o644, strings.Repeat("x", 1<<20), ""}
		}
		data, err := stream(all, in)
		if err != nil {
			return err
		}
		f := s.Files()
		if err := wantCode("unpacking twice the cap", t.unpack(f, "/work/tree", data), driver.CodeExhausted); err != nil {
			return err
		}
		return f.Remove(t, "/work/tree", true)
	}),
	{Name: "files: a directory is a file system as io/fs wants one, up and down again", Capability: driver.CanFiles, Kind: Proof, Func: through(func(t *trial, s *sandbox.Sandbox, _ driver.Sandbox) error {
		local := fstest.MapFS{
			"a/b/file": {Data: []byte("deep"), Mode: 0o644}, "a/program": {Data: []byte("#!"), Mode: 0o755}, ".hidden": {Data: []byte("x"), Mode: 0o600}, "empty": {Mode: 0o644},
		}
		if _, err := s.Files().Upload(t, local, "tree"); err != nil {
			return fmt.Errorf("upload: %w", err)
		}
		view := s.Files().FS(t, "tree")
		want := []string{}
		for name := range maps.Keys(local) {
			want = append(want, name)
		}
		if err := fstest.TestFS(view, want...); err != nil {
			return err
		}
		got, err := view.Open("a/program")
		if err != nil {
			return err
		}
		defer got.Close()
		info, err := got.Stat()
		if err == nil && info.Mode() != 0o755 {
			err = fmt.Errorf("its mode is %v", info.Mode())
		}
		return err
	})},
}
