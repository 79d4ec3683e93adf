package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// problem is one thing that was wrong.
type problem struct {
	Code    driver.Code `json:"code,omitempty"` // as sandboxio explain has them
	Op      string      `json:"op,omitempty"`
	Backend string      `json:"backend,omitempty"`
	Sandbox string      `json:"sandbox,omitempty"`
	Field   string      `json:"field,omitempty"`
	Message string      `json:"message"`
	Fix     string      `json:"fix,omitempty"`

	text  string // for people
	apart bool   // the fix is not in the text
}

// problems takes an error apart: each of several that were joined.
func problems(err error) []problem {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var out []problem
		for _, e := range j.Unwrap() {
			out = append(out, problems(e)...)
		}
		return out
	}
	p := problem{Message: err.Error(), text: err.Error()}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		p.Code, p.Op, p.Backend, p.Sandbox, p.Field, p.Fix = e.Code, e.Op, e.Backend, e.Sandbox, e.Field, e.Hint
	} else if code, ok := errors.AsType[driver.Code](err); ok {
		p.Code = code
	}
	if e, ok := err.(*driver.Error); ok { //nolint:errorlint // only the outermost: what wraps it says more
		c := *e
		c.Hint = ""
		p.text, p.Message, p.apart = c.Error(), string(e.Code), e.Hint != ""
		if e.Err != nil {
			p.Message = e.Err.Error()
		}
	}
	return []problem{p}
}

// fail prints an error with its fix on a line of its own, each of several. With
// --json the same is on standard output, unless a result is there already: who
// reads it gets one document in any case.
func (a *app) fail(err error) {
	all := problems(err)
	bold, plain := a.style(a.Err)
	for _, p := range all {
		fmt.Fprintf(a.Err, "%serror:%s %s\n", bold, plain, p.text)
		if p.apart {
			fmt.Fprintf(a.Err, "  fix: %s\n", p.Fix)
		}
	}
	if !a.json || a.printed {
		return
	}
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	_ = e.Encode(struct {
		Schema string    `json:"schema"`
		Errors []problem `json:"errors"`
	}{"sandboxio.error/v1", all})
}
