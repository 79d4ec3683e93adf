package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	jsonFix     = `write {"egress": [{"host": "example.com", "ports": [443]}]}`
	jsonRuleFix = `write {"host": "example.com", "ports": [443]} or {"cidr": "203.0.113.0/24", "ports": [443]}`
)

// jsonRule is a rule as sandboxio_network_policy has it.
type jsonRule struct {
	Host  string   `json:"host"`
	CIDR  string   `json:"cidr"`
	Ports *[]int64 `json:"ports"`
	Why   string   `json:"why"`
}

// jsonAllowlist reads a list of rules, or an object with one in "egress": none
// there, and null, are a list without rules.
func jsonAllowlist(from string, text []byte) (allowlist, error) {
	l := allowlist{from: from}
	var d struct { // what a network policy and its canonical form have
		Egress []json.RawMessage `json:"egress"`
		Name   string            `json:"name"`
		Expose []int64           `json:"expose"`
		Mode   string            `json:"mode"`
		Learn  bool              `json:"learn"`
	}
	var into any = &d
	if text[0] == '[' {
		into = &d.Egress
	}
	if err := strict(text, into); err != nil {
		return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: %v", from, err), jsonFix)
	}
	l.name = d.Name
	var err error
	if l.mode, err = driver.ParseMode(d.Mode); err != nil {
		return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: mode: %+q is no mode", from, d.Mode), `use "transparent" or "proxy"`)
	}
	for i, n := range d.Expose {
		port, err := wish.Port("expose", n)
		if err != nil {
			return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: expose[%d]: %d is not a port", from, i, n), "list ports between 1 and 65535")
		}
		l.expose = append(l.expose, port)
	}
	for i, raw := range d.Egress {
		var j jsonRule
		var r driver.Rule
		err := strict(raw, &j)
		if err != nil {
			err = driver.Invalid("rule", err.Error(), jsonRuleFix)
		} else {
			r, err = j.rule()
		}
		l.add(fmt.Sprintf("%s: egress[%d]", from, i), r, err)
	}
	return l, nil
}

// strict reads one JSON value without unknown fields, and nothing after it.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return inJSON(text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// inJSON puts an error of the decoder into words of JSON, without types of Go.
func inJSON(text []byte, err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := fmt.Sprintf("%s stands where %s belongs", valueInJSON(e.Value), kindInJSON(e.Type))
		if e.Field != "" {
			what = e.Field + ": " + what
		}
		return errors.New(what)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(text[:min(e.Offset, int64(len(text)))], []byte("\n"))
		return fmt.Errorf("line %d: it is no JSON: %w", line, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends within the JSON value")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: ")) // an unknown field
}

// valueInJSON is a value as the decoder names it, as "number 1.5".
func valueInJSON(v string) string {
	switch v {
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	}
	return "a " + v
}

func kindInJSON(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "an object"
	default:
		return "a whole number"
	}
}

func (j jsonRule) rule() (driver.Rule, error) {
	r := driver.Rule{Why: j.Why}
	var errs []error
	if j.Ports != nil && len(*j.Ports) == 0 {
		errs = append(errs, wish.NoPorts("rule.ports"))
	}
	if j.Ports != nil {
		for _, n := range *j.Ports {
			port, err := wish.Port("rule.ports", n)
			r.Ports = append(r.Ports, port)
			errs = append(errs, err)
		}
	}
	var err error
	if j.Host != "" {
		r.Host, err = wish.Host("rule.host", j.Host)
		errs = append(errs, err)
	}
	if j.CIDR != "" {
		r.Prefix, err = driver.ParseCIDR("rule.cidr", j.CIDR)
		errs = append(errs, err)
	}
	if err := driver.Join(errs...); err != nil {
		return r, err
	}
	return r, wish.Rule("rule", r)
}
