// Package acctest runs acceptance tests: the real terraform command against
// the provider in this process, on the memory backend unless a test says
// otherwise. Nothing is downloaded, and a missing terraform fails the tests
// instead of skipping them.
package acctest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// scratch is the test binary's own directory, removed at its end.
var scratch string

// Main is for TestMain. It settles the environment once, since tests run in
// parallel: the terraform on PATH, no look for a newer one, and no
// configuration of the developer's, whose dev_overrides would put another
// build of the provider to the test.
func Main(m *testing.M) int {
	if os.Getenv(serveEnv) != "" {
		return serve()
	}
	terraform := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if terraform == "" {
		found, err := exec.LookPath("terraform")
		if err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "FAIL: the acceptance tests need terraform 1.11 or later on PATH:", err)
			return 1
		}
		terraform = found
	}
	var err error
	if scratch, err = os.MkdirTemp("", "sandboxio-acctest"); err == nil {
		defer os.RemoveAll(scratch)
		err = os.WriteFile(filepath.Join(scratch, "empty.tfrc"), nil, 0o600)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	for k, v := range map[string]string{
		"TF_ACC_TERRAFORM_PATH": terraform, "CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": filepath.Join(scratch, "empty.tfrc"),
	} {
		if err := os.Setenv(k, v); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "FAIL:", err)
			return 1
		}
	}
	for _, k := range []string{"TF_ACC_TERRAFORM_VERSION", "TF_LOG", "TF_CLI_ARGS", "TF_CLI_ARGS_plan", "TF_CLI_ARGS_apply", policy.FloorVariable, policy.FloorKeyVariable, policy.FloorRevisionVariable} {
		_ = os.Unsetenv(k)
	}
	return m.Run()
}

// Run runs a test case on a provider in this process.
func Run(t *testing.T, c resource.TestCase) {
	t.Helper()
	Faulty(t, provider.Options{}, c)
}

// Faulty is Run with a provider of other options.
func Faulty(t *testing.T, opts provider.Options, c resource.TestCase) {
	t.Helper()
	opts.Version = "test"
	c.ProtoV6ProviderFactories = map[string]func() (tfprotov6.ProviderServer, error){
		"sandboxio": providerserver.NewProtocol6WithError(provider.New(opts)),
	}
	resource.UnitTest(t, c)
}

// World gives the test a memory world of its own, empty at the end or the test
// fails, and the provider block that uses it.
func World(t *testing.T) (*memory.World, string) {
	t.Helper()
	name := WorldName(t)
	w := memory.Named(name)
	t.Cleanup(func() {
		if left := w.Leftovers(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		_ = w.Close()
	})
	return w, fmt.Sprintf("provider \"sandboxio\" {\n  memory {\n    world = %q\n  }\n}\n", name)
}

// WorldName is the name of the test's own world, another one each time the test
// runs, since a world that was closed stays closed.
func WorldName(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", "#", "-", ",", "", "'", "").Replace(t.Name()))
	got, _ := worlds.LoadOrStore(t, fmt.Sprintf("%s-%d", name, serial.Add(1)))
	s, _ := got.(string)
	return s
}

var (
	worlds sync.Map // *testing.T → its world's name
	serial atomic.Int64
)

// Server is the provider at the level of its protocol, for what no command of
// the terraform in use can reach.
func Server(ctx context.Context, opts provider.Options) (tfprotov6.ProviderServer, error) {
	return providerserver.NewProtocol6WithError(provider.New(opts))()
}
