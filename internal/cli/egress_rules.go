package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// maxAllowlist is how large a file of rules may be: driver.MaxRules, each of
// the longest host and a few words.
const maxAllowlist = 16 << 20

// allowlist is a file of rules: those that can be read, with where they stand,
// and what is said of the others.
type allowlist struct {
	from      string
	rules     []driver.Rule
	places    []string
	entries   []int // where each stands, counting the others from 0
	malformed []linted
	all       int

	// What only an object in JSON has.
	name   string
	mode   driver.Mode
	expose []uint16
}

func (a *app) readAllowlist(name string) (allowlist, error) {
	in, from := a.In, "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return allowlist{}, driver.Invalid("file", err.Error(), "name a file of rules, or - for standard input")
		}
		defer f.Close()
		in, from = f, name
	}
	l, err := parseAllowlist(in, from)
	if err == nil {
		err = driver.CheckCount("file", l.all)
	}
	return l, err
}

func parseAllowlist(in io.Reader, from string) (allowlist, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxAllowlist+1))
	if err != nil {
		return allowlist{}, err
	}
	if len(text) > maxAllowlist {
		return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s is larger than %d MiB", from, maxAllowlist>>20), "split it")
	}
	if t := bytes.TrimSpace(text); len(t) > 0 && (t[0] == '[' && !isLine(t) || t[0] == '{') {
		return jsonAllowlist(from, t)
	}
	l := allowlist{from: from}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		word, why, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "#")
		if word = strings.Trim(word, " \t"); word != "" {
			r, err := wish.ParseRule("rule", word)
			r.Why = strings.TrimSpace(why)
			l.add(fmt.Sprintf("%s:%d", from, n), r, err)
		}
	}
	return l, nil
}

// isLine tells a rule for an IPv6 range, "[2001:db8::/32]:443", from a list in
// JSON.
func isLine(text []byte) bool { return len(text) > 1 && (text[1] == ':' || isHex(text[1])) }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (l *allowlist) add(place string, r driver.Rule, err error) {
	if err == nil {
		l.rules, l.places, l.entries = append(l.rules, r), append(l.places, place), append(l.entries, l.all)
	}
	for _, p := range driver.Problems(err) {
		_, field, _ := strings.Cut(p.Field, ".")
		l.malformed = append(l.malformed, linted{
			Place: place, Index: l.all, Kind: egress.KindMalformed, Effect: sandbox.Deny, Field: field, Text: p.Err.Error(), Fix: p.Hint,
		})
	}
	l.all++
}

// jsonRule is a rule as sandboxio_network_policy has it.
type jsonRule struct {
	Host  string  `json:"host"`
	CIDR  string  `json:"cidr"`
	Ports []int64 `json:"ports"`
	Why   string  `json:"why"`
}

func jsonAllowlist(from string, text []byte) (allowlist, error) {
	l := allowlist{from: from}
	var rules []jsonRule
	var mode string
	var expose []int64
	var err error
	if text[0] == '[' {
		err = strict(text, &rules)
	} else {
		var d struct { // what a network policy and its canonical form have
			Egress []jsonRule      `json:"egress"` // null and absent are empty, as in a plan
			Name   string          `json:"name"`
			Expose []int64         `json:"expose"`
			Mode   string          `json:"mode"`
			Learn  json.RawMessage `json:"learn"`
		}
		err = strict(text, &d)
		rules, l.name, mode, expose = d.Egress, d.Name, d.Mode, d.Expose
	}
	if err != nil {
		return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: %v", from, err), `write {"egress":[{"host":"example.com","ports":[443]}]}`)
	}
	if l.mode, err = driver.ParseMode(mode); err != nil {
		return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: mode: %+q is no mode", from, mode), `use "transparent" or "proxy"`)
	}
	for i, n := range expose {
		port, err := wish.Port("expose", n)
		if err != nil {
			return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: expose[%d]: %d is not a port", from, i, n), "list ports between 1 and 65535")
		}
		l.expose = append(l.expose, port)
	}
	for i, j := range rules {
		r, err := j.rule()
		l.add(fmt.Sprintf("%s: egress[%d]", from, i), r, err)
	}
	return l, nil
}

// strict reads one JSON value without unknown fields, and nothing after it.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

func (j jsonRule) rule() (driver.Rule, error) {
	r := driver.Rule{Why: j.Why}
	var errs []error
	for _, n := range j.Ports {
		port, err := wish.Port("rule.ports", n)
		r.Ports = append(r.Ports, port)
		errs = append(errs, err)
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
