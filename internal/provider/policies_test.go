package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// Each rule that judges in a plan has a good and a bad example, which Terraform
// plans here: every example as a module of its own, all good ones in one plan
// and all bad ones in another.
func TestAccPlansOfEachRulesExamples(t *testing.T) {
	t.Parallel()
	e, err := policy.Load(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{} // by rule
	for _, r := range e.Rules() {
		if !slices.Contains(r.Stages, policy.StagePlan) || strings.HasPrefix(r.ID, "SBX-POL-") || strings.HasPrefix(r.ID, "SBX-WVR-") {
			continue // others' resources are reviewed, never planned by us; our own rules have no example
		}
		folders[r.ID] = folder(t, r.ID)
	}
	if len(folders) < 25 {
		t.Fatalf("%d rules judge in a plan", len(folders))
	}
	good, bad := planned(t, folders, "good.tf"), planned(t, folders, "bad.tf")
	for _, r := range e.Rules() {
		if folders[r.ID] == "" {
			continue
		}
		severity := map[string]string{"deny": "error", "warn": "warning"}[r.Effect]
		if !slices.Contains(bad[r.ID], severity+" "+r.ID) {
			t.Errorf("%s: the plan of its bad example says %q", r.ID, bad[r.ID])
		}
		for _, said := range good[r.ID] {
			if strings.HasPrefix(said, "error ") || strings.HasSuffix(said, " "+r.ID) {
				t.Errorf("%s: the plan of its good example says %q", r.ID, good[r.ID])
			}
		}
	}
}

// folder is where a rule lives.
func folder(t *testing.T, id string) string {
	t.Helper()
	files, err := filepath.Glob("../../policies/*/*/rule.rego")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(src, []byte("#   id: "+id+"\n")) {
			return filepath.Dir(f)
		}
	}
	t.Fatalf("no folder has %s", id)
	return ""
}

// planned plans one file of each folder, and gives what is said of each rule's:
// severity and first word.
func planned(t *testing.T, folders map[string]string, file string) map[string][]string {
	t.Helper()
	_, config := acctest.World(t)
	w := acctest.NewWorkspace(t, provider.Options{}, config)
	main := config
	for id, dir := range folders {
		src, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(w.Dir, id), 0o700); err != nil {
			t.Fatal(err)
		}
		w.Write(t, filepath.Join(id, "main.tf"), string(src))
		w.Write(t, filepath.Join(id, "versions.tf"), string(w.Read(t, "versions.tf")))
		main += fmt.Sprintf("module %q {\n  source = \"./%s\"\n}\n", id, id)
	}
	w.Write(t, "main.tf", main)
	w.Must(t, "init", "-no-color")
	out, _ := w.Terraform(t, "plan", "-json", "-input=false") // the bad ones fail
	said := map[string][]string{}
	for line := range strings.Lines(out) {
		var event struct {
			Diagnostic *struct{ Severity, Summary, Address string } `json:"diagnostic"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if event.Diagnostic == nil {
			continue
		}
		module, _, _ := strings.Cut(strings.TrimPrefix(event.Diagnostic.Address, "module."), ".")
		rule, _, _ := strings.Cut(event.Diagnostic.Summary, ":")
		said[module] = append(said[module], event.Diagnostic.Severity+" "+rule)
	}
	if len(said[""]) > 0 {
		t.Errorf("of %s, it is said of no module: %q", file, said[""])
	}
	return said
}
