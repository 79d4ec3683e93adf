//go:build dockertest

package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/drivers/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

// real is a sandbox on the engine under test.
func real(t *testing.T, spec sandbox.Spec) *sandbox.Sandbox {
	t.Helper()
	b, err := docker.Open(t.Context(), docker.Options{Host: os.Getenv("SANDBOXIO_TEST_DOCKER")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	spec.Image = os.Getenv("SANDBOXIO_TEST_IMAGE")
	sb, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Owner: "files-test", Grace: 30 * time.Second}).Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
	return sb
}

func shell(t *testing.T, sb *sandbox.Sandbox, script string) string {
	t.Helper()
	res, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"sh", "-c", script}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Stdout) + string(res.Stderr)
}

func TestM84M93ADirectoryGoesUpAndComesDownOnTheEngine(t *testing.T) {
	sb := real(t, sandbox.Spec{})
	f := sb.Files()
	src := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o755, ".dot": 0o600, "d/x y\n;'": 0o644, "\xff": 0o644} {
		full := filepath.Join(src, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte("#!/bin/sh\necho ran\r\n"), mode), os.Chmod(full, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(src, "passwd")); err != nil {
		t.Fatal(err)
	}
	up, err := f.Upload(t.Context(), os.DirFS(src), "app")
	if err != nil || up.Files != 3 || fmt.Sprint(up.LeftOut) != `["passwd" (symbolic link) "\xff" (name is not UTF-8)]` {
		t.Fatalf("%+v, %v", up, err)
	}
	// Visible to the next program at once (M89), with its modes (M84), dotfiles (M93) and bytes (M92).
	if got := shell(t, sb, `cd app && stat -c '%a %n' * .dot && tr -d '\r' < run.sh > r2 && chmod +x r2 && ./r2 && wc -c < run.sh`); got != "755 d\n755 run.sh\n600 .dot\nran\n20\n" {
		t.Errorf("%q", got)
	}
	shell(t, sb, `cd app && rm r2 && ln -s /etc/passwd l && mkfifo p && : > "$(printf '\377')" && chmod 4777 run.sh`)
	dir := filepath.Join(t.TempDir(), "out")
	down, err := f.Download(t.Context(), "app", dir, archive.Limits{})
	if err != nil || down.Files != 4 || down.LeftOutCount != 2 {
		t.Errorf("%+v, %v", down, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "\xff")); err != nil {
		t.Error(err)
	}
	if _, err := f.Download(t.Context(), "app", filepath.Join(t.TempDir(), "few"), archive.Limits{Entries: 2}); sandbox.CodeOf(err) != sandbox.CodeExhausted {
		t.Errorf("%v", err)
	}
}

func TestTheViewIsAnFSOnTheEngine(t *testing.T) {
	sb := real(t, sandbox.Spec{})
	shell(t, sb, `mkdir -p p/d/e && echo hello > p/f && echo deep > p/d/e/g && chmod 755 p/f && ln -s d/e/g p/l && ln -s d p/ld && ln -s ld/../f p/far && : > p/empty && mkdir p/none`)
	if err := fstest.TestFS(sb.Files().FS(t.Context(), "p"), "f", "d/e/g", "l", "ld", "far", "empty", "none"); err != nil {
		t.Error(err)
	}
	view := sb.Files().FS(t.Context(), "/etc")
	if b, err := fs.ReadFile(view, "passwd"); err != nil || !strings.Contains(string(b), "root:") {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := fs.ReadFile(view, "shadow"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
	if names, err := fs.Glob(sb.Files().FS(t.Context(), "p"), "*/*/g"); err != nil || !slices.Equal(names, []string{"d/e/g", "ld/e/g"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestADownloadFromASandboxThatEnds(t *testing.T) {
	sb := real(t, sandbox.Spec{Resources: sandbox.Resources{CPUMillis: 300}}) // so that it takes a while
	shell(t, sb, "head -c 100000000 /dev/urandom > big")
	for _, how := range []string{"cancelled", "ended"} {
		t.Run(how, func(t *testing.T) {
			top := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := sb.Files().Download(ctx, ".", filepath.Join(top, "out"), archive.Limits{})
				done <- err
			}()
			for stop := time.Now().Add(20 * time.Second); grown(top) == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(stop) {
					t.Fatal("nothing comes")
				}
			}
			if how == "cancelled" {
				cancel()
			} else if err := sb.Close(); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				if how == "cancelled" && err != context.Canceled || how == "ended" && sandbox.CodeOf(err) != sandbox.CodeGone { //nolint:errorlint // the context's own
					t.Errorf("%v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it hangs")
			}
			if names, err := os.ReadDir(top); err != nil || len(names) != 0 {
				t.Errorf("left: %v, %v", names, err)
			}
		})
	}
}

// grown is how many bytes are below dir.
func grown(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// The faults of others, as small inputs.
func TestFilesAsOthersGotThemWrong(t *testing.T) {
	sb := real(t, sandbox.Spec{})
	f := sb.Files()
	write := func(name, content string) error { return f.Write(t.Context(), name, []byte(content), 0o644) }
	for _, c := range []struct {
		name string
		do   func() error
		then string // a program in the sandbox
		says string
	}{
		{"writing below a link of the image's, /var/run (M81)", func() error {
			_, err := f.Upload(t.Context(), fstest.MapFS{"d/x": {Data: []byte("up"), Mode: 0o644}}, "/var/run/up")
			return errors.Join(write("/var/run/x", "in"), err)
		}, "readlink /var/run; cat /run/x /run/up/d/x", "/run\ninup"},
		{"bytes that are no text come back as they are (M86)", func() error {
			const zip = "PK\x03\x04\xff\xfe\x00\r\n\x1a"
			err := write("z.zip", zip)
			if b, rerr := f.Read(t.Context(), "z.zip"); rerr != nil || string(b) != zip {
				return fmt.Errorf("%q, %w", b, rerr)
			}
			return err
		}, "wc -c < z.zip", "10\n"},
		{"a name that is not ASCII (M88)", func() error { return write("résumé 履歴.txt", "x") }, "ls r*", "résumé 履歴.txt\n"},
		{"a file is there for the next program (M89)", func() error { return write("now", "seen") }, "cat now", "seen"},
		{"a link is described and not what it leads to; listing goes through it (M90)", func() error {
			shell(t, sb, "mkdir -p tree && : > tree/leaf && ln -s tree twig")
			info, err := f.Stat(t.Context(), "twig")
			list, lerr := f.List(t.Context(), "twig")
			if info.Link != "tree" || info.Mode.Type() != fs.ModeSymlink || len(list) != 1 || list[0].Name != "leaf" {
				return fmt.Errorf("%+v, %+v, %w", info, list, errors.Join(err, lerr))
			}
			return nil
		}, "", ""},
		{"ends of lines are left alone (M92)", func() error { return write("crlf", "a\r\nb\r\n") }, "od -An -c crlf | tr -d ' '", `a\r\nb\r\n` + "\n"},
		{"a path of Windows is one name (M95)", func() error { return write(`C:\x`, "w") }, `cat 'C:\x'`, "w"},
		{"a name is no command (M98)", func() error { return write("$(touch pwned);`touch pwned`", "x") }, "test ! -e pwned && echo safe", "safe\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(); err != nil {
				t.Error(err)
			}
			if c.then != "" {
				if got := shell(t, sb, c.then); got != c.says {
					t.Errorf("%q, want %q", got, c.says)
				}
			}
		})
	}
}
