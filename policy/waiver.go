package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Waiver excuses one known weakness for a time: the findings of one rule, about
// one target, at one path, as long as the value there is the one that was
// looked at. What it excuses stays in every verdict, with effect "waived".
//
// A waiver with a fault has no effect, and every verdict it would have touched
// says so (SBX-WVR-001), as it says when a waiver excuses nothing (SBX-WVR-002).
type Waiver struct {
	ID     string `json:"id"`   // unique in an engine
	Rule   string `json:"rule"` // one that says waivable: true
	Target Target `json:"target"`
	Path   string `json:"path"` // as the finding has it; [*] stands for any index
	Reason string `json:"reason"`
	Owner  string `json:"owner"`

	// Expires is a time of RFC 3339 or a date, which ends with its day in UTC:
	// at most 90 days from now, 30 for a rule of severity critical.
	Expires string `json:"expires"`

	// Value is the excused value: a text as it is, anything else as compact JSON
	// with sorted keys; an image is its reference. Addresses and hosts are in
	// the canonical form that findings show. ValueSHA256 is the digest of the
	// same in hex, for values that nobody should read here; below env, build_args,
	// files and command only that. Exactly one is set.
	Value       *string `json:"value,omitempty"`
	ValueSHA256 string  `json:"value_sha256,omitempty"`
}

// Target is what a waiver is about. Exactly one of Name and Address is set.
type Target struct {
	// Name is the name of a template, which means the sandboxes made from it
	// too, of a network policy or of a reaper schedule. All doors know it.
	Name string `json:"name,omitempty"`
	Kind Kind   `json:"kind,omitempty"` // "" = any; a template's means its sandboxes too

	// Address is that of a Terraform resource of another provider, which only
	// reviews of plans see. [*] stands for any instance key.
	Address string `json:"address,omitempty"`
}

// Limits of waivers.
const (
	maxWaivers    = 1000
	maxWaiverFile = 1 << 20
	minReason     = 20
	day           = 24 * time.Hour
	longest       = 90 * day
	longestIfDire = 30 * day // of a rule of severity critical
)

