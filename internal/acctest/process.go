package acctest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	sandboxio "github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

// serveEnv makes a test binary the provider: terraform starts it by that name,
// as it would start a release.
const serveEnv = "SANDBOXIO_ACCTEST_SERVE"

func serve() int {
	err := providerserver.Serve(context.Background(), func() provider.Provider { return sandboxio.New(sandboxio.Options{Version: "test"}) },
		providerserver.ServeOpts{Address: sandboxio.Address, ProtocolVersion: 6})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// NewProcessWorkspace is a directory whose commands start the provider as
// processes of its own, by dev_overrides and without init, as the examples do.
// What the processes log can be searched, with TF_LOG and TF_LOG_PATH in Env.
// A memory world lasts for one process only.
func NewProcessWorkspace(t *testing.T, config string) *Workspace {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "terraform-provider-sandboxio")); err != nil {
		t.Fatal(err)
	}
	w := &Workspace{Dir: t.TempDir()}
	w.Write(t, "dev.tfrc", fmt.Sprintf("provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n", "sandboxio/sandboxio", bin))
	w.Write(t, "versions.tf", required)
	w.Write(t, "main.tf", config)
	w.Env = []string{serveEnv + "=1", "TF_CLI_CONFIG_FILE=" + filepath.Join(w.Dir, "dev.tfrc"), "TF_IN_AUTOMATION=1"}
	w.tidy(t)
	return w
}

const required = "terraform {\n  required_providers {\n    sandboxio = {\n      source = \"sandboxio/sandboxio\"\n    }\n  }\n}\n"
