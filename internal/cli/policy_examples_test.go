package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/cli"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// Each built-in rule has a good and a bad example in Terraform's language. A
// review of the bad one says what the rule is for, of the good one nothing
// that denies.
func TestAReviewOfEachRulesExamples(t *testing.T) {
	t.Parallel()
	e, err := policy.Load(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]policy.RuleInfo{}
	for _, r := range e.Rules() {
		of[r.ID] = r
	}
	folders, err := filepath.Glob("../../policies/*/*/rule.rego")
	if err != nil || len(folders) == 0 {
		t.Fatal(err)
	}
	id := func(file string) string {
		t.Helper()
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := bytes.Cut(src, []byte("#   id: "))
		name, _, _ := bytes.Cut(rest, []byte("\n"))
		return string(name)
	}
	for _, file := range folders {
		r, ok := of[id(file)]
		if !ok {
			t.Fatalf("%s is none of the rules", file)
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Dir(file)
			if got := review(t, filepath.Join(dir, "bad.tf")); !slices.Contains(got, r.ID+" "+r.Effect) {
				t.Errorf("of the bad example, it says %q", got)
			}
			for _, f := range review(t, filepath.Join(dir, "good.tf")) {
				rule, effect, _ := strings.Cut(f, " ")
				pods := rule == "SBX-NET-001" && r.ID == "SBX-SEC-006" // what a pod reaches is said elsewhere
				if rule == r.ID || !pods && (effect == "deny" || effect == "error") {
					t.Errorf("of the good example, it says %q", f)
				}
			}
		})
	}
}

// review checks a directory with one file, and gives rule and effect of what
// is found. The examples' schedule is kept elsewhere.
func review(t *testing.T, file string) []string {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), src, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	args := []string{"policy", "check", dir, "--format", "json", "--param", `other_reapers=["nightly"]`}
	if code := cli.Main(context.Background(), cli.Streams{In: &bytes.Buffer{}, Out: &out, Err: &said}, "test", args); code != 0 && code != 2 {
		t.Fatalf("%s: exit code %d: %s", file, code, &said)
	}
	var report struct {
		Findings []struct {
			Rule   string `json:"rule"`
			Effect string `json:"effect"`
		} `json:"findings"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var found []string
	for _, f := range report.Findings {
		found = append(found, f.Rule+" "+f.Effect)
	}
	return found
}
