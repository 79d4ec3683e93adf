package codes

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var update = flag.Bool("update", false, "write docs/errors instead of comparing it")

const dir = "../../docs/errors"

func TestEveryCodeIsExplainedOnceAndInOrder(t *testing.T) {
	t.Parallel()
	var have []driver.Code
	for _, e := range All() {
		have = append(have, e.Code)
		if e.Title == "" || e.Meaning == "" || len(e.Causes) == 0 || len(e.Steps) == 0 || e.Retry == "" {
			t.Errorf("%s is not explained in full", e.Code)
		}
		if !strings.Contains(e.Example.Error, string(e.Code)) {
			t.Errorf("the example of %s is of another code: %s", e.Code, e.Example.Error)
		}
		if got, ok := Of(e.Code); !ok || got.Title != e.Title {
			t.Errorf("%s is not found", e.Code)
		}
	}
	if d := cmp.Diff(driver.Codes(), have); d != "" {
		t.Errorf("codes and their explanations differ (-codes +explained):\n%s", d)
	}
	if _, ok := Of("nonsense"); ok {
		t.Error("nonsense is explained")
	}
}

// TestPages holds docs/errors against the table: a page for each code, and no
// other.
func TestPages(t *testing.T) {
	pages := map[string]string{"README.md": index()}
	for _, e := range All() {
		pages[string(e.Code)+".md"] = e.page()
	}
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range pages {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%v; make generate makes it", err)
		} else if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%s is out of date; make generate mends it (-want +got):\n%s", name, d)
		}
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if _, ok := pages[f.Name()]; !ok {
			t.Errorf("%s belongs to no code", filepath.Join(dir, f.Name()))
		}
	}
}

// The constants that pages name are declared, with these very values.
func TestPagesNameConstantsThatExist(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../sandbox/alias.go")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(source))
	for _, e := range All() {
		if name := strings.TrimPrefix(e.goName(), "sandbox."); !slices.Contains(words, name) {
			t.Errorf("there is no sandbox.%s", name)
		}
	}
}

func TestLinesAreFolded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, e := range All() {
		e.Example = Example{}
		e.Print(&b, "", "")
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > width+len("x\n")+4 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
}
