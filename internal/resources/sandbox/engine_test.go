//go:build dockertest

package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	sandboxio "github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func engineConfig(host, image, test, more string) string {
	return fmt.Sprintf(`
provider "sandboxio" {
  docker {
    host = %q
  }
}
resource "sandboxio_template" "t" {
  name     = "pet"
  image    = %q
  lifetime = "10m"
  reaper   = "nobody"
  secrets  = ["API_TOKEN"]
  trust    = "trusted"
  trust_reason = "the code of this test"
  resources = { memory_mib = 128, disk_mib = 32, pids = 64 }
}
resource "sandboxio_sandbox" "s" {
  template = sandboxio_template.t.manifest
  labels   = { test = %q }
%s
}
output "id" {
  value = sandboxio_sandbox.s.id
}
`, host, image, test, more)
}

func TestAccEngineASecretArrivesAndIsNowhereElse(t *testing.T) {
	t.Parallel()
	host, image := acctest.Engine(t)
	acctest.Leaves(t, host, "test", t.Name())
	config := secretConfig + engineConfig(host, image, t.Name(), `  lifetime = "5m"
  start = {
    command            = ["sh", "-c", "printf %s \"$API_TOKEN\" | sha256sum > /work/sum && mv /work/sum /work/proof && exec sleep 240"]
    secrets_wo         = { API_TOKEN = var.token }
    secrets_wo_version = 1
  }`)
	w := acctest.NewProcessWorkspace(t, config)
	w.Env = append(w.Env, "TF_VAR_token="+canary, "TF_LOG=TRACE", "TF_LOG_PATH="+filepath.Join(w.Dir, "trace.log"))
	said := w.Must(t, "plan", "-no-color", "-input=false", "-out=first.plan")
	said += w.Must(t, "apply", "-no-color", "-input=false", "first.plan")
	id := w.Output(t, "id")

	sum := sha256.Sum256([]byte(canary))
	if got := proof(t, host, id); got != hex.EncodeToString(sum[:]) {
		t.Errorf("the workload saw a secret with the sum %q", got)
	}
	if inspected := acctest.Ask(t, host, "GET", "/containers/"+id+"/json"); bytes.Contains(inspected, []byte(canary)) || !bytes.Contains(inspected, []byte("sandboxio.managed")) {
		t.Error("the container's configuration holds the secret, or is another's")
	}
	w.Empty(t)
	said += w.Must(t, "show", "-json")
	w.Destroy(t)
	if strings.Contains(said, canary) {
		t.Error("terraform said the secret")
	}
	found, searched := holders(t, w.Dir, canary)
	if len(found) > 0 {
		t.Errorf("%v hold the secret", found)
	}
	for _, must := range []string{"terraform.tfstate", "terraform.tfstate.backup", "trace.log", "first.plan/tfplan"} {
		if !searched[must] {
			t.Errorf("%s was not there to be searched", must)
		}
	}
}

// proof waits for what the workload writes.
func proof(t *testing.T, host, id string) string {
	t.Helper()
	rt, err := acctest.Estate(t, host).Runtime(t.Context(), "docker", sandbox.Options{Unguarded: "a test that looks into what Terraform made"})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := rt.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		res, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"cat", "/work/proof"}})
		if err != nil {
			t.Fatal(err)
		}
		if res.Err() == nil {
			sum, _, _ := strings.Cut(string(res.Stdout), " ")
			return sum
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing was written: %v", res.Err())
		}
	}
}

func TestAccEngineTheLifeOfASandbox(t *testing.T) {
	t.Parallel()
	host, image := acctest.Engine(t)
	acctest.Leaves(t, host, "test", t.Name())
	config := engineConfig(host, image, t.Name(), `  lifetime = "5m"`)
	w := acctest.NewWorkspace(t, sandboxio.Options{}, config)
	w.Apply(t)
	w.Empty(t)
	id := w.Output(t, "id")
	state := string(w.Read(t, "terraform.tfstate"))
	for _, want := range []string{`"status": "running"`, `"isolation": "container"`, `"evidence": "probe`} {
		if !strings.Contains(state, want) {
			t.Errorf("the state has no %s", want)
		}
	}

	if !exists(t, host, id) {
		t.Fatal("the engine does not know the sandbox")
	}
	acctest.Ask(t, host, "POST", "/containers/"+id+"/pause")
	w.Empty(t)
	w.Apply(t, "-refresh-only")
	if !strings.Contains(string(w.Read(t, "terraform.tfstate")), `"status": "paused"`) {
		t.Error("a paused sandbox is not seen as one")
	}
	acctest.Ask(t, host, "POST", "/containers/"+id+"/rename?name=renamed-outside-"+id[:8])
	w.Empty(t)

	// Import into an empty state, then nothing to do.
	w.Write(t, "import.tf", fmt.Sprintf("import {\n  to = sandboxio_sandbox.s\n  id = %q\n}\n", "docker/"+id))
	w.Must(t, "state", "rm", "sandboxio_sandbox.s")
	if out := w.Apply(t); !strings.Contains(out, "1 imported, 0 added") {
		t.Errorf("the import says:\n%s", out)
	}
	w.Write(t, "import.tf", "")

	acctest.Ask(t, host, "DELETE", "/containers/"+id+"?force=true")
	if out := w.Apply(t); !strings.Contains(out, "1 added, 0 changed, 0 destroyed") {
		t.Errorf("removed outside, and the apply says:\n%s", out)
	}
	next := w.Output(t, "id")
	w.Destroy(t)
	if exists(t, host, next) {
		t.Error("destroyed, and still there")
	}
}

