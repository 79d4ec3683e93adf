package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/dependencies"
)

// checkPackage refuses a module outside its set's root.
func checkPackage(set, file string, m *ast.Module) error {
	root := setRoot(set)
	if !strings.HasPrefix(m.Package.Path.String()+".", root+".") || m.Package.Path.String() == root {
		hint := ""
		if len(m.Package.Path) > 2 && m.Package.Path[1].Equal(ast.StringTerm("custom")) {
			hint = fmt.Sprintf("; to read it as a set of its own, name it %s=DIR", strings.Trim(m.Package.Path[2].String(), `"`))
		}
		return fmt.Errorf("%s: %s is outside %s, where the rules of the set %q live%s", file, m.Package, strings.TrimPrefix(root, "data.")+".…", set, hint)
	}
	return nil
}

// isLib reports whether a package holds helpers: "<root>.lib" and below.
func isLib(set string, pkg ast.Ref) bool {
	return strings.HasPrefix(pkg.String()+".", setRoot(set)+".lib.")
}

// checkRefs refuses references that would be undefined without a word, which
// in Rego means that a rule never fires: other packages' rules, misspelt
// helpers, undeclared parameters. It refuses "with", which would judge another
// input than the one given.
func checkRefs(rs *ruleset, m *ast.Module, r *rule) error {
	var errs []error
	fail := func(at *ast.Location, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
	}
	root, params := refOf(setRoot(rs.name)), refOf("data.params")
	for _, decl := range m.Rules {
		ast.WalkExprs(decl, func(e *ast.Expr) bool {
			if len(e.With) > 0 {
				fail(e.Location, `"with" is for tests only`)
			}
			return false
		})
		ast.WalkRefs(decl, func(ref ast.Ref) bool {
			if !ref[0].Equal(ast.DefaultRootDocument) {
				return false
			}
			constant := ref.ConstantPrefix()
			switch {
			case constant.HasPrefix(params):
				name := ""
				if len(constant) > 2 {
					name = strings.Trim(constant[2].String(), `"`)
				}
				if r == nil || !slices.ContainsFunc(r.Params, func(p Param) bool { return p.Name == name }) {
					fail(ref[0].Location, "%s is no parameter that this package declares under custom.params", ref)
				}
			case !constant.HasPrefix(root):
				fail(ref[0].Location, "%s is outside %s", ref, root)
			case len(rs.compiler.GetRules(constant)) == 0:
				fail(ref[0].Location, "%s refers to nothing", ref)
			}
			return false
		})
	}
	return errors.Join(errs...)
}

// refOf makes a reference of plain names. To parse one costs a hundred times
// as much, once for every module.
func refOf(dotted string) ast.Ref {
	names := strings.Split(dotted, ".")
	ref := ast.Ref{ast.VarTerm(names[0])}
	for _, n := range names[1:] {
		ref = append(ref, ast.StringTerm(n))
	}
	return ref
}

// checkAnswers finds the answers of a rule's package and what they read. The
// answers must be sets, which are empty and never undefined when nothing is
// wrong, and everything in the package must lead to one, since "deny_all" or
// "dney" would otherwise never be asked.
func checkAnswers(rs *ruleset, says *metadata, r *rule) error {
	m := says.module
	var errs []error
	used := map[*ast.Rule]bool{}
	for _, decl := range m.Rules {
		name := string(decl.Head.Name)
		if name != "deny" && name != "warn" {
			continue
		}
		if decl.Head.RuleKind() != ast.MultiValue || len(decl.Head.Args) > 0 || decl.Default {
			errs = append(errs, fmt.Errorf(`%s: %s must be a set: "%s contains finding if { … }"`, decl.Location, name, name))
			continue
		}
		if !slices.Contains(r.answers, name) {
			r.answers = append(r.answers, name)
		}
		if err := reads(rs.compiler, decl, used, &r.reads); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", decl.Location, err))
		}
	}
	for _, decl := range m.Rules {
		if !used[decl] && len(errs) == 0 {
			errs = append(errs, fmt.Errorf("%s: %s is never asked: neither deny nor warn, nor used by one", decl.Location, decl.Head.Name))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(r.answers) == 0 || slices.Contains(r.answers, "deny") != (r.Effect == "deny") {
		return fmt.Errorf("%s: METADATA: custom.effect is %q, but the package answers %q", says.at("custom", "effect"), r.Effect, r.answers)
	}
	if len(r.reads) == 0 {
		return fmt.Errorf("%s: %s reads nothing of the input", m.Package.Location, r.ID)
	}
	slices.SortFunc(r.reads, func(a, b path) int { return strings.Compare(a.String(), b.String()) })
	r.reads = slices.CompactFunc(r.reads, func(a, b path) bool { return a.String() == b.String() })
	for _, p := range r.reads {
		r.Reads = append(r.Reads, p.String())
	}
	return nil
}

// reads adds to out every place of the input that decl depends on, directly
// or through the rules and functions it uses, and marks those in used.
func reads(c *ast.Compiler, decl *ast.Rule, used map[*ast.Rule]bool, out *[]path) error {
	if used[decl] {
		return nil
	}
	used[decl] = true
	refs, err := dependencies.Minimal(decl)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if ref[0].Equal(ast.InputRootDocument) {
			*out = append(*out, inputPath(ref))
			continue
		}
		for _, next := range c.GetRules(ref.ConstantPrefix()) {
			if err := reads(c, next, used, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func inputPath(ref ast.Ref) path {
	var p path
	for _, t := range ref[1:] {
		if s, ok := t.Value.(ast.String); ok {
			p = append(p, string(s))
		} else {
			p = append(p, anyStep{})
		}
	}
	return p
}
