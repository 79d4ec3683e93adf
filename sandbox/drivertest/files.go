package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func onFiles(name string, f func(t *trial, s driver.Sandbox, files driver.Files) error) Check {
	return Check{Name: name, Capability: driver.CanFiles, Kind: Proof, Func: inside(func(t *trial, s driver.Sandbox) error { return f(t, s, s.Files()) })}
}

// control marks a check as one of a real control.
func control(c Check) Check {
	c.Control = true
	return c
}

func (t *trial) writeFile(f driver.Files, name string, data []byte, mode fs.FileMode) error {
	w, err := f.Create(t, name, mode)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	_, err = w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (t *trial) readFile(f driver.Files, name string) ([]byte, driver.FileInfo, error) {
	r, info, err := f.Open(t, name)
	if err != nil {
		return nil, info, fmt.Errorf("open %s: %w", name, err)
	}
	data, err := io.ReadAll(r)
	return data, info, errors.Join(err, r.Close())
}

var files = []Check{
	onFiles("files: a file comes back as it was written, with its mode (M84, M86, M92)", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		for _, c := range []struct {
			name string
			data []byte
			mode fs.FileMode
			want fs.FileMode
		}{
			{"/work/empty", nil, 0o644, 0o644},
			{"/tmp/program", bytes.Repeat([]byte("\x00\xff\r\n"), 256<<10), 0o755, 0o755},
			{"relative", []byte("x"), 0o600, 0o600},
			{"/work/setuid", []byte("x"), 0o755 | fs.ModeSetuid, 0o755},
			{"/work/ü $(id) ;'\"", []byte("x"), 0o644, 0o644},
		} {
			if err := t.writeFile(f, c.name, c.data, c.mode); err != nil {
				return err
			}
			data, info, err := t.readFile(f, c.name)
			if err != nil {
				return err
			}
			if !bytes.Equal(data, c.data) || info.Size != int64(len(c.data)) || info.Mode != c.want {
				return fmt.Errorf("%s: %d bytes come back as %d, %+v", c.name, len(c.data), len(data), info)
			}
			if st, err := f.Stat(t, c.name); err != nil || st.Name != info.Name || st.Mode != c.want || st.Size != info.Size {
				return fmt.Errorf("stat %s: %+v, %v", c.name, st, err)
			}
		}
		_, err := f.Stat(t, "/work/relative")
		return err
	}),
	onFiles("files: a file appears whole, or not at all", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		if err := t.writeFile(f, "old", []byte("old"), 0o644); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t)
		defer cancel()
		for _, name := range []string{"new", "old"} {
			w, err := f.Create(ctx, name, 0o644)
			if err != nil {
				return err
			}
			if _, err := w.Write([]byte("half of ")); err != nil {
				return err
			}
			if err := untouched(t, f, "while it is written"); err != nil {
				return err
			}
			defer w.Close() // after the context has ended, it must not put the file in place
		}
		cancel()
		if err := untouched(t, f, "when the writer has left"); err != nil {
			return err
		}
		w, err := f.Create(t, "new", 0o644)
		if err != nil {
			return err
		}
		_, err = w.Write([]byte("whole"))
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		data, _, err := t.readFile(f, "new")
		if err == nil && string(data) != "whole" {
			err = fmt.Errorf("it holds %q", data)
		}
		return err
	}),
	onFiles("files: what does not exist is fs.ErrNotExist (M97)", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		_, _, open := f.Open(t, "nothing")
		_, stat := f.Stat(t, "nothing")
		_, list := f.List(t, "nothing")
		_, below := f.Stat(t, "/work/nothing/at/all")
		rename := f.Rename(t, "nothing", "something")
		for op, err := range map[string]error{"open": open, "stat": stat, "list": list, "stat below": below, "rename": rename} {
			if !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: %v", op, err)
			}
			if err := wantCode(op, err, driver.CodeNotFound); err != nil {
				return err
			}
		}
		return nil
	}),
	onFiles("files: programs and files see one another at once (M89)", func(t *trial, s driver.Sandbox, f driver.Files) error {
		if err := t.writeFile(f, "/work/in", []byte("from outside"), 0o644); err != nil {
			return err
		}
		if got, err := t.say(s, Copy, "/work/in"); err != nil || got != "from outside" {
			return fmt.Errorf("a program reads %q, %v", got, err)
		}
		if _, err := t.say(s, Write, "/work/out"); err != nil {
			return err
		}
		data, _, err := t.readFile(f, "/work/out")
		if err == nil && string(data) != "x" {
			err = fmt.Errorf("a program's file holds %q", data)
		}
		return err
	}),
	control(onFiles("files: no name and no link leads to what is refused (M82)", func(t *trial, s driver.Sandbox, f driver.Files) error {
		names := []string{"/proc/self/environ", "/proc/1/environ", "/proc/1/root/etc/passwd", "/sys/kernel", "/dev/zero", "/work/../proc/version", "../../../proc/version"}
		for i, target := range []string{"/proc/1/environ", "/proc/self/root", "/dev/zero", "/proc/self/fd/0"} {
			name := fmt.Sprintf("/work/link%d", i)
			if _, err := t.say(s, Link, target, name); err != nil {
				return err
			}
			names = append(names, name)
		}
		if _, err := t.say(s, Link, "/proc", "/work/directory"); err != nil {
			return err
		}
		names = append(names, "/work/directory/version", "/work/directory/self/environ")
		ctx, cancel := context.WithTimeout(t, soon)
		defer cancel()
		for _, name := range names {
			r, info, err := f.Open(ctx, name)
			if err == nil {
				return errors.Join(fmt.Errorf("%s is opened: %+v", name, info), r.Close())
			}
			if ctx.Err() != nil {
				return fmt.Errorf("opening %s does not end", name)
			}
		}
		return nil
	})),
	onFiles("files: opening a FIFO does not block", func(t *trial, s driver.Sandbox, f driver.Files) error {
		if _, err := t.say(s, Fifo, "/work/fifo"); err != nil {
			return err
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t, soon)
		defer cancel()
		if r, _, err := f.Open(ctx, "/work/fifo"); err == nil {
			_, _ = io.Copy(io.Discard, r)
			_ = r.Close()
		}
		if took := time.Since(begun); took > soon/2 {
			return fmt.Errorf("it took %v", took)
		}
		info, err := f.Stat(t, "/work/fifo")
		if err == nil && info.Mode.Type() != fs.ModeNamedPipe {
			err = fmt.Errorf("its mode is %v", info.Mode)
		}
		return err
	}),
	onFiles("files: directories list all they hold, links as links (M90, M93)", func(t *trial, s driver.Sandbox, f driver.Files) error {
		if err := f.Mkdir(t, "dir/sub", 0o755); err != nil {
			return err
		}
		for _, name := range []string{"dir/.hidden", "dir/plain", "dir/sub/deep"} {
			if err := t.writeFile(f, name, []byte("abc"), 0o640); err != nil {
				return err
			}
		}
		if _, err := t.say(s, Link, "plain", "/work/dir/link"); err != nil {
			return err
		}
		infos, err := f.List(t, "dir")
		if err != nil {
			return err
		}
		var got []string
		for _, i := range infos {
			got = append(got, fmt.Sprintf("%s %v %s", i.Name, i.Mode.Type(), i.Link))
			if i.Name == "plain" && (i.Size != 3 || i.Mode != 0o640) {
				return fmt.Errorf("listed as %+v", i)
			}
		}
		slices.Sort(got)
		want := []string{".hidden ---------- ", "link L--------- plain", "plain ---------- ", "sub d--------- "}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		if info, err := f.Stat(t, "dir/link"); err != nil || info.Link != "plain" {
			return fmt.Errorf("stat of a link: %+v, %v", info, err)
		}
		return nil
	}),
	onFiles("files: names are made, moved and removed", func(t *trial, s driver.Sandbox, f driver.Files) error {
		if err := errors.Join(f.Mkdir(t, "a/b/c", 0o755), f.Mkdir(t, "a/b/c", 0o755), f.Mkdir(t, "kept", 0o755)); err != nil {
			return fmt.Errorf("mkdir: %w", err)
		}
		if err := errors.Join(t.writeFile(f, "a/b/c/file", []byte("x"), 0o644), t.writeFile(f, "kept/file", []byte("x"), 0o644)); err != nil {
			return err
		}
		if err := f.Rename(t, "a/b/c/file", "/tmp/moved"); err == nil {
			if _, err := f.Stat(t, "/tmp/moved"); err != nil { // across file systems it may be refused, not lost
				return fmt.Errorf("rename lost it: %w", err)
			}
			if err := f.Rename(t, "/tmp/moved", "a/b/c/file"); err != nil {
				return err
			}
		}
		if err := f.Rename(t, "a/b/c/file", "a/b/c/file2"); err != nil {
			return fmt.Errorf("rename: %w", err)
		}
		if _, err := f.Stat(t, "a/b/c/file"); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the old name: %v", err)
		}
		if err := f.Remove(t, "a", false); err == nil {
			return errors.New("a directory that is not empty was removed without recursive")
		}
		if _, err := t.say(s, Link, "/work/kept", "/work/a/link"); err != nil {
			return err
		}
		if err := f.Remove(t, "a", true); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
		if _, err := f.Stat(t, "a"); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("what was removed: %v", err)
		}
		if _, err := f.Stat(t, "kept/file"); err != nil {
			return fmt.Errorf("behind a link: %w", err)
		}
		return nil
	}),
	{Name: "files, undeclared: every call is refused", Capability: driver.CanFiles, Kind: Refusal, Func: inside(func(t *trial, s driver.Sandbox) error {
		_, _, open := s.Files().Open(t, "/etc/passwd")
		_, create := s.Files().Create(t, "x", 0o644)
		_, stat := s.Files().Stat(t, "/etc/passwd")
		_, pack := s.Files().Pack(t, "/etc")
		_, unpack := s.Files().Unpack(t, "x")
		for op, err := range map[string]error{"open": open, "create": create, "stat": stat, "pack": pack, "unpack": unpack} {
			if err := wantCode(op, err, driver.CodeUnsupported); err != nil {
				return err
			}
		}
		return nil
	})},
}

// untouched fails unless "new" does not exist and "old" is what it was.
func untouched(t *trial, f driver.Files, when string) error {
	if _, err := f.Stat(t, "new"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: a new file is there (%v)", when, err)
	}
	if data, _, err := t.readFile(f, "old"); err != nil || strings.TrimSpace(string(data)) != "old" {
		return fmt.Errorf("%s: the old file holds %q, %v", when, data, err)
	}
	return nil
}
