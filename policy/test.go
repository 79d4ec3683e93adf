package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestResult is the outcome of one test.
type TestResult struct {
	Name string `json:"name"` // "custom.acme.registry_test.test_fail_other_registry"
	File string `json:"file"`
	Line int    `json:"line"`
	Pass bool   `json:"pass"`
	Err  string `json:"error,omitempty"` // why it could not be evaluated, or which answer no rule may give

	// Answers are what the rules answered in it, each once.
	Answers []string `json:"answers,omitempty"`
}

// Test runs the tests of a set: each rule test_… in its *_test.rego files
// passes when it is true, and when every answer that a rule gave in it is one that
// it may give. The set itself is loaded first, as [Load] does, so
// that tests of rules that would be refused prove nothing. Tests may use "with".
// Code: invalid; a set without tests is an error too.
func Test(ctx context.Context, src Source) ([]TestResult, error) {
	bad := func(err error, fix string) ([]TestResult, error) {
		return nil, &driver.Error{Code: driver.CodeInvalid, Op: "test policy", Field: "policy.sources", Err: fmt.Errorf("%s: %w", src.Dir, err), Hint: fix}
	}
	if src.Bundle != nil {
		return nil, driver.Invalid("policy.sources", "a bundle holds no tests", "name the directory that it was made of")
	}
	c, err := src.read(ctx)
	if err != nil {
		return nil, err
	}
	rs, err := compile(src.Name, c.files)
	if err != nil {
		return bad(err, "mend the rules; their tests prove nothing as they are")
	}
	params, err := new(Engine).settle(foundation{}, []*ruleset{rs}, Options{})
	if err != nil {
		return nil, err
	}
	modules, names, err := testModules(src, c.files)
	if err != nil {
		return bad(err, "mend the tests")
	}
	if len(names) == 0 {
		return bad(errors.New("no tests: there is no rule test_… in a *_test.rego file"), "write tests that pass, fail and are unknown for each rule")
	}
	schema, err := inputSchema()
	if err != nil {
		return nil, err
	}
	all := ast.NewCompiler().WithStrict(true).WithCapabilities(capabilities()).WithSchemas(schema).WithUseTypeCheckAnnotations(true)
	if all.Compile(modules); all.Failed() {
		return bad(all.Errors, "mend the tests")
	}
	store := inmem.NewFromObject(map[string]any{"params": params})
	for i := range names {
		t := &names[i]
		q := &query{}
		q.prepared, err = rego.New(rego.Query("answers := {\"pass\": data."+t.Name+"}"), rego.Compiler(all), rego.Store(store), rego.StrictBuiltinErrors(true)).PrepareForEval(ctx)
		if err != nil {
			return nil, err
		}
		var seen *answered
		answers, err := twice(ctx, func() (map[string]any, error) {
			seen = &answered{rules: rs.rules}
			return q.eval(ctx, map[string]any{}, budget, rego.EvalQueryTracer(seen))
		})
		t.Answers = seen.texts
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errNoAnswer): // undefined is not true
		case err != nil:
			t.Err = err.Error()
		case seen.fault != "":
			t.Err = seen.fault
		default:
			t.Pass = answers["pass"] == true
		}
	}
	return names, nil
}

// testModules parses the set with its tests, and names the tests in order.
func testModules(src Source, files map[string]string) (map[string]*ast.Module, []TestResult, error) {
	modules := map[string]*ast.Module{}
	var tests []TestResult
	all := maps.Clone(files)
	root, err := os.OpenRoot(src.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.rego"):
			return nil
		}
		info, err := fs.Stat(root.FS(), name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() > maxBytes || len(all) > 2*maxFiles {
			return fmt.Errorf("%s: too large, too many, or no regular file", name)
		}
		raw, err := fs.ReadFile(root.FS(), name)
		all[name] = string(raw)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m, err := ast.ParseModuleWithOpts(filepath.ToSlash(name), all[name], ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1, Capabilities: capabilities()})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		modules[name] = m
		if !strings.HasSuffix(name, "_test.rego") {
			continue
		}
		seen := map[string]bool{}
		for _, r := range m.Rules {
			rule := string(r.Head.Name)
			if strings.HasPrefix(rule, "test_") && !seen[rule] {
				seen[rule] = true
				tests = append(tests, TestResult{Name: strings.TrimPrefix(m.Package.Path.String(), "data.") + "." + rule, File: name, Line: r.Location.Row})
			}
		}
	}
	return modules, tests, errors.Join(errs...)
}
