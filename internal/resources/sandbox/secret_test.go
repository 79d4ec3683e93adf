package sandbox_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
)

const secretConfig = `
variable "token" {
  type      = string
  ephemeral = true
}
`

// holders lists the files below dir that hold text, members of plan files
// included, and every file that was searched.
func holders(t *testing.T, dir, text string) (found []string, searched map[string]bool) {
	t.Helper()
	searched = map[string]bool{}
	look := func(name string, b []byte) {
		searched[name] = true
		if bytes.Contains(b, []byte(text)) {
			found = append(found, name)
		}
	}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		base := filepath.Base(name)
		look(base, b)
		if filepath.Ext(name) != ".plan" {
			return nil
		}
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return err
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				return err
			}
			b, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			look(base+"/"+f.Name, b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, searched
}

func TestAccASecretIsInNoStatePlanLogOrMessage(t *testing.T) {
	t.Parallel()
	config := `provider "sandboxio" {
  memory {}
}
` + secretConfig + block(`  start = {
    command            = ["sha256", "API_TOKEN"]
    secrets_wo         = { API_TOKEN = var.token }
    secrets_wo_version = 1
  }`)
	w := acctest.NewProcessWorkspace(t, config)
	w.Env = append(w.Env, "TF_VAR_token="+canary, "TF_LOG=TRACE", "TF_LOG_PATH="+filepath.Join(w.Dir, "trace.log"))
	said := w.Must(t, "plan", "-no-color", "-input=false", "-out=first.plan")
	said += w.Must(t, "apply", "-no-color", "-input=false", "first.plan")
	said += w.Must(t, "show", "-no-color")
	said += w.Must(t, "show", "-json")

	// A replacement hands the secret in anew, and an ephemeral value where it
	// would be kept is an error that could quote it.
	w.Write(t, "main.tf", strings.Replace(config, `command            = ["sha256", "API_TOKEN"]`, `command            = ["sha256", "API_TOKEN"], dir = "../../outside"`, 1))
	out, _ := w.Terraform(t, "apply", "-auto-approve", "-no-color", "-input=false")
	said += out
	w.Write(t, "main.tf", strings.Replace(config, `"API_TOKEN"]`, `var.token]`, 1))
	if out, err := w.Terraform(t, "plan", "-no-color", "-input=false"); err == nil {
		t.Errorf("an ephemeral value was accepted where it would be kept:\n%s", out)
	} else {
		said += out
	}
	w.Write(t, "main.tf", config)
	w.Destroy(t)
	if strings.Contains(said, canary) {
		t.Error("terraform said the secret")
	}
	found, searched := holders(t, w.Dir, canary)
	if len(found) > 0 {
		t.Errorf("%v hold the secret", found)
	}
	for _, must := range []string{"terraform.tfstate", "terraform.tfstate.backup", "trace.log", "first.plan/tfplan", "first.plan/tfstate"} {
		if !searched[must] {
			t.Errorf("%s was not there to be searched", must)
		}
	}
	// The search finds what is there, or it would prove nothing.
	for text, must := range map[string]string{"secrets_wo_version": "first.plan/tfplan", "sandboxio_sandbox": "trace.log"} {
		if found, _ := holders(t, w.Dir, text); !slices.Contains(found, must) {
			t.Errorf("%q was found in %v, not in %s", text, found, must)
		}
	}
}
