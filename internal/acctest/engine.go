//go:build dockertest

package acctest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Engine gives the address of a real engine that has the guest and the keeper
// of this tree, and an image on it with sh and python3. Without one the test
// fails: what was not tried on an engine has not been shown.
func Engine(t *testing.T) (host, image string) {
	t.Helper()
	host, image = os.Getenv("SANDBOXIO_TEST_DOCKER"), os.Getenv("SANDBOXIO_TEST_IMAGE")
	if host == "" || image == "" {
		t.Fatal("SANDBOXIO_TEST_DOCKER and SANDBOXIO_TEST_IMAGE are not set: make test starts an engine and sets them")
	}
	if err := setup(); err != nil {
		t.Fatal(err)
	}
	return host, image
}

// setup brings the binaries to the engine, once per test binary. Which guest
// is trusted is written into a configuration directory of its own, since the
// user's is not the tests' to change.
var setup = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp(scratch, "engine")
	if err != nil {
		return err
	}
	if err := os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config")); err != nil {
		return err
	}
	o := estate.SetupOptions{Guest: os.Getenv("SANDBOXIO_GUEST"), CLI: os.Getenv("SANDBOXIO_CLI")}
	for _, b := range []struct{ path, flags, command string }{
		{o.Guest, "-s -w -buildid=", "sandboxio-guest"}, {o.CLI, "-s -w", "sandboxio"},
	} {
		if b.path != "" {
			continue
		}
		out := filepath.Join(dir, "bin", b.command)
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", b.flags, "-o", out, "github.com/sandboxio/terraform-provider-sandboxio/cmd/"+b.command)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		if b.command == "sandboxio" {
			o.CLI = out
		} else {
			o.Guest = out
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_, err = estate.SetupDocker(ctx, estate.Config{Docker: &estate.Docker{Host: os.Getenv("SANDBOXIO_TEST_DOCKER")}}, o)
	return err
})

// Estate opens the engine past the provider.
func Estate(t *testing.T, host string) *estate.Estate {
	t.Helper()
	e, err := estate.Open(t.Context(), estate.Config{Docker: &estate.Docker{Host: host}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Leaves fails the test for every sandbox with the label that is there at its
// end, and removes it.
func Leaves(t *testing.T, host, label, value string) {
	t.Helper()
	e := Estate(t, host)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		b, err := e.Backend(ctx, "docker")
		if err != nil {
			t.Error(err)
			return
		}
		for st, err := range b.List(ctx, map[string]string{label: value}) {
			if err != nil {
				t.Error(err)
				return
			}
			t.Errorf("left behind: %s (%s)", st.Name, st.State)
			var sb driver.Sandbox
			if sb, err = b.Attach(ctx, st.ID); err == nil {
				err = sb.Kill(ctx)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// Ask is one request to the engine's own interface, for what only it can say.
// A body is JSON.
func Ask(t *testing.T, host, method, path string, body ...string) []byte {
	t.Helper()
	u, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	network, address := "tcp", u.Host
	if u.Scheme == "unix" {
		network, address = "unix", u.Path
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // also in a cleanup
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s: %s", method, path, resp.Status, b)
	}
	return b
}