func TestAccEngineExpiredStaysWithAnEmptyPlan(t *testing.T) {
	t.Parallel()
	host, image := acctest.Engine(t)
	acctest.Leaves(t, host, "test", t.Name())
	w := acctest.NewWorkspace(t, sandboxio.Options{}, engineConfig(host, image, t.Name(), `  lifetime = "15s"`))
	w.Apply(t)
	id := w.Output(t, "id")
	for deadline := time.Now().Add(75 * time.Second); exists(t, host, id); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it outlives its deadline")
		}
	}
	w.Empty(t)
	said := w.Apply(t, "-refresh-only")
	if state := string(w.Read(t, "terraform.tfstate")); !strings.Contains(state, `"status": "expired"`) {
		t.Errorf("an expired sandbox is not seen as one:\n%s\n%s", said, state)
	}
	w.Destroy(t)
}

func TestAccEngineAMissingImageIsAnErrorOnTheTemplateAndLeavesNothing(t *testing.T) {
	t.Parallel()
	host, _ := acctest.Engine(t)
	acctest.Leaves(t, host, "test", t.Name())
	w := acctest.NewWorkspace(t, sandboxio.Options{}, engineConfig(host, "sha256:"+strings.Repeat("ab", 32), t.Name(), `  lifetime = "5m"`))
	if out := w.Deny(t, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "Attribute: template") || !strings.Contains(out, "Fix:") {
		t.Errorf("says:\n%s", out)
	}
	w.Destroy(t)
}

// exists asks the engine itself.
func exists(t *testing.T, host, id string) bool {
	t.Helper()
	answer := acctest.Ask(t, host, "GET", "/containers/json?all=true&filters="+url.QueryEscape(`{"id":["`+id+`"]}`))
	return string(bytes.TrimSpace(answer)) != "[]"
}

// What somebody else made is refused whatever its labels say; what we made is
// judged like a creation.
func TestAccEngineAnImportIsOfOurOwnAndJudged(t *testing.T) {
	t.Parallel()
	host, image := acctest.Engine(t)
	acctest.Leaves(t, host, "test", t.Name())
	config := engineConfig(host, image, t.Name(), `  lifetime = "5m"`)
	w := acctest.NewWorkspace(t, sandboxio.Options{}, config)
	refused := func(id, want string) {
		t.Helper()
		w.Write(t, "import.tf", fmt.Sprintf("import {\n  to = sandboxio_sandbox.s\n  id = %q\n}\n", "docker/"+id))
		if out := w.Deny(t, "plan", "-no-color"); !strings.Contains(out, want) {
			t.Errorf("the import does not say %q:\n%s", want, out)
		}
	}
	for _, labels := range []string{`{}`, `{"sandboxio.managed":"true","sandboxio.role":"sandbox","sandboxio.template":"sha256:0"}`} {
		var made struct{ ID string }
		if err := json.Unmarshal(acctest.Ask(t, host, "POST", "/containers/create", fmt.Sprintf(`{"Image":%q,"Cmd":["sleep","60"],"Labels":%s}`, image, labels)), &made); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { acctest.Ask(t, host, "DELETE", "/containers/"+made.ID+"?force=true") })
		acctest.Ask(t, host, "POST", "/containers/"+made.ID+"/start")
		refused(made.ID, "Code: not-found")
	}

	rt, err := acctest.Estate(t, host).Runtime(t.Context(), "docker", sandbox.Options{Unguarded: "a test of what Terraform refuses"})
	if err != nil {
		t.Fatal(err)
	}
	tpl := sandbox.Template{Name: "old", Image: image, Lifetime: 5 * time.Minute}
	sb, err := rt.Create(t.Context(), sandbox.Spec{Template: &tpl, Detached: true, Labels: map[string]string{"test": t.Name()}})
	if err != nil {
		t.Fatal(err)
	}
	dir := acctest.Lifetimes(t, 60)
	rule, err := os.ReadFile(filepath.Join(dir, "rule.rego"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rule.rego"), bytes.Replace(rule, []byte("[template]"), []byte("[sandbox]"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Write(t, "main.tf", strings.Replace(config, "  docker {", fmt.Sprintf("  policy {\n    sources = { strict = %q }\n  }\n  docker {", dir), 1))
	refused(sb.ID(), "Error: ACME-001")
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
}
