package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// names lists what is in a directory, sorted.
func names(ctx context.Context, f driver.Files, dir string) ([]string, error) {
	infos, err := f.List(ctx, dir)
	out := make([]string, 0, len(infos))
	for _, i := range infos {
		out = append(out, i.Name)
	}
	slices.Sort(out)
	return out, err
}

// sameNames waits until a directory holds what it held before: what was given
// up may take a moment to be removed.
func (t *trial) sameNames(f driver.Files, dir string, before []string) error {
	var after []string
	err := t.eventually(soon, "something is left", func() (bool, error) {
		var err error
		after, err = names(t, f, dir)
		return slices.Equal(before, after), err
	})
	if err != nil {
		return fmt.Errorf("%w: %q were there, now %q", err, before, after)
	}
	return nil
}

// places asks finer questions of names, directories and what is put in them.
var places = []Check{
	onFiles("files: every legal name serves, as bytes (M88, M95)", func(t *trial, s driver.Sandbox, f driver.Files) error {
		if err := f.Mkdir(t, "odd", 0o755); err != nil {
			return err
		}
		all := []string{
			"-rf", " ", "a b", "a\nb", "*", "?", "~", "#", "..a", "...", ".hidden", `a\b`, `C:\x`, "$(id)", "`id`", `"'`, "%2e%2e", "%s",
			"é", "e\u0301", "\xff\xfe", "\x01", strings.Repeat("x", 255),
		}
		for _, name := range all {
			if err := t.writeFile(f, "odd/"+name, []byte(name), 0o644); err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
		}
		got, err := names(t, f, "odd")
		slices.Sort(all)
		if err != nil || !slices.Equal(got, all) {
			return fmt.Errorf("listed are %q, %v; want %q", got, err, all)
		}
		for _, name := range all {
			data, info, err := t.readFile(f, "odd/"+name)
			if err != nil || string(data) != name || info.Name != name {
				return fmt.Errorf("%q holds %q, %+v, %v", name, data, info, err)
			}
			if got, err := t.say(s, Copy, "/work/odd/"+name); err != nil || got != name {
				return fmt.Errorf("a program reads %q in %q, %v", got, name, err)
			}
		}
		return nil
	}),
	onFiles("files: a name that cannot be one is refused by name", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		for _, name := range []string{"", "a\x00b"} {
			_, _, open := f.Open(t, name)
			_, create := f.Create(t, name, 0o644)
			_, stat := f.Stat(t, name)
			_, list := f.List(t, name)
			for op, err := range map[string]error{
				"open": open, "create": create, "stat": stat, "list": list,
				"mkdir": f.Mkdir(t, name, 0o755), "remove": f.Remove(t, name, true), "rename": f.Rename(t, name, "x"),
			} {
				if err := wantField(err, driver.CodeInvalid, "name"); err != nil {
					return fmt.Errorf("%s %q: %w", op, name, err)
				}
			}
			if err := wantField(f.Rename(t, "x", name), driver.CodeInvalid, "to"); err != nil {
				return fmt.Errorf("rename to %q: %w", name, err)
			}
		}
		return nil
	}),
	onFiles("files: what is written anew replaces content and mode", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		before := time.Now()
		for _, c := range []struct {
			data string
			mode fs.FileMode
		}{{"a long text", 0o644}, {"short", 0o750}, {"", 0o400}, {"again", 0o644}} {
			if err := t.writeFile(f, "file", []byte(c.data), c.mode); err != nil {
				return err
			}
			data, info, err := t.readFile(f, "file")
			if err != nil || string(data) != c.data || info.Mode != c.mode || info.Size != int64(len(c.data)) {
				return fmt.Errorf("%q comes back as %q, %+v, %v", c.data, data, info, err)
			}
			if age := info.ModTime.Sub(before); age < -30*time.Second || age > time.Minute {
				return fmt.Errorf("it was last changed at %v; it was %v", info.ModTime, time.Now())
			}
		}
		return nil
	}),
	onFiles("files: a directory is no file, and a file no directory", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		if err := errors.Join(f.Mkdir(t, "dir", 0o755), t.writeFile(f, "file", []byte("x"), 0o644)); err != nil {
			return err
		}
		r, _, open := f.Open(t, "dir")
		if open == nil {
			_, open = io.ReadAll(r)
		}
		_, list := f.List(t, "file")
		for op, err := range map[string]error{
			"open of a directory": open, "create over a directory": t.writeFile(f, "dir", []byte("x"), 0o644), "list of a file": list,
			"mkdir over a file": f.Mkdir(t, "file", 0o755), "create below a file": t.writeFile(f, "file/x", []byte("x"), 0o644),
		} {
			if err := wantCode(op, err, driver.CodeInvalid, driver.CodeConflict); err != nil {
				return err
			}
		}
		infos, err := f.List(t, ".")
		modes := map[string]fs.FileMode{}
		for _, i := range infos {
			modes[i.Name] = i.Mode.Type()
		}
		if err != nil || modes["dir"] != fs.ModeDir || modes["file"] != 0 {
			return fmt.Errorf("afterwards there are %v, %v", modes, err)
		}
		return nil
	}),
	{Name: "files: from outside, no more may be written than by a program", Capability: driver.CanStrict, Kind: Proof, Control: true, Func: inside(func(t *trial, s driver.Sandbox) error {
		if !t.b.Info().Can(driver.CanFiles) {
			return nil // "files, undeclared" asks
		}
		f := s.Files()
		for op, err := range map[string]error{
			"create": t.writeFile(f, "/etc/drivertest", []byte("x"), 0o644), "mkdir": f.Mkdir(t, "/usr/drivertest", 0o755),
			"remove": f.Remove(t, "/etc/passwd", false), "rename": f.Rename(t, "/etc/passwd", "/etc/drivertest"),
		} {
			if err := wantCode(op, err, driver.CodeDenied); err != nil {
				return err
			}
			if !errors.Is(err, fs.ErrPermission) {
				return fmt.Errorf("%s: %w is no fs.ErrPermission", op, err)
			}
		}
		_, err := f.Stat(t, "/etc/passwd")
		return err
	})},
	onFiles("files: a reader who stops early harms nobody", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		if err := t.writeFile(f, "big", bytes.Repeat([]byte("x"), 1<<20), 0o644); err != nil {
			return err
		}
		for i := range 40 {
			r, _, err := f.Open(t, "big")
			if err != nil {
				return fmt.Errorf("after %d: %w", i, err)
			}
			if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
				return err
			}
			if i%2 == 0 { // the others are left to the end of the sandbox
				if err := r.Close(); err != nil {
					return err
				}
			}
		}
		data, _, err := t.readFile(f, "big")
		if err == nil && len(data) != 1<<20 {
			err = fmt.Errorf("%d bytes", len(data))
		}
		return err
	}),
	onFiles("files: rename puts a file in another's place", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		if err := errors.Join(t.writeFile(f, "one", []byte("one"), 0o640), t.writeFile(f, "two", []byte("two"), 0o644)); err != nil {
			return err
		}
		if err := f.Rename(t, "one", "two"); err != nil {
			return err
		}
		data, info, err := t.readFile(f, "two")
		if err != nil || string(data) != "one" || info.Mode != 0o640 {
			return fmt.Errorf("it holds %q, %+v, %v", data, info, err)
		}
		if _, err := f.Stat(t, "one"); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the old name: %v", err)
		}
		return nil
	}),
	onFiles("files: a link planted under a name is replaced by what is written, not followed", func(t *trial, s driver.Sandbox, f driver.Files) error {
		if err := t.writeFile(f, "victim", []byte("untouched"), 0o644); err != nil {
			return err
		}
		if _, err := t.say(s, Link, "/work/victim", "/work/out"); err != nil {
			return err
		}
		if err := t.writeFile(f, "out", []byte("written"), 0o644); err != nil {
			return err
		}
		if data, _, err := t.readFile(f, "victim"); err != nil || string(data) != "untouched" {
			return fmt.Errorf("behind the link is %q, %v", data, err)
		}
		info, err := f.Stat(t, "out")
		if err == nil && !info.Mode.IsRegular() {
			err = fmt.Errorf("in its place is %+v", info)
		}
		return err
	}),
	onFiles("files: a directory of hundreds is listed whole, each once", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		const n = 300
		want := map[string]bool{}
		errs := make(chan error, n)
		turns := make(chan struct{}, 8)
		for i := range n {
			name := fmt.Sprintf("file-%03d", i)
			want[name] = true
			go func() {
				turns <- struct{}{}
				errs <- t.writeFile(f, "/tmp/many-"+name, nil, 0o644)
				<-turns
			}()
		}
		var err error
		for range n {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			return err
		}
		all, err := names(t, f, "/tmp")
		got := map[string]bool{}
		for _, name := range all {
			if rest, ok := strings.CutPrefix(name, "many-"); ok {
				if got[rest] {
					return fmt.Errorf("%s is listed twice", rest)
				}
				got[rest] = true
			}
		}
		if err != nil || !maps.Equal(got, want) {
			return fmt.Errorf("%d of %d, %v", len(got), n, err)
		}
		return nil
	}),
	onFiles("files: many are written and read at once, each its own", func(t *trial, _ driver.Sandbox, f driver.Files) error {
		const n = 16
		errs := make(chan error, n)
		for i := range n {
			go func() {
				name, want := fmt.Sprintf("file%d", i), bytes.Repeat([]byte{byte(i)}, 100_000+i)
				err := t.writeFile(f, name, want, 0o644)
				if err == nil {
					var got []byte
					if got, _, err = t.readFile(f, name); err == nil && !bytes.Equal(got, want) {
						err = fmt.Errorf("%s: %d bytes come back as %d, or others", name, len(want), len(got))
					}
				}
				errs <- err
			}()
		}
		var err error
		for range n {
			err = errors.Join(err, <-errs)
		}
		return err
	}),
}