// UnmarshalJSON refuses fields that are not known. A value may be of any type.
func (w *Waiver) UnmarshalJSON(raw []byte) error {
	type plain Waiver // without this method
	var wire struct {
		plain
		Value json.RawMessage `json:"value"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&wire); err != nil {
		return err
	}
	*w = Waiver(wire.plain)
	if len(wire.Value) > 0 {
		v, err := decode(wire.Value)
		if err != nil {
			return err
		}
		w.Value = new(textOf(v))
	}
	return nil
}

// readWaivers reads a file of waivers, in YAML or JSON, and gives the line of
// each.
func readWaivers(raw []byte) (out []Waiver, lines []int, err error) {
	if len(raw) > maxWaiverFile {
		return nil, nil, fmt.Errorf("it is larger than %d MiB", maxWaiverFile>>20)
	}
	doc, err := readYAML(raw)
	if err != nil {
		return nil, nil, err
	}
	var file struct {
		Waivers []json.RawMessage `json:"waivers"`
	}
	if err := into(doc, &file); err != nil {
		return nil, nil, err
	}
	all, _ := member(doc, "waivers")
	for all != nil && all.Kind == yaml.AliasNode {
		all = all.Alias
	}
	if len(file.Waivers) == 0 || all == nil {
		return nil, nil, errors.New(`there is no list "waivers" with an element in it`)
	}
	for _, n := range all.Content {
		var w Waiver
		if err := into(n, &w); err != nil {
			return nil, nil, err
		}
		out, lines = append(out, w), append(lines, n.Line)
	}
	return out, lines, nil
}

// waiver is a Waiver as the engine holds it.
type waiver struct {
	Waiver
	origin  string // "floor", a set's name, or "configuration"
	field   string // where it stands, for findings about it
	file    string // and its file, "" where it is none's
	line    int
	path    path
	expires time.Time
	limit   time.Duration
	fault   string // why it never has effect
	forbid  bool   // the floor does not let it have any
	graph   bool   // its rule judges graphs
}

var (
	waiverID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	hexSHA   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	letters  = regexp.MustCompile(`\pL`)
)

// hasSecrets are the fields whose values are shown to nobody.
var hasSecrets = map[any]bool{"env": true, "build_args": true, "files": true, "command": true}

// newWaiver examines w. Its faults are kept, not returned: a waiver that has
// become wrong must not take the whole policy with it.
func newWaiver(w Waiver, origin string, rules map[string]*RuleInfo) *waiver {
	out := &waiver{Waiver: w, origin: origin, field: fmt.Sprintf("policy.waivers[%q]", w.ID)}
	var faults []string
	need := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	r, known := rules[w.Rule]
	need(known, "there is no rule %q", w.Rule)
	out.limit = longest
	if known {
		out.graph = slices.Contains(r.Kinds, KindGraph)
		need(r.Waivable, "the rule %s cannot be waived", w.Rule)
		if r.Severity == "critical" {
			out.limit = longestIfDire
		}
	}
	if fault := w.Target.fault(); fault != "" {
		faults = append(faults, fault)
	}
	p, err := parseOpen(w.Path, anyIndex{})
	need(err == nil, "the path %q cannot be read; write it as the finding has it, with [*] for any index at most", w.Path)
	out.path = p
	switch {
	case w.Value == nil && w.ValueSHA256 == "":
		need(false, "it names no value, and would excuse every later one; set value or value_sha256")
	case w.Value != nil && w.ValueSHA256 != "":
		need(false, "it has both value and value_sha256")
	case w.Value == nil:
		need(hexSHA.MatchString(w.ValueSHA256), "value_sha256 is not a SHA-256 in 64 small hex digits")
	case len(p) > 0 && hasSecrets[p[0]]:
		need(false, "a value below %s does not belong in a waiver; use value_sha256", p[0])
	}
	need(utf8.RuneCountInString(strings.TrimSpace(w.Reason)) >= minReason && letters.MatchString(w.Reason), "the reason has less than %d characters", minReason)
	need(strings.TrimSpace(w.Owner) != "", "it has no owner")
	out.expires, err = parseExpiry(w.Expires)
	need(err == nil, "expires is %q, not a time of RFC 3339 or a date as 2006-01-02", w.Expires)
	out.fault = strings.Join(faults, "; ")
	return out
}

// parseExpiry reads a time, or a date, whose whole day still counts.
func parseExpiry(s string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t.Add(day), nil
	}
	return time.Parse(time.RFC3339, s)
}

// problem says why the waiver has no effect now, or nothing.
func (w *waiver) problem(now time.Time) string {
	switch {
	case w.fault != "":
		return w.fault
	case !now.Before(w.expires):
		return "it expired at " + w.expires.UTC().Format(time.RFC3339)
	case w.expires.Sub(now) > w.limit:
		return fmt.Sprintf("it expires in more than %d days, which is the most for a finding of %s", w.limit/day, w.Rule)
	}
	return ""
}

// fault says what is wrong with a target, or nothing.
func (t Target) fault() string {
	switch {
	case (t.Name == "") == (t.Address == ""):
		return "its target needs exactly one of name and address"
	case t.Kind != "" && !subset([]Kind{t.Kind}, kinds):
		return fmt.Sprintf("its target's kind %q is none of %q", t.Kind, kinds)
	case strings.Contains(t.Name, "*"):
		return "its target is too broad: a name stands for itself, without *"
	case strings.Contains(strings.ReplaceAll(t.Address, "[*]", ""), "*"):
		return "its target is too broad: [*] stands for an instance key, and nothing else can be left open"
	case t.Address != "" && !strings.Contains(t.Address, "."):
		return "its target's address is none; write type.name, with the modules before it"
	case strings.HasPrefix(lastResource(t.Address), "sandboxio_"):
		return "its target's address is known only to reviews of plans, and the provider would deny all the same; use target.name"
	}
	return ""
}

// lastResource is the address without its modules.
func lastResource(address string) string {
	for strings.HasPrefix(address, "module.") {
		rest := address[len("module."):]
		i := strings.IndexAny(rest, ".[")
		if i < 0 {
			return ""
		}
		if rest[i] == '[' {
			end := strings.Index(rest, "].")
			if end < 0 {
				return ""
			}
			i = end + 1
		}
		address = rest[i+1:]
	}
	return address
}

// covers reports whether in is what the target is about.
func (t Target) covers(in Input) bool {
	if t.Kind != "" && t.Kind != in.Kind && !(t.Kind == KindTemplate && in.Kind == KindSandbox) {
		return false
	}
	if t.Name != "" {
		return t.Name == in.Name
	}
	return t.Address != "" && matchKeys(t.Address, in.Address)
}

// matchKeys compares addresses, where "[*]" in the pattern is any key.
func matchKeys(pattern, address string) bool {
	for {
		before, after, more := strings.Cut(pattern, "[*]")
		rest, ok := strings.CutPrefix(address, before)
		if !ok || !more {
			return ok && rest == ""
		}
		key, ok := strings.CutPrefix(rest, "[")
		if !ok {
			return false
		}
		if quoted, err := strconv.QuotedPrefix(key); err == nil {
			key = key[len(quoted):]
		} else {
			key = strings.TrimLeft(key, "0123456789")
		}
		if address, ok = strings.CutPrefix(key, "]"); !ok {
			return false
		}
		pattern = after
	}
}

func digestText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
