package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

const image = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

func TestAccConfigurationsThatMakeNoSenseAreRefusedOnTheirAttribute(t *testing.T) {
	t.Parallel()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "rule.rego"), []byte("package custom.acme.rule\n\ndeny contains x if {\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, block, command, want string }{
		{"two backends and no default", "docker {}\n  memory {}", "plan", `set default_backend = "docker"`},
		{"a default that is not configured", "default_backend = \"docker\"\n  memory {}", "plan", "Attribute: default_backend"},
		{"an engine over ssh", "docker {\n    host = \"ssh://me@host\"\n  }", "plan", "ssh -nNT -L"},
		{"a policy that does not compile is found by validate", fmt.Sprintf("policy {\n    sources = { acme = %q }\n  }", broken), "validate", "rule.rego"},
		{"a policy that is not there", "policy {\n    sources = { acme = \"/nowhere/policies\" }\n  }", "validate", "Attribute: policy.sources"},
		{"a policy's name that is none", fmt.Sprintf("policy {\n    sources = { \"a-b\" = %q }\n  }", broken), "validate", "lower-case letters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := acctest.NewWorkspace(t, provider.Options{}, "provider \"sandboxio\" {\n  "+c.block+"\n}\ndata \"sandboxio_backend\" \"b\" {}\n")
			if out := w.Deny(t, c.command, "-no-color"); !strings.Contains(strings.Join(strings.Fields(out), " "), c.want) {
				t.Errorf("does not say %q:\n%s", c.want, out)
			}
		})
	}
}

func TestAccConfiguringConnectsToNothing(t *testing.T) { // kreuzwerker/terraform-provider-docker#224
	t.Parallel()
	w := acctest.NewWorkspace(t, provider.Options{}, `provider "sandboxio" {
  docker {
    host = "unix:///nowhere/engine.sock"
  }
}
resource "sandboxio_template" "t" {
  name   = "t"
  image  = "`+image+`"
  reaper = "sweep"
}
`)
	w.Apply(t)
	w.Empty(t)
	w.Destroy(t)
}

func TestAccAnEngineThatIsDownIsAnErrorThatNamesTheFix(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t, provider.Options{}, `provider "sandboxio" {
  docker {
    host = "unix:///nowhere/engine.sock"
  }
}
resource "sandboxio_reaper_schedule" "s" {
  name     = "s"
  interval = "1m"
}
`)
	w.Must(t, "plan", "-no-color")
	if out := w.Deny(t, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "Code: unavailable") || !strings.Contains(out, "Fix:") {
		t.Errorf("says:\n%s", out)
	}
}

// module copies an example's files into the workspace's directory.
func module(t *testing.T, w *acctest.Workspace, dir string, rename func(string) string) {
	t.Helper()
	w.Write(t, "versions.tf", "") // examples have their own
	files, err := filepath.Glob(filepath.Join(dir, "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no example in %s: %v", dir, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if name := rename(filepath.Base(f)); name != "" {
			w.Write(t, name, string(b))
		}
	}
}

func same(name string) string { return name }

func TestAccTheExamplesOfTheDocumentationAreValid(t *testing.T) {
	t.Parallel()
	w := acctest.NewProcessWorkspace(t, "")
	for _, dir := range []string{"resources/sandboxio_template", "resources/sandboxio_network_policy", "resources/sandboxio_reaper_schedule", "resources/sandboxio_sandbox", "data-sources/sandboxio_backend", "data-sources/sandboxio_policy_findings", "functions/policy_findings"} {
		module(t, w, "../../examples/"+dir, func(name string) string {
			if strings.HasPrefix(name, "import-by-identity") {
				return "" // newer than the oldest terraform
			}
			return strings.ReplaceAll(dir, "/", "_") + "_" + name
		})
	}
	w.Write(t, "versions.tf", "terraform {\n  required_providers {\n    sandboxio = {\n      source = \"sandboxio/sandboxio\"\n    }\n  }\n}\n")
	w.Write(t, "python.manifest.json", "{}")
	w.Must(t, "validate", "-no-color")
}

// A plan on Docker asks no engine, and refuses what Docker cannot enforce.
func TestAccTheExamplesOfTheDocumentationPlanOnDocker(t *testing.T) {
	t.Parallel()
	w := acctest.NewProcessWorkspace(t, "")
	w.Env = append(w.Env, "TF_VAR_image="+image, "TF_VAR_api_token=x")
	for _, dir := range []string{"sandboxio_template", "sandboxio_network_policy", "sandboxio_reaper_schedule", "sandboxio_sandbox"} {
		module(t, w, "../../examples/resources/"+dir, func(name string) string {
			if strings.HasPrefix(name, "import") {
				return "" // of what is not there
			}
			return dir + "_" + name
		})
	}
	w.Write(t, "versions.tf", "terraform {\n  required_providers {\n    sandboxio = {\n      source = \"sandboxio/sandboxio\"\n    }\n  }\n}\n")
	w.Must(t, "plan", "-no-color")
}

func TestAccTheProviderExampleIsValid(t *testing.T) {
	t.Parallel()
	w := acctest.NewProcessWorkspace(t, "")
	module(t, w, "../../examples/provider", same)
	w.Must(t, "validate", "-no-color")
}

func TestAccTheQuickstartIsAccepted(t *testing.T) {
	t.Parallel()
	w := acctest.NewProcessWorkspace(t, "")
	w.Env = append(w.Env, "TF_VAR_image="+image, "TF_VAR_backend=memory")
	module(t, w, "../../examples/quickstart", same)
	out := w.Apply(t)
	if !strings.Contains(out, "4 added") || strings.Contains(out, "Error") {
		t.Errorf("says:\n%s", out)
	}
	w.Destroy(t)
}

func TestAccTheInsecureExampleIsDeniedRuleByRule(t *testing.T) {
	t.Parallel()
	w := acctest.NewProcessWorkspace(t, "")
	w.Env = append(w.Env, "TF_VAR_image="+image, "TF_VAR_backend=memory")
	module(t, w, "../../examples/insecure", same)
	out := w.Deny(t, "plan", "-no-color")
	for _, want := range []string{
		"SBX-NET-002", "Attribute: egress[0].cidr", "SBX-NET-004", "SBX-NET-003", "Attribute: egress[2].host", "SBX-RES-001", "Attribute: lifetime",
		"SBX-IMG-001", "Attribute: image", "SBX-SEC-001", `Attribute: env["AWS_SECRET_ACCESS_KEY"]`, "SBX-LIF-001", "Attribute: reaper", "Fix: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("does not say %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "terraform.tfstate")); err == nil {
		t.Error("something was created")
	}
}
