//go:build dockertest

package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/drivers/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestMain lets the test's program prove in a process of its own: with a mutant
// built into it, since the proxy of mode proxy is in the owner's process, or with
// a gateway of its own, since which one is right is written down for a user.
func TestMain(m *testing.M) {
	if text := os.Getenv("SANDBOXIO_PROVE"); text != "" {
		var o orders
		err := json.Unmarshal([]byte(text), &o)
		if err == nil {
			err = own(o)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// orders are what is passed to the other process.
type orders struct {
	Runtime, Probe string
	Modes          []Mode
	Only           []string

	Guest, Gateway string // to set up; none for what is there
}

func own(o orders) error {
	ctx := context.Background()
	if o.Gateway != "" {
		if _, err := docker.Setup(ctx, docker.Options{Host: os.Getenv("SANDBOXIO_TEST_DOCKER")}, docker.SetupOptions{Guest: o.Guest, Gateway: o.Gateway}); err != nil {
			return err
		}
	}
	e, err := Run(ctx, Options{Open: open(o.Runtime), Runtime: o.Runtime, Probe: o.Probe, Modes: o.Modes, Only: o.Only, mutant: true})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(e)
}

// needed is what the tests need; they fail without.
func needed(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: make test starts an engine and sets it", name)
	}
	return v
}

// open opens the engine under test.
func open(runtime string) func(context.Context, Site) (driver.Backend, error) {
	return func(ctx context.Context, at Site) (driver.Backend, error) {
		return docker.Open(ctx, docker.Options{Host: os.Getenv("SANDBOXIO_TEST_DOCKER"), Runtime: runtime, Uplink: at.Uplink, DNS: at.DNS})
	}
}

// build builds a program of this module, with some files in place of others.
func build(t testing.TB, out, pkg, overlay string, more ...string) {
	t.Helper()
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid="}, more...)
	if pkg == "." {
		args = append([]string{"test", "-c", "-tags", "dockertest", "-ldflags", "-s -w"}, more...)
	}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "-o", out, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// site is the engine, set up with the binaries under test, and options for it.
type site struct {
	dir string
	Options
}

func newSite(t testing.TB, runtime string) *site {
	t.Helper()
	needed(t, "SANDBOXIO_TEST_DOCKER")
	s := &site{dir: t.TempDir()}
	// A pin of its own: the user's is not this test's to change.
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, name := range []string{"probe", "guest", "gateway"} {
		build(t, s.path(name), "../../../cmd/sandboxio-"+name, "")
	}
	s.setUp(t, s.path("gateway"))
	s.Options = Options{Open: open(runtime), Runtime: runtime, Probe: s.path("probe"), Version: "test", Progress: func(said string) { t.Log(said) }}
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) setUp(t testing.TB, gateway string) {
	t.Helper()
	_, err := docker.Setup(t.Context(), docker.Options{Host: needed(t, "SANDBOXIO_TEST_DOCKER")}, docker.SetupOptions{Guest: s.path("guest"), Gateway: gateway})
	if err != nil {
		t.Fatal(err)
	}
}

// elsewhere proves in a process with another program, or with another gateway.
func (s *site) elsewhere(t testing.TB, program, gateway string, m Mode, only []string) Evidence {
	t.Helper()
	text, err := json.Marshal(orders{Runtime: s.Runtime, Probe: s.Probe, Modes: []Mode{m}, Only: only, Guest: s.path("guest"), Gateway: gateway})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "SANDBOXIO_PROVE="+string(text))
	if gateway != "" {
		cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+t.TempDir())
	}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var e Evidence
	if err := json.Unmarshal(out, &e); err != nil {
		t.Fatal(err)
	}
	return e
}
