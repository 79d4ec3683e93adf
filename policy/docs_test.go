package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const docsDir = "../docs/policies"

// TestDocs holds docs/policies against the rules: a page for each, made from
// its METADATA and examples, and an index.
func TestDocs(t *testing.T) {
	own, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	examples, terraform := map[string][]example{}, map[string]string{}
	for _, r := range own.rules {
		examples[r.ID], terraform[r.ID] = readExamples(t, r), inTerraform(t, r)
	}
	if *update {
		if err := os.MkdirAll(docsDir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rules := load(t, Options{}).Rules()
	var index bytes.Buffer
	index.WriteString(indexHead)
	want := []string{"README.md", "omitted.md"}
	for _, r := range rules {
		name := r.ID + ".md"
		want = append(want, name)
		fmt.Fprintf(&index, "| [%s](%s) | %s | %s | %s | %s |\n", r.ID, name, r.Title, r.Severity, r.Effect, join(r.Kinds))
		generated(t, filepath.Join(docsDir, name), page(r, examples[r.ID], terraform[r.ID]))
	}
	index.WriteString(indexFoot)
	generated(t, filepath.Join(docsDir, "README.md"), index.Bytes())

	entries, err := os.ReadDir(docsDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(want, e.Name()) {
			t.Errorf("%s belongs to no rule", filepath.Join(docsDir, e.Name()))
		}
	}
}

const (
	madeBy    = "<!-- Made from the rules by: go test ./policy -update -->\n"
	indexHead = madeBy + `
# Policy rules

Every template, network policy, reaper schedule and sandbox is judged by these rules: in ` + "`terraform plan`" + `, again at apply, when a
program creates a sandbox, and when a plan is reviewed. The worst answer counts: error, deny, unknown, warn, allow.

| rule | | severity | effect | judges |
|---|---|---|---|---|
`
	indexFoot = `
Rules of kind container, image and provider judge what others describe in a plan: plain containers and pods, the images they are
made of, and how their engine is reached. Rules of kind graph look at a whole plan at once. Both are asked by a review of a plan
file only, since a provider sees no more than its own resources.

[Rules that are not there](omitted.md), and why. [Rules of your own](../guides/policy.md#rules-of-your-own): how to write, test and name them.
`
)

// inTerraform shows a rule's bad and good example, which tests of the provider
// and of the review run.
func inTerraform(t *testing.T, r *rule) string {
	t.Helper()
	var b strings.Builder
	for _, ex := range []struct{ heading, file string }{{map[string]string{"deny": "Denied", "warn": "Warned of"}[r.Effect], "bad.tf"}, {"Passes", "good.tf"}} {
		src, err := os.ReadFile(filepath.Join(rulesDir, filepath.Dir(r.file), ex.file))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n%s:\n\n```terraform\n%s```\n", ex.heading, src)
	}
	return b.String()
}

func page(r RuleInfo, examples []example, terraform string) []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("%s\n# %s: %s\n\n%s\n\n", madeBy, r.ID, r.Title, r.Description)
	p("| | |\n|---|---|\n| severity | %s |\n| effect | %s |\n| judges | %s |\n| when | %s |\n| can be waived | %s |\n\n",
		r.Severity, r.Effect, join(r.Kinds), join(r.Stages), map[bool]string{true: "yes", false: "no"}[r.Waivable])
	p("## What to do\n\n%s\n", r.Remediation)
	if len(r.Params) > 0 {
		p("\n## Parameters\n\n| name | default | | stricter |\n|---|---|---|---|\n")
		for _, param := range r.Params {
			value, err := json.Marshal(param.Default)
			if err != nil {
				panic(err)
			}
			p("| `%s` | `%s` | %s | %s |\n", param.Name, value, param.Description, tighter[param.Tighten])
		}
	}
	if terraform != "" {
		p("\n## In Terraform\n%s", terraform)
	}
	headings := map[string]string{"pass": "What passes", "fail": "What is denied", "warn": "What is warned of", "unknown": "Unknown in a plan, denied if still unknown at apply"}
	for _, expect := range []string{"fail", "warn", "pass", "unknown"} {
		var rows bytes.Buffer
		for _, ex := range examples {
			if ex.Expect == expect {
				fmt.Fprintf(&rows, "| %s | %s |\n", ex.Name, ex.short())
			}
		}
		if rows.Len() > 0 {
			p("\n## %s\n\n| | |\n|---|---|\n%s", headings[expect], rows.Bytes())
		}
	}
	p("\n## Why, and who else says so\n\n")
	for _, s := range r.Sources {
		p("- %s: %s\n", s.Document, s.Section)
	}
	return b.Bytes()
}

var tighter = map[string]string{"lower": "a lower number", "higher": "a higher number", "fewer": "fewer entries", "more": "more entries", "rank": "a higher tier"}

// short is the part of an example that matters, in the words of the resource.
func (ex example) short() string {
	var parts []string
	if len(ex.Resource) > 0 {
		var out bytes.Buffer
		if err := json.Compact(&out, ex.Resource); err != nil {
			panic(err)
		}
		parts = append(parts, "`"+out.String()+"`")
	}
	if ex.Image != nil {
		parts = append(parts, fmt.Sprintf("image `%q`", *ex.Image))
	}
	if len(ex.Env) > 0 {
		raw, err := json.Marshal(ex.Env)
		if err != nil {
			panic(err)
		}
		parts = append(parts, "env `"+string(raw)+"`")
	}
	for name, texts := range map[string]map[string]string{"build_args": ex.BuildArgs, "files": ex.Files} {
		if len(texts) == 0 {
			continue
		}
		raw, err := json.Marshal(texts)
		if err != nil {
			panic(err)
		}
		parts = append(parts, name+" `"+string(raw)+"`")
	}
	if len(ex.Command) > 0 {
		raw, err := json.Marshal(ex.Command)
		if err != nil {
			panic(err)
		}
		parts = append(parts, "command `"+string(raw)+"`")
	}
	if len(ex.Unknown) > 0 {
		parts = append(parts, "unknown: `"+strings.Join(ex.Unknown, "`, `")+"`")
	}
	if len(ex.Params) > 0 {
		raw, err := json.Marshal(ex.Params)
		if err != nil {
			panic(err)
		}
		parts = append(parts, "with the parameters `"+string(raw)+"`")
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), "|", `\|`)
}

func join[T ~string](items []T) string {
	var out []string
	for _, i := range items {
		out = append(out, strings.ReplaceAll(string(i), "_", " "))
	}
	return strings.Join(out, ", ")
}
