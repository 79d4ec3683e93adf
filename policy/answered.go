package policy

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// answered listens to a test, and holds every answer that a rule gives in it
// against what rules may answer.
type answered struct {
	rules []*rule
	texts []string // "ACME-LAB-001 deny {…}", each once
	fault string   // the first that is none
}

func (*answered) Enabled() bool { return true }

func (*answered) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (a *answered) TraceEvent(e topdown.Event) {
	decl, ok := e.Node.(*ast.Rule)
	if !ok || e.Op != topdown.ExitOp || decl.Module == nil || decl.Head.Key == nil {
		return
	}
	name := string(decl.Head.Name)
	i := slices.IndexFunc(a.rules, func(r *rule) bool {
		return r.pkg.Equal(decl.Module.Package.Path) && slices.Contains(r.answers, name)
	})
	if i < 0 {
		return
	}
	r, term := a.rules[i], e.Plug(decl.Head.Key)
	text := fmt.Sprintf("%s %s %s", r.ID, name, term)
	if slices.Contains(a.texts, text) {
		return
	}
	a.texts = append(a.texts, text)
	answer, err := ast.JSON(term.Value)
	if err == nil {
		err = r.mayAnswer(e.Input(), answer)
	}
	if err != nil && a.fault == "" {
		a.fault = fmt.Sprintf("%s: %s: %v", decl.Location, r.ID, err)
	}
}

// mayAnswer holds an answer against the kind of the test's input, or, where
// that says none, against all kinds that the rule judges.
func (r *rule) mayAnswer(input *ast.Term, answer any) error {
	kinds := r.Kinds
	if input != nil {
		if v, err := input.Value.Find(ast.Ref{ast.StringTerm("kind")}); err == nil {
			if s, ok := v.(ast.String); ok {
				kinds = []Kind{Kind(s)}
			}
		}
	}
	var err error
	for _, k := range kinds {
		if _, _, _, err = parseAnswer(k, answer); err == nil {
			return nil
		}
	}
	return err
}
