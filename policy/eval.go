package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// set is a ruleset with the parameters in force.
type set struct {
	*ruleset
	store    storage.Store
	turns    chan struct{}
	mu       sync.Mutex
	prepared map[occasion]*query
}

// occasion decides which rules run.
type occasion struct {
	kind  Kind
	stage Stage
}

// query asks the rules of one occasion, all at once.
type query struct {
	rules    []*rule
	prepared rego.PreparedEvalQuery
}

func newSet(rs *ruleset, params map[string]any) *set {
	return &set{
		ruleset: rs, store: inmem.NewFromObject(map[string]any{"params": params}), turns: make(chan struct{}, runtime.GOMAXPROCS(0)),
		prepared: map[occasion]*query{},
	}
}

func (s *set) query(ctx context.Context, o occasion) (*query, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.prepared[o]; ok {
		return q, nil
	}
	q := &query{}
	var asked []string
	for _, r := range s.rules {
		if !r.applies(o.kind, o.stage) {
			continue
		}
		q.rules = append(q.rules, r)
		for _, a := range r.answers {
			asked = append(asked, fmt.Sprintf("%q: %s", r.ID+" "+a, r.pkg.Append(ast.StringTerm(a))))
		}
	}
	var err error
	if len(q.rules) > 0 {
		q.prepared, err = rego.New(
			rego.Query("answers := {"+strings.Join(asked, ", ")+"}"),
			rego.Compiler(s.compiler),
			rego.Store(s.store),
			rego.StrictBuiltinErrors(true),
		).PrepareForEval(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.prepared[o] = q
	return q, nil
}

// judge gives the findings of a set, and the ids of the rules that ran. It
// returns no error but the context's own.
func (s *set) judge(ctx context.Context, subj *subject) (found []sandbox.Finding, ran []string, err error) {
	q, err := s.query(ctx, occasion{subj.kind, subj.stage})
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return []sandbox.Finding{failure("", err.Error())}, nil, nil
	}
	if len(q.rules) == 0 {
		return nil, nil, nil
	}
	for _, r := range q.rules {
		ran = append(ran, r.ID)
	}
	// As many evaluations as processors: waiting for a turn costs nothing of
	// the budget, so that a burst of requests is slow and not denied.
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	answers, err := twice(ctx, func() (map[string]any, error) { return q.eval(ctx, subj.input, subj.budget()) })
	defer func() { <-s.turns }()
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return []sandbox.Finding{s.failed(err)}, ran, nil
	}
	for _, r := range q.rules {
		found = append(found, r.findings(answers, subj, func(h *hidden) bool { return s.ignores(ctx, r, subj, h) })...)
	}
	return found, ran, nil
}

// twice asks again who did not answer in time: a machine that was busy for a
// moment is not the rules' fault.
func twice(ctx context.Context, eval func() (map[string]any, error)) (map[string]any, error) {
	answers, err := eval()
	if errors.Is(err, errBudget) && ctx.Err() == nil {
		return eval()
	}
	return answers, err
}

var errBudget = errors.New("the rules did not answer in time, twice")

// budget is the time of one evaluation: a whole plan has as much for each of
// its resources as is plenty for one, and so has a long allowlist.
func (s *subject) budget() time.Duration {
	graph, _ := s.input["graph"].(map[string]any)
	nodes, _ := graph["nodes"].([]any)
	return budget + time.Duration(len(nodes)+len(s.resource.Network.Egress))*perItem
}

var errNoAnswer = errors.New("the rules gave no answer")

func (q *query) eval(ctx context.Context, input map[string]any, limit time.Duration, more ...rego.EvalOption) (answers map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the evaluation panicked: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	parsed, err := ast.InterfaceToValue(input)
	if err != nil {
		return nil, err
	}
	rs, err := q.prepared.Eval(ctx, append(more, rego.EvalParsedInput(parsed))...)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %s are given: %w", errBudget, limit, err)
		}
		return nil, err
	}
	if len(rs) == 0 {
		return nil, errNoAnswer
	}
	if len(rs) != 1 {
		return nil, fmt.Errorf("the rules gave %d answers instead of one", len(rs))
	}
	answers, ok := rs[0].Bindings["answers"].(map[string]any)
	if !ok {
		return nil, errNoAnswer
	}
	return answers, nil
}

// failed is the finding for an evaluation that broke off, laid at the door of
// the rule whose file is to blame, where that is known.
func (s *set) failed(err error) sandbox.Finding {
	var e *topdown.Error
	if errors.As(err, &e) && e.Location != nil {
		for _, r := range s.rules {
			if r.file == e.Location.File {
				return r.broken(err.Error())
			}
		}
	}
	return failure("", fmt.Sprintf("set %q: %v", s.name, err))
}

