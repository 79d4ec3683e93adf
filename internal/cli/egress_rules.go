package cli

import (
	"bytes"
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

const fileFix = "name a file of rules, or - for standard input"

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
			return allowlist{}, driver.Invalid("file", err.Error(), fileFix)
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
	if err != nil { // a directory, say, which can be opened
		return allowlist{}, driver.Invalid("file", err.Error(), fileFix)
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

// refusal is what is malformed, all of it, each with its place; nil if nothing
// is.
func (l allowlist) refusal() error {
	var errs []error
	for _, f := range l.malformed {
		errs = append(errs, driver.Invalid(f.Place, f.Text, f.Fix))
	}
	return driver.Join(errs...)
}

// placed tells what was said of the list's rules in canonical form where they
// stand in the list, and every finding of a denial on its own.
func (l allowlist) placed(err error) error {
	places := l.canonicalPlaces()
	at := func(field string) string {
		if n, _ := placeOf(field); n >= 0 && n < len(places) {
			return places[n]
		}
		return field
	}
	var errs []error
	for _, p := range driver.Problems(err) {
		denied, ok := errors.AsType[*sandbox.DeniedError](p)
		if !ok {
			one := *p
			one.Field = at(p.Field)
			errs = append(errs, &one)
			continue
		}
		for _, f := range denied.Verdict.Findings {
			if effectOf(f) == sandbox.Deny {
				errs = append(errs, &driver.Error{Code: p.Code, Field: at(f.Path), Hint: f.Remediation, Err: fmt.Errorf("%s: %s", f.Rule, f.Message)})
			}
		}
	}
	return driver.Join(errs...)
}

// canonicalPlaces are the places of the entries that became each canonical
// rule.
func (l allowlist) canonicalPlaces() []string {
	by := map[string][]string{} // by target
	for i, r := range l.rules {
		if one, err := driver.Canonical([]driver.Rule{r}); err == nil {
			by[one[0].Target()] = append(by[one[0].Target()], l.places[i])
		}
	}
	canonical, _ := driver.Canonical(l.rules) // all of them can be read
	places := make([]string, len(canonical))
	for i, r := range canonical {
		places[i] = strings.Join(by[r.Target()], ", ")
	}
	return places
}
