package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Engine is the policy, as package policy makes it.
type Engine interface {
	Judge(ctx context.Context, in policy.Input) (sandbox.Verdict, error)
}

// Report collects what is said about one resource.
type Report struct {
	Diags     *diag.Diagnostics
	Places    Places
	Exists    bool // the object is in the state
	Unchanged bool // and its configuration is what it was: refusals only warn
}

// Judge asks the policy and reports whether it refuses.
func (r Report) Judge(ctx context.Context, e Engine, in policy.Input) (denied bool) {
	v, err := e.Judge(ctx, in)
	if err != nil {
		r.refuse(r.Places.Else, "The policy could not judge", err.Error()+"\n\nWhat cannot be judged does not pass.")
		return true
	}
	return r.Verdict(v)
}

// Verdict reports v and whether it refuses.
func (r Report) Verdict(v sandbox.Verdict) (denied bool) {
	var open []sandbox.Finding
	for _, f := range v.Findings {
		switch f.Effect {
		case sandbox.Allow:
		case sandbox.Warn:
			r.warn(r.Places.Of(f.Path), f.Rule+": "+f.Title, r.text(f))
		case sandbox.Waived:
			r.warn(r.Places.Of(f.Path), f.Rule+" is waived: "+f.Title, r.text(f))
		case sandbox.Unknown:
			open = append(open, f)
		case sandbox.Deny, sandbox.Failed:
			r.refuse(r.Places.Of(f.Path), f.Rule+": "+f.Title, r.text(f))
			denied = true
		}
	}
	if len(open) > 0 {
		r.later(open)
	}
	switch v.Decision {
	case sandbox.Allow, sandbox.Warn, sandbox.Unknown:
		return denied
	case sandbox.Deny, sandbox.Failed, sandbox.Waived: // the last is for findings, and no decision
	}
	if !denied {
		r.refuse(r.Places.Else, "The policy refuses", fmt.Sprintf("The decision is %q, and no rule says why.\n\nFix: run sandboxio doctor", v.Decision))
	}
	return true
}

func (r Report) text(f sandbox.Finding) string {
	var b strings.Builder
	b.WriteString(f.Message)
	if f.Severity != "" {
		fmt.Fprintf(&b, " (%s)", f.Severity)
	}
	b.WriteString("\n")
	if at := r.Places.Of(f.Path); len(at.Steps()) > 0 {
		b.WriteString("\nAttribute: " + at.String())
	}
	if f.Effect == sandbox.Waived {
		b.WriteString("\nIt is " + f.Waiver.String())
	}
	if f.Remediation != "" {
		b.WriteString("\nFix: " + f.Remediation)
	}
	if f.Page != "" {
		b.WriteString("\nSee: " + f.Page)
	}
	return b.String()
}

func (r Report) later(open []sandbox.Finding) {
	var lines []string
	for _, f := range open {
		line := "  " + f.Rule
		if f.Path != "" {
			line += " reads " + f.Path
		}
		lines = append(lines, line)
	}
	r.warn(r.Places.Of(open[0].Path), "The policy is not decided yet",
		"Rules read values that are known only after apply. They are checked again before creation, and may refuse then:\n"+strings.Join(lines, "\n"))
}

// Error reports a backend's or the runtime's error, each problem on its
// attribute, a denial by its findings.
func (r Report) Error(summary string, err error) {
	if denied, ok := errors.AsType[*sandbox.DeniedError](err); ok {
		r.Verdict(denied.Verdict)
		return
	}
	for _, p := range driver.Problems(err) {
		detail := string(p.Code)
		if p.Err != nil {
			detail = p.Err.Error()
		}
		if p.Backend != "" {
			detail = p.Backend + ": " + detail
		}
		detail += "\n"
		if at := r.Places.Of(p.Field); len(at.Steps()) > 0 {
			detail += "\nAttribute: " + at.String()
		}
		if p.Hint != "" {
			detail += "\nFix: " + p.Hint
		}
		if p.Code != "" {
			detail += "\nCode: " + string(p.Code)
		}
		r.refuse(r.Places.Of(p.Field), summary, detail)
	}
}

func (r Report) refuse(at path.Path, summary, detail string) {
	switch {
	case r.Unchanged:
		r.warn(at, summary, detail+"\n\nThe object exists and its configuration did not change, so this stops neither this plan nor destroy. "+
			"Nothing new is made from it: the runtime refuses too.")
		return
	case r.Exists:
		detail += "\n\nTo destroy the object as it is: terraform destroy -refresh=false"
	}
	if at = line(at); len(at.Steps()) == 0 {
		r.Diags.AddError(summary, detail)
		return
	}
	r.Diags.AddAttributeError(at, summary, detail)
}

// line is the part of a path whose line Terraform can show: an attribute, or
// one element of it. For anything deeper it would show the resource's first
// line, so the text names the rest.
func line(at path.Path) path.Path {
	steps := at.Steps()
	if len(steps) > 1 {
		if _, nested := steps[1].(path.PathStepAttributeName); nested {
			steps = steps[:1]
		} else {
			steps = steps[:2]
		}
	}
	out := path.Empty()
	for _, s := range steps {
		switch s := s.(type) {
		case path.PathStepAttributeName:
			out = out.AtName(string(s))
		case path.PathStepElementKeyInt:
			out = out.AtListIndex(int(s))
		case path.PathStepElementKeyString:
			out = out.AtMapKey(string(s))
		}
	}
	return out
}

func (r Report) warn(at path.Path, summary, detail string) {
	if at = line(at); len(at.Steps()) == 0 {
		r.Diags.AddWarning(summary, detail)
		return
	}
	r.Diags.AddAttributeWarning(at, summary, detail)
}

// Later warns that nothing could be judged yet.
func (r Report) Later() {
	r.warn(r.Places.Else, "The policy cannot judge yet",
		"This depends on values that are known only after apply. It is judged then, before anything is created, and may be refused.")
}

// Warn reports something that stops nothing.
func (r Report) Warn(summary, detail string) { r.warn(r.Places.Else, summary, detail) }