// broken is the finding for a rule that cannot be asked, with a fix for whoever
// wrote it: nothing that is judged can be mended for it.
func (r *rule) broken(problem string) sandbox.Finding {
	f := r.finding(sandbox.Failed, "", problem)
	f.Remediation = fmt.Sprintf("The rule is broken, not what it judges: have its author mend it in %s (the set %s), and test it with sandboxio policy test", r.file, r.Set)
	if r.Set == builtin {
		f.Remediation = "This is a bug of a built-in rule: please report it"
	}
	return f
}

// findings are a rule's answers, and what it could not answer. ignores reports
// whether a hidden value that the rule may read was not asked for.
func (r *rule) findings(answers map[string]any, subj *subject, ignores func(*hidden) bool) []sandbox.Finding {
	var out []sandbox.Finding
	pending := map[string]*hidden{}
	denied := false
	for _, answer := range r.answers {
		effect := sandbox.Decision(answer)
		items, ok := answers[r.ID+" "+answer].([]any)
		if !ok {
			out = append(out, r.broken(answer+" is not a set"))
			continue
		}
		for _, item := range items {
			at, message, waivable, err := parseAnswer(subj.kind, item)
			if err != nil {
				out = append(out, r.broken(err.Error()))
				continue
			}
			if h := subj.unknownAbove(at); h != nil {
				pending[h.origin] = h // what it says is of a value nobody knows yet
				continue
			}
			denied = denied || effect == sandbox.Deny
			if !waivable {
				subj.firm = append(subj.firm, r.ID+" "+at.String())
			}
			out = append(out, r.finding(effect, at.String(), message))
		}
	}
	if denied {
		return out
	}
	for i, h := range subj.hidden {
		if slices.ContainsFunc(r.reads, h.at.meets) && !ignores(&subj.hidden[i]) {
			pending[h.origin] = &subj.hidden[i]
		}
	}
	for origin, h := range pending {
		effect, message := subj.unjudged(h)
		out = append(out, r.finding(effect, origin, message))
	}
	return out
}

// unjudged says what it means that a rule reads a hidden value.
func (s *subject) unjudged(h *hidden) (sandbox.Decision, string) {
	late := s.stage == StageApply || s.stage == StageRuntime
	switch {
	case h.secret != "" && late:
		return sandbox.Deny, "the value " + h.secret + ", and what cannot be judged is denied"
	case h.secret != "":
		return sandbox.Unknown, "the value " + h.secret + ", and what cannot be judged will be denied"
	case late:
		return sandbox.Deny, "the value is still not known, and what cannot be judged is denied"
	}
	return sandbox.Unknown, "the value is not known yet; the rule is asked again once it is"
}

// unknownAbove is the unknown value that at lies in.
func (s *subject) unknownAbove(at path) *hidden {
	for i, h := range s.hidden {
		if h.secret != "" {
			continue
		}
		if append(path{s.root}, at...).under(h.at) {
			return &s.hidden[i]
		}
		if len(at) > 1 && freeKeys[at[0]] && at[:2].String() == h.origin {
			return &s.hidden[i]
		}
	}
	return nil
}

// parseAnswer reads {"path": […] or "…", "message": "…"}, and "waivable": false
// where nobody may excuse this one; a rule that answers anything else, or of a
// place that nothing of the kind can have, is broken, and must not pass for
// content.
func parseAnswer(k Kind, item any) (at path, message string, waivable bool, err error) {
	if at, message, waivable, err = readAnswer(item); err != nil {
		return at, message, waivable, fmt.Errorf(`an answer %w; it must be {"path": ["network", "egress", 0], "message": "…"}`, err)
	}
	if err := checkPath(k, at); err != nil {
		return nil, "", false, fmt.Errorf("an answer %w", err)
	}
	return at, message, waivable, nil
}

func readAnswer(item any) (at path, message string, waivable bool, err error) {
	bad := func(problem string) (path, string, bool, error) {
		return nil, "", false, errors.New(problem)
	}
	m, ok := item.(map[string]any)
	firm, says := m["waivable"]
	if !ok || len(m) != 2 && !says || says && (firm != false || len(m) != 3) {
		return bad("is not an object of path and message, and waivable = false at most")
	}
	message, ok = m["message"].(string)
	if !ok || message == "" {
		return bad("has no message")
	}
	switch p := m["path"].(type) {
	case string:
		at, err := parsePath(p)
		if err != nil {
			return bad("has a path that cannot be read")
		}
		return at, message, !says, nil
	case []any:
		for _, step := range p {
			switch v := step.(type) {
			case string:
				at = append(at, v)
			case json.Number:
				n, err := v.Int64()
				if err != nil || n < 0 {
					return bad("has a path with a broken index")
				}
				at = append(at, int(n))
			default:
				return bad("has a path of something else than texts and numbers")
			}
		}
		if len(at) > 0 {
			return at, message, !says, nil
		}
	}
	return bad("has no path")
}
