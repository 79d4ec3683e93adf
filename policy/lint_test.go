package policy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/sandboxio/terraform-provider-sandboxio/policies"
)

// The house's style for Rego, as far as a machine can tell. What would make a
// rule silently wrong is refused when a set is loaded, a customer's included;
// this is about our own files.

// lint finds everything that is wrong with one file.
func lint(t testing.TB, name, src string) []string {
	t.Helper()
	m, err := ast.ParseModuleWithOpts(name, src, ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	say := func(at *ast.Location, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s", name, at.Row, fmt.Sprintf(format, args...)))
	}
	lintText(name, src, say)
	for _, i := range m.Imports {
		if p, ok := i.Path.Value.(ast.Ref); ok && (p[0].Equal(ast.InputRootDocument) || strings.HasPrefix(p.String(), "future.") || p.String() == "rego.v2") {
			say(i.Location, "imports %s", p)
		}
	}
	for _, r := range m.Rules {
		if lines := strings.Count(strings.TrimSpace(string(r.Location.Text)), "\n") + 1; lines > 30 {
			say(r.Location, "the rule %s has %d lines, of 30 at most", r.Head.Name, lines)
		}
		ast.WalkBodies(r, func(b ast.Body) bool { lintIteration(b, say); return false })
		ast.WalkExprs(r, func(e *ast.Expr) bool { lintExpr(e, say); return false })
		ast.WalkTerms(r, func(t *ast.Term) bool {
			if c, ok := t.Value.(ast.Call); ok {
				lintCall(c, t.Location, say)
			}
			return false
		})
	}
	return found
}

type sayer func(at *ast.Location, format string, args ...any)

func lintText(name, src string, say sayer) {
	lines := strings.Split(src, "\n")
	if len(lines) > 500 {
		say(ast.NewLocation(nil, name, 500, 1), "the file has %d lines, of 500 at most", len(lines))
	}
	for i, line := range lines {
		at := ast.NewLocation(nil, name, i+1, 1)
		isList := strings.HasPrefix(line, "#       default:") // of a parameter
		if n := len(line); n > 120 && !isList && !strings.HasSuffix(name, "_test.rego") {
			say(at, "%d columns, of 120 at most", n)
		}
		if strings.Contains(line, "TODO") || strings.Contains(line, "FIXME") {
			say(at, "something is not done yet")
		}
	}
}

// lintIteration refuses "some x" with "x == list[_]", which "some x in list"
// says.
func lintIteration(b ast.Body, say sayer) {
	declared := map[ast.Var]bool{}
	for _, e := range b {
		if d, ok := e.Terms.(*ast.SomeDecl); ok {
			for _, s := range d.Symbols {
				if v, ok := s.Value.(ast.Var); ok {
					declared[v] = true
				}
			}
			continue
		}
		if !e.IsCall() || !slices.Contains([]string{"equal", "eq", "assign"}, e.Operator().String()) {
			continue
		}
		for i := range 2 {
			v, isVar := e.Operand(i).Value.(ast.Var)
			ref, isRef := e.Operand(1 - i).Value.(ast.Ref)
			if isVar && isRef && declared[v] && slices.ContainsFunc(ref, func(t *ast.Term) bool { w, ok := t.Value.(ast.Var); return ok && w.IsWildcard() }) {
				say(e.Location, "write: some %s in %s", v, ref[:len(ref)-1])
			}
		}
	}
}

func lintExpr(e *ast.Expr, say sayer) {
	if !e.IsCall() {
		return
	}
	switch op := e.Operator().String(); op {
	case "eq":
		say(e.Location, "write := or ==, never =")
	case "neq":
		if e.Negated {
			say(e.Location, "a double negative: write ==")
		}
		for i := range 2 {
			if ref, ok := e.Operand(i).Value.(ast.Ref); ok && slices.ContainsFunc(ref[1:], func(t *ast.Term) bool { w, ok := t.Value.(ast.Var); return ok && w.IsWildcard() }) {
				say(e.Location, "true of the first that differs: write not … in …, or every")
			}
		}
	case "print":
		say(e.Location, "print is for debugging")
	case "assign":
		if ref, ok := e.Operand(1).Value.(ast.Ref); ok && ref[0].Equal(ast.InputRootDocument) && isObject(ref) {
			say(e.Location, "%s is another name for %s, and hides what the rule reads of it", e.Operand(0), ref)
		}
	}
	terms, ok := e.Terms.([]*ast.Term)
	if ok {
		lintCall(terms, e.Location, say)
	}
}

func lintCall(call []*ast.Term, at *ast.Location, say sayer) {
	op := call[0].String()
	switch {
	case op == "sprintf" && len(call) > 2:
		format, isText := call[1].Value.(ast.String)
		args, isList := call[2].Value.(*ast.Array)
		if !isText || !isList {
			say(at, "sprintf without a fixed format and a list of its arguments")
		} else if verbs := len(verb.FindAllString(strings.ReplaceAll(string(format), "%%", ""), -1)); verbs != args.Len() {
			say(at, "sprintf of %q: %d verbs for %d arguments", string(format), verbs, args.Len())
		}
	case strings.HasPrefix(op, "regex.") && len(call) > 1:
		pattern, isText := call[1].Value.(ast.String)
		if !isText {
			say(at, "%s of a pattern that is not fixed", op)
		} else if _, err := regexp.Compile(string(pattern)); err != nil {
			say(at, "%s: %v", op, err)
		} else if !strings.HasPrefix(string(call[1].Location.Text), "`") {
			say(at, "%s: write the pattern between backquotes", op)
		}
	}
	if b, known := ast.BuiltinMap[op]; known && !slices.Contains(allowed, b.Name) {
		say(at, "%s is none of the functions that rules may call", op)
	}
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-z]`)

// isObject reports whether the schema has an object at ref: a rule that names
// it reads all of it.
func isObject(ref ast.Ref) bool {
	var node map[string]any
	if err := json.Unmarshal(policies.Schema, &node); err != nil {
		panic(err)
	}
	for _, t := range ref[1:] {
		key, fixed := t.Value.(ast.String)
		next, ok := property(node, string(key))
		if !ok || !fixed && node["items"] == nil {
			return false // any of several fields, as of a table
		}
		node = next
	}
	_, ok := property(node, "")
	return ok && node["items"] == nil
}

// property is the schema of a field, of an element, or, for "", of whatever is
// below.
func property(node map[string]any, key string) (map[string]any, bool) {
	if options, ok := node["anyOf"].([]any); ok {
		for _, o := range options {
			if n, ok := o.(map[string]any); ok && n["type"] != "null" {
				return property(n, key)
			}
		}
	}
	if items, ok := node["items"].(map[string]any); ok {
		return items, true
	}
	fields, ok := node["properties"].(map[string]any)
	if !ok || key == "" {
		return node, ok
	}
	next, ok := fields[key].(map[string]any)
	return next, ok
}

func TestRegoKeepsTheHousesStyle(t *testing.T) {
	for name, src := range regoFiles(t) {
		for _, problem := range lint(t, name, string(src)) {
			t.Error(problem)
		}
	}
}

func TestTestsLiveBesideTheirRule(t *testing.T) {
	for name, src := range regoFiles(t) {
		m, err := ast.ParseModuleWithOpts(name, string(src), ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Rel(rulesDir, filepath.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		want := "data.sandboxio." + strings.ReplaceAll(filepath.ToSlash(dir), "/", ".")
		switch {
		case dir == "lib":
			want += "." + strings.TrimSuffix(filepath.Base(name), ".rego")
		case strings.HasSuffix(name, "_test.rego"):
			want += "_test"
		}
		if m.Package.Path.String() != want {
			t.Errorf("%s: the package is %s, not %s", name, m.Package.Path, want)
		}
	}
}

func TestRulesMayCallNothingThatReachesOut(t *testing.T) {
	outside := regexp.MustCompile(`^(?:http|net\.lookup|opa|rand|uuid|rego|trace|io|providers|time\.now|print|json\.match|json\.verify)`)
	for _, name := range allowed {
		b, known := ast.BuiltinMap[name]
		if !known || b.Nondeterministic || outside.MatchString(name) {
			t.Errorf("%s: known %t, %+v", name, known, b)
		}
	}
}

func TestLintFindsWhatItLooksFor(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"another name for the resource", `deny if { r := input.resource; r.image }`, "r is another name for input.resource"},
		{"another name for an element", `deny if { some i; e := input.facts.egress[i]; e.bits }`, "e is another name"},
		{"another name for everything", `deny if { x := input; x.kind }`, "x is another name"},
		{"a scalar has a name", `deny if { p := input.resource.resources.pids; p > 3 }`, ""},
		{"an element of a list of scalars has a name", `deny if { some i; p := input.resource.network.expose[i]; p > 3 }`, ""},
		{"iteration by equality", `deny if { some x; x == input.resource.secrets[_] }`, "write: some x in input.resource.secrets"},
		{"iteration by membership", `deny if { some x in input.resource.secrets; x == "a" }`, ""},
		{"unification", `deny if { x = input.kind; x == "a" }`, "write := or =="},
		{"a double negative", `deny if not input.kind != "a"`, "double negative"},
		{"inequality over a list", `deny if input.resource.secrets[_] != "a"`, "true of the first that differs"},
		{"too few arguments", `deny if sprintf("%s %d", [input.kind]) == ""`, "2 verbs for 1 arguments"},
		{"a percent sign is no verb", `deny if sprintf("%d%% of %s", [1, input.kind]) == ""`, ""},
		{"arguments from elsewhere", `deny if sprintf("%s", input.resource.secrets) == ""`, "a list of its arguments"},
		{"a pattern with escapes", `deny if regex.match("^\\d", input.kind)`, "between backquotes"},
		{"a pattern that is none", "deny if regex.match(`(`, input.kind)", "missing closing"},
		{"a pattern from elsewhere", `deny if regex.match(input.address, input.kind)`, "not fixed"},
		{"a good pattern", "deny if regex.match(`^a`, input.kind)", ""},
		{"the clock", `deny if time.now_ns() > 0`, "time.now_ns is none of the functions"},
		{"the network", `deny if http.send({"url": input.address}).status_code == 200`, "http.send is none of the functions"},
		{"chance", `deny if rand.intn("a", 2) == 1`, "rand.intn is none of the functions"},
		{"what is not done yet", "# TODO: more\ndeny if input.kind", "not done yet"},
		{"a long line", `deny if input.kind == "` + strings.Repeat("a", 120) + `"`, "columns"},
		{"a long rule", "deny if {\n" + strings.Repeat("\tinput.kind\n", 30) + "}", "has 32 lines"},
		{"a long file", "deny if input.kind\n" + strings.Repeat("\n", 500), "lines, of 500"},
		{"an import of input", "import input.resource as r\n\ndeny if r", "imports input.resource"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := strings.Join(lint(t, "x/rule.rego", "package x\n\n"+tc.body+"\n"), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
