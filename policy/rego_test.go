package policy

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

const rulesDir = "../policies"

// regoFiles are all Rego files there are, tests included, by name.
func regoFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(rulesDir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".rego" {
			return err
		}
		files[name], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRegoIsFormatted(t *testing.T) {
	for name, src := range regoFiles(t) {
		want, err := format.SourceWithOpts(name, src, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(src, want) {
			continue
		}
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("%s is not formatted; go test ./policy -update mends it", name)
	}
}

// TestRegoTests runs the rules' own tests, as "opa test" would, and asks that
// they pass through every line of every rule.
func TestRegoTests(t *testing.T) {
	modules := map[string]*ast.Module{}
	for name, src := range regoFiles(t) {
		m, err := ast.ParseModuleWithOpts(name, string(src), ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = m
	}
	own, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := new(Engine).settle(foundation{}, []*ruleset{own}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := inputSchema()
	if err != nil {
		t.Fatal(err)
	}
	store := inmem.NewFromObject(map[string]any{"params": defaults})
	coverage := cover.New()
	compiler := ast.NewCompiler().WithStrict(true).WithCapabilities(capabilities()).WithSchemas(schema).WithUseTypeCheckAnnotations(true)
	var ran []string
	err = storage.Txn(t.Context(), store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		results, err := tester.NewRunner().SetCompiler(compiler).SetStore(store).SetModules(modules).
			RaiseBuiltinErrors(true).SetCoverageQueryTracer(coverage).RunTests(t.Context(), txn)
		if err != nil {
			return err
		}
		for r := range results {
			ran = append(ran, strings.TrimPrefix(r.Package, "data.")+"."+r.Name)
			if !r.Pass() {
				t.Errorf("%s: %s.%s failed: %v", r.Location, r.Package, r.Name, r.Error)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, r := range own.rules {
		for _, outcome := range []string{"pass", "fail", "unknown"} {
			prefix := strings.TrimPrefix(r.pkg.String(), "data.") + "_test.test_" + outcome + "_"
			if !slices.ContainsFunc(ran, func(name string) bool { return strings.HasPrefix(name, prefix) }) {
				t.Errorf("%s: no test %s…", r.ID, prefix)
			}
		}
	}
	report := coverage.Report(modules)
	for name, file := range report.Files {
		if !strings.HasSuffix(name, "_test.rego") && len(file.NotCovered) > 0 {
			t.Errorf("%s: the tests do not pass through %v", name, file.NotCovered)
		}
	}
	if len(report.Files) < len(own.rules) {
		t.Errorf("coverage of %d files, for %d rules", len(report.Files), len(own.rules))
	}
}
