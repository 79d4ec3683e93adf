package review

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// Options say what counts.
type Options struct {
	Baseline map[string]bool // fingerprints of findings that are known
	Excerpts bool            // keep lines of the source
}

// job is one resource on its way to a worker; done gets the answer, once.
type job struct {
	item plan.Item
	err  error
	done chan answer
}

type answer struct {
	findings []Finding
	rules    []string
	nodes    []node
	err      error
}

// Run has the policy judge every resource of a plan. Resources are judged at
// the same time, as many as there are processors, and reported in the plan's
// order.
func Run(ctx context.Context, p *plan.Plan, e *policy.Engine, o Options) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	jobs, ordered := make(chan *job), make(chan *job, 4*workers)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	for range workers {
		wait.Go(func() {
			for j := range jobs {
				j.done <- judge(ctx, p, e, j.item, o)
			}
		})
	}
	wait.Go(func() {
		defer close(ordered)
		defer close(jobs)
		for item, err := range p.Items(ctx) {
			j := &job{item: item, err: err, done: make(chan answer, 1)}
			select {
			case ordered <- j:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				j.done <- answer{err: ctx.Err()}
				return
			}
		}
	})
	r := &Report{Decision: sandbox.Allow, Policy: e.Digest(), Whole: p.Whole()}
	waivers := map[string]plan.Place{}
	for _, w := range e.Waivers() {
		if w.File != "" {
			waivers[w.Field] = plan.Place{File: plan.Shown(w.File), Line: w.Line, Column: 1, EndLine: w.Line, EndColumn: 1, Exact: true}
		}
	}
	ran, seen := map[string]bool{}, map[string]int{}
	var nodes []node
	var last []Finding // about the policy itself
	keep := func(f Finding) {
		if seen[f.Fingerprint]++; seen[f.Fingerprint] > 1 {
			if f.Address == "" {
				return // said once
			}
			f.Fingerprint += fmt.Sprintf("-%d", seen[f.Fingerprint])
		}
		f.Known = o.Baseline[f.Fingerprint] && keeps(f.Effect)
		if f.Address == "" {
			f.Place = waivers[f.Path]
		}
		if f.Counts() && rank(f.Effect) < rank(r.Decision) {
			r.Decision = f.Effect
		}
		ran[f.Rule] = true
		if f.Address == "" {
			last = append(last, f)
			return
		}
		r.Findings = append(r.Findings, f)
	}
	for j := range ordered {
		if j.err != nil {
			return nil, j.err
		}
		a := <-j.done
		if a.err != nil {
			return nil, a.err
		}
		for _, id := range a.rules {
			ran[id] = true
		}
		nodes = append(nodes, a.nodes...)
		for _, f := range a.findings {
			keep(f)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := judgeTogether(ctx, p, e, nodes, o)
	if a.err != nil {
		return nil, a.err
	}
	for _, id := range a.rules {
		ran[id] = true
	}
	alone := maps.Clone(seen)
	for _, f := range a.findings {
		if alone[f.Fingerprint] == 0 { // the resource's own judgement has said it
			keep(f)
		}
	}
	for _, f := range e.Unmatched() {
		keep(settings(f))
	}
	together(r.Findings)
	r.Findings = append(r.Findings, last...)
	r.Seen = p.Seen()
	if r.Seen.Partial && rank(r.Decision) > rank(sandbox.Unknown) {
		r.Decision = sandbox.Unknown // what is missing is not decided
	}
	for _, info := range e.Rules() {
		if ran[info.ID] {
			r.Rules = append(r.Rules, info)
		}
	}
	return r, r.Seen.Nothing()
}

// together sorts what rules over the whole plan said to the resources that they
// said it of, worst first.
func together(all []Finding) {
	first := map[string]int{}
	for i, f := range all {
		if _, ok := first[f.Address]; !ok {
			first[f.Address] = i
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(first[a.Address], first[b.Address]), cmp.Compare(rank(a.Effect), rank(b.Effect)),
			cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)), strings.Compare(a.Rule, b.Rule))
	})
}

// settings is a finding about what the policy was told, and not about one
// resource.
func settings(f sandbox.Finding) Finding {
	out := Finding{Finding: f, Attribute: f.Path}
	out.Fingerprint = fingerprint(out, "")
	return out
}

// unreadable is the rule for what cannot be judged.
const (
	unreadable = "SBX-POL-002"
	weakened   = "SBX-POL-001" // and the one for settings that make it milder
)

