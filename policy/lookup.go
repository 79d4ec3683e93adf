package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// lookups listens to the evaluation of one rule, and remembers which labels it
// looked up. A label that it did not look up may have any value: the evaluation
// would have been the same.
type lookups struct {
	names []string
	all   bool // it went through them, or there is no telling
}

func (*lookups) Enabled() bool { return true }

func (*lookups) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// labelled is where labels are in the document.
var labelled = []string{"resource", "labels"}

func (l *lookups) TraceEvent(e topdown.Event) {
	expr, ok := e.Node.(*ast.Expr)
	if !ok || e.Op != topdown.EvalOp || l.all {
		return
	}
	var inner func(t *ast.Term) bool
	inner = func(t *ast.Term) bool {
		ref, ok := t.Value.(ast.Ref)
		switch {
		case ok && ref[0].Equal(ast.InputRootDocument):
			l.read(ref[1:], e.Plug)
			for _, step := range ref[1:] { // which may be references themselves
				ast.WalkTerms(step, inner)
			}
			return true
		case t.Equal(ast.InputRootDocument):
			l.all = true
		}
		return false
	}
	ast.WalkTerms(expr, inner)
}

func (l *lookups) read(steps ast.Ref, plug func(*ast.Term) *ast.Term) {
	for i := range len(labelled) + 1 {
		if i >= len(steps) {
			l.all = true // of everything above
			return
		}
		name, ok := plug(steps[i]).Value.(ast.String)
		switch {
		case !ok:
			l.all = true
			return
		case i < len(labelled) && string(name) != labelled[i]:
			return
		case i == len(labelled):
			l.names = append(l.names, string(name))
		}
	}
}

// ignores reports whether a rule, which reads labels by names that it computes,
// came to its answers without the label that is hidden.
func (s *set) ignores(ctx context.Context, r *rule, subj *subject, h *hidden) bool {
	name, ok := labelOf(h.at)
	if !ok || slices.ContainsFunc(r.reads, func(read path) bool { return h.at.meets(read) && !byAnyName(read) }) {
		return false
	}
	if subj.looked == nil {
		subj.looked = map[string]*lookups{}
	}
	l := subj.looked[r.ID]
	if l == nil {
		l = s.lookups(ctx, r, subj)
		subj.looked[r.ID] = l
	}
	return !l.all && len(l.names) > 0 && !slices.Contains(l.names, name)
}

// lookups evaluates one rule again, listening. An index or an early exit
// would keep from it what the answer depends on all the same.
func (s *set) lookups(ctx context.Context, r *rule, subj *subject) *lookups {
	l := &lookups{}
	for _, answer := range r.answers {
		prepared, err := rego.New(
			rego.Query(fmt.Sprintf("answers := {%q: %s}", answer, r.pkg.Append(ast.StringTerm(answer)))),
			rego.Compiler(s.compiler), rego.Store(s.store), rego.StrictBuiltinErrors(true),
		).PrepareForEval(ctx)
		if err == nil {
			q := &query{prepared: prepared}
			_, err = twice(ctx, func() (map[string]any, error) {
				return q.eval(ctx, subj.input, subj.budget(), rego.EvalQueryTracer(l), rego.EvalRuleIndexing(false), rego.EvalEarlyExit(false))
			})
		}
		if err != nil {
			return &lookups{all: true}
		}
	}
	return l
}

// labelOf is the label that a place in the document is.
func labelOf(at path) (string, bool) {
	if len(at) != 3 || at[0] != "resource" || at[1] != "labels" {
		return "", false
	}
	name, ok := at[2].(string)
	return name, ok
}

// byAnyName reports whether a rule reads labels one by one there.
func byAnyName(read path) bool {
	if len(read) != 3 || read[0] != "resource" || read[1] != "labels" {
		return false
	}
	_, open := read[2].(anyStep)
	return open
}
