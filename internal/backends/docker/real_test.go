//go:build dockertest

package docker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The tests with this build tag need a real engine and an image on it with sh
// and python3; they fail without, since a control that was not looked at has
// not been shown.
func needed(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: make test starts an engine and sets it", name)
	}
	return v
}

// placed builds a program of ours that is placed on the engine, unless the
// variable names one that is there.
func placed(variable, name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		if path := os.Getenv(variable); path != "" {
			return path, nil
		}
		dir, err := os.MkdirTemp("", name) // outlives the test that makes it
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, name)
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", path, "../../../cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return path, nil
	})
}

var builtGuest, builtGateway = placed("SANDBOXIO_GUEST", "sandboxio-guest"), placed("SANDBOXIO_GATEWAY", "sandboxio-gateway")

// guestBinary is the guest under test.
func guestBinary(t testing.TB) string { t.Helper(); return must(t, builtGuest) }

func must(t testing.TB, get func() (string, error)) string {
	t.Helper()
	v, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// engine opens the real engine, set up with the guest under test. Whatever a
// test leaves behind fails it.
func engine(t testing.TB) (*Backend, string) {
	t.Helper()
	return engineOn(t, "")
}

// engineOn opens the engine with one of its runtimes.
func engineOn(t testing.TB, runtime string) (*Backend, string) {
	t.Helper()
	opts := Options{Host: needed(t, "SANDBOXIO_TEST_DOCKER"), Runtime: runtime}
	image := needed(t, "SANDBOXIO_TEST_IMAGE")
	// A pin of its own: the user's is not this test's to change.
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if _, err := Setup(t.Context(), opts, SetupOptions{Guest: guestBinary(t), Gateway: must(t, builtGateway)}); err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		for st, err := range b.List(ctx, map[string]string{"test": t.Name()}) {
			if err != nil {
				t.Error(err)
				break
			}
			t.Errorf("left behind: %s (%s)", st.Name, st.State)
			_ = b.remove(ctx, b.cli.Load(), st.ID)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, image
}

// raw is the engine's own client.
func raw(t testing.TB, b *Backend) *client.Client {
	t.Helper()
	cli, err := b.connect(context.WithoutCancel(t.Context())) // in clean-ups too
	if err != nil {
		t.Fatal(err)
	}
	return cli
}

var serial = time.Now().UnixNano()
var serialMu sync.Mutex

// realSpec is an order that carries the test's name, for its cleanup.
func realSpec(t testing.TB, image string) driver.Spec {
	t.Helper()
	serialMu.Lock()
	serial++
	token := fmt.Sprintf("t%x", serial)
	serialMu.Unlock()
	spec := testSpec(token)
	spec.Image = image
	spec.Labels = map[string]string{"test": t.Name()}
	return spec
}

// make creates a sandbox that the test's end kills.
func create(t testing.TB, b *Backend, spec driver.Spec) driver.Sandbox {
	t.Helper()
	sb, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := sb.Kill(ctx); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// run gives a program's output and exit.
func run(t testing.TB, sb driver.Sandbox, args ...string) (string, driver.Exit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	p, err := sb.Start(ctx, driver.Cmd{Args: args, Timeout: 50 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for {
		c, err := p.Recv(ctx)
		if err != nil {
			break
		}
		out = append(out, c.Data...)
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), exit
}

func sh(t testing.TB, sb driver.Sandbox, script string) string {
	t.Helper()
	out, _ := run(t, sb, "sh", "-c", script)
	return out
}

// gone reports whether the engine no longer knows a container.
func isGone(t testing.TB, b *Backend, id string) bool {
	t.Helper()
	_, err := raw(t, b).ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	return absent(err)
}

// eventually polls until ok, for at most d.
func eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

func looseConfig(image string, cmd ...string) *container.Config {
	// The label tells this run's containers from everybody else's, for the leak
	// check on an engine that is shared.
	return &container.Config{Image: image, Entrypoint: cmd[:1], Cmd: cmd[1:], Labels: map[string]string{"sandboxio-test": os.Getenv("SANDBOXIO_TEST_RUN")}}
}

// runRaw starts a container that has nothing to do with us, and gives what it
// printed.
func runRaw(t testing.TB, b *Backend, id string) string {
	t.Helper()
	return runRawIn(t.Context(), t, b, id)
}

func runRawIn(ctx context.Context, t testing.TB, b *Backend, id string) string {
	t.Helper()
	cli := raw(t, b)
	if _, err := cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	w := cli.ContainerWait(ctx, id, client.ContainerWaitOptions{})
	select {
	case <-w.Result:
	case err := <-w.Error:
		t.Fatal(err)
	}
	said, err := logs(ctx, cli, id, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// cleanup gives a context for functions of t.Cleanup, in which the test's own
// has ended.
func cleanup(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