func judge(ctx context.Context, p *plan.Plan, e *policy.Engine, item plan.Item, o Options) (a answer) {
	add := func(part plan.Part, f sandbox.Finding) {
		a.findings = append(a.findings, told(p, item, part, f, f.Path, o))
	}
	failed := func(part plan.Part, err error) {
		for _, info := range e.Rules() {
			if info.ID == unreadable {
				for _, f := range problems(err) {
					f.Rule, f.Title, f.Severity, f.Effect, f.Page = info.ID, info.Title, info.Severity, sandbox.Failed, info.Page
					f.Remediation = cmp.Or(f.Remediation, info.Remediation)
					add(part, f)
				}
			}
		}
	}
	for _, w := range item.Weakens {
		for _, info := range e.Rules() {
			if info.ID == weakened {
				add(item.Parts[0], sandbox.Finding{Rule: info.ID, Title: info.Title, Severity: info.Severity, Effect: sandbox.Warn, Message: w.Message,
					Path: w.Field, Remediation: info.Remediation, Page: info.Page})
			}
		}
	}
	for _, set := range item.Sets {
		if set.Name != "" && slices.Contains(e.Sets(), set.Name) {
			continue
		}
		for _, info := range e.Rules() {
			if info.ID == unreadable {
				add(item.Parts[0], sandbox.Finding{Rule: info.ID, Title: info.Title, Severity: info.Severity, Effect: sandbox.Unknown, Message: set.Message,
					Path: set.Field, Remediation: info.Remediation, Page: info.Page})
			}
		}
	}
	if item.Opaque != "" {
		for _, info := range e.Rules() {
			if info.ID == unreadable {
				add(plan.Part{}, sandbox.Finding{Rule: info.ID, Title: info.Title, Severity: info.Severity, Effect: sandbox.Unknown, Message: item.Opaque,
					Remediation: info.Remediation, Page: info.Page})
			}
		}
		return a
	}
	if item.Problem != nil {
		failed(item.Parts[0], item.Problem)
		return a
	}
	for _, part := range item.Parts {
		part.Input.Address = item.Address
		v, err := e.Judge(ctx, part.Input)
		if err != nil {
			if ctx.Err() != nil {
				return answer{err: ctx.Err()}
			}
			failed(part, err)
			continue
		}
		a.rules = append(a.rules, v.Rules...)
		if n, ok := nodeOf(item, part); ok {
			a.nodes = append(a.nodes, n)
		}
		for _, f := range v.Findings {
			switch {
			case strings.HasPrefix(f.Path, "policy."):
				a.findings = append(a.findings, settings(f))
			case part.Keep(f):
				add(part, f)
			}
		}
	}
	return a
}

// untold is what messages about a mount or a published port leave out, and what
// makes another one of it.
func untold(r policy.Resource, field string) string {
	var i int
	if n, _ := fmt.Sscanf(field, "mounts[%d]", &i); n == 1 && i >= 0 && i < len(r.Mounts) && r.Mounts[i].Source != nil {
		return *r.Mounts[i].Source
	}
	if n, _ := fmt.Sscanf(field, "network.publish[%d]", &i); n == 1 && i >= 0 && i < len(r.Network.Publish) {
		if p := r.Network.Publish[i]; p.Port != nil {
			return fmt.Sprint(*p.Port)
		}
	}
	return ""
}

// told is a finding about a field of a part, in the reviewer's words.
func told(p *plan.Plan, item plan.Item, part plan.Part, f sandbox.Finding, field string, o Options) Finding {
	out := Finding{Finding: f, Address: item.Address, Type: item.Type, Attribute: part.Attribute(field), Place: item.Place(part, field)}
	if item.Unchanged && (f.Effect == sandbox.Deny || f.Effect == sandbox.Failed) {
		out.Effect, out.Unchanged = sandbox.Warn, true
	}
	if f.Waiver != nil {
		w := *f.Waiver
		w.Reason = item.Redact(w.Reason)
		out.Waiver = &w
	}
	out.Message, out.Path, out.Attribute = item.Redact(f.Message), item.Redact(field), item.Redact(out.Attribute)
	out.Remediation = item.Redact(f.Remediation)
	out.Fingerprint = fingerprint(out, item.Redact(untold(part.Input.Resource, field)))
	if o.Excerpts {
		out.Excerpt = excerpt(p, item, out)
	}
	return out
}
