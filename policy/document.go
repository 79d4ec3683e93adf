package policy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// subject is a document ready for evaluation.
type subject struct {
	kind   Kind
	stage  Stage
	input  map[string]any
	hidden []hidden
	root   string              // what paths in findings are relative to
	looked map[string]*lookups // by rule, where somebody asked
	firm   []string            // findings that nobody may excuse, as rule and path

	resource Resource // as it is, for waivers
	unknown  []path
}

// newSubject completes the input: canonical rules, facts, and nothing where a
// value is unknown or sensitive. Neither a default nor a null may stand in for
// an unknown value, since a rule could not tell it from a real one.
func newSubject(in Input) (*subject, error) {
	if !slices.Contains(kinds, in.Kind) || in.Kind == KindGraph {
		return nil, driver.Invalid("kind", fmt.Sprintf("%q is no kind of input", in.Kind), fmt.Sprintf("use one of %q, and JudgeGraph for a graph", kinds[:len(kinds)-1]))
	}
	if !slices.Contains(stages, in.Stage) {
		return nil, driver.Invalid("stage", fmt.Sprintf("%q is no stage", in.Stage), fmt.Sprintf("use one of %q", stages))
	}
	unknown, err := parsePaths(in.Unknown)
	if err != nil {
		return nil, err
	}
	sensitive, err := parsePaths(in.Sensitive)
	if err != nil {
		return nil, err
	}
	r, err := complete(in.Resource, unknown)
	if err != nil {
		return nil, err
	}
	if in.Kind == KindContainer && r.Isolation == nil {
		name := ""
		if r.Process.Runtime != nil {
			name = *r.Process.Runtime
		}
		r.Isolation = new(RuntimeIsolation(name).String())
	}
	s := &subject{kind: in.Kind, stage: in.Stage, root: "resource", resource: r, unknown: unknown}
	facts := factsOf(r, unknown)
	s.input = document{
		Schema: SchemaID, Kind: in.Kind, Stage: in.Stage, Address: in.Address,
		Resource: r, Facts: facts,
		Unknown: list(slices.Clone(in.Unknown)), Sensitive: list(slices.Clone(in.Sensitive)),
	}.plain()
	for _, p := range unknown {
		for _, at := range unknownPlaces(p, r) {
			if err := s.hide(hidden{at: at, origin: p.String()}); err != nil {
				return nil, err
			}
		}
	}
	for _, p := range sensitive {
		if err := s.conceal(p, r, marked); err != nil {
			return nil, err
		}
	}
	for _, p := range facts.secrets() {
		if err := s.conceal(p, r, shaped); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func parsePaths(texts []string) ([]path, error) {
	var out []path
	for _, t := range texts {
		p, err := parsePath(t)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// complete copies r, with lists that are never nil and rules in canonical
// form. Names of variables whose value is unknown are added.
func complete(r Resource, unknown []path) (Resource, error) {
	r.Secrets, r.Network.Expose = list(slices.Clone(r.Secrets)), list(slices.Clone(r.Network.Expose))
	r.Labels = maps.Clone(r.Labels)
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	r.Network.Publish, r.Network.DNS, r.Network.Joined = list(slices.Clone(r.Network.Publish)), list(slices.Clone(r.Network.DNS)), list(slices.Clone(r.Network.Joined))
	r.Mounts, r.Command = list(slices.Clone(r.Mounts)), list(slices.Clone(r.Command))
	r.Process = r.Process.canonical()
	r.Env = named(r.Env, "env", unknown)
	r.BuildArgs = named(r.BuildArgs, "build_args", unknown)
	r.Files = named(r.Files, "files", unknown)
	if err := driver.CheckCount(path{"network", "egress"}.String(), len(r.Network.Egress)); err != nil {
		return r, err
	}
	var errs []error
	egress := make([]Egress, len(r.Network.Egress))
	for i, e := range r.Network.Egress {
		var err error
		if egress[i], err = e.canonical(path{"network", "egress", i}, unknown); err != nil {
			errs = append(errs, err)
		}
	}
	r.Network.Egress = egress
	return r, driver.Join(errs...)
}

// named copies texts, sorts them, and adds those whose value is unknown.
func named(texts []Env, field string, unknown []path) []Env {
	texts = list(slices.Clone(texts))
	for _, p := range unknown {
		if name, ok := nameIn(field, p); ok && !slices.ContainsFunc(texts, func(e Env) bool { return e.Name == name }) {
			texts = append(texts, Env{Name: name})
		}
	}
	slices.SortFunc(texts, func(a, b Env) int { return cmp.Compare(a.Name, b.Name) })
	return texts
}

// canonical copies p, with capabilities named as the kernel names them, less
// the prefix.
func (p Process) canonical() Process {
	capabilities := func(in []string) []string {
		out := make([]string, len(in))
		for i, c := range in {
			out[i] = strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(c)), "CAP_")
		}
		return out
	}
	p.CapAdd, p.CapDrop = capabilities(p.CapAdd), capabilities(p.CapDrop)
	p.JoinedNamespaces = list(slices.Clone(p.JoinedNamespaces))
	p.HostNamespaces, p.Devices, p.Sysctls = list(slices.Clone(p.HostNamespaces)), list(slices.Clone(p.Devices)), list(slices.Clone(p.Sysctls))
	return p
}

// canonical is e as the network's own normaliser sees it.
func (e Egress) canonical(at path, unknown []path) (Egress, error) {
	missing := func(field string) bool { return covered(append(slices.Clone(at), field), unknown) }
	var rule driver.Rule
	if e.Host != nil && !missing("host") {
		rule.Host = *e.Host
	}
	if e.CIDR != nil && !missing("cidr") {
		p, err := driver.ParseCIDR(append(slices.Clone(at), "cidr").String(), *e.CIDR)
		if err != nil {
			return e, err
		}
		rule.Prefix = p
	}
	for i, n := range e.Ports {
		if n < 1 || n > 65535 {
			return e, driver.Invalid(append(slices.Clone(at), "ports", i).String(), fmt.Sprintf("%d is not a port", n), "ports are between 1 and 65535")
		}
		rule.Ports = append(rule.Ports, uint16(n))
	}
	target := rule.Host != "" || rule.Prefix.IsValid()
	if !target {
		if !missing("host") && !missing("cidr") {
			return e, driver.Invalid(at.String(), "a rule has exactly one of host and CIDR", `give either a host such as "api.example.com" or a CIDR such as "203.0.113.0/24"`)
		}
		rule.Prefix = netip.MustParsePrefix("0.0.0.0/32") // stands in while ports are sorted
	}
	c, err := driver.Canonical([]driver.Rule{rule})
	if err != nil {
		for _, p := range driver.Problems(err) {
			p.Field = at.String() + p.Field[min(len("network.egress[0]"), len(p.Field)):]
		}
		return e, err
	}
	e.Ports, e.Host, e.CIDR = ports(c[0].Ports), text(c[0].Host), nil
	if target && c[0].Prefix.IsValid() {
		e.CIDR = new(c[0].Prefix.String())
	}
	if missing("ports") {
		e.Ports = []int64{}
	}
	return e, nil
}

// covered reports whether p is at or below one of tops.
func covered(p path, tops []path) bool {
	return slices.ContainsFunc(tops, p.under)
}

// nameIn is the name that p leads to in a field of named texts.
func nameIn(field string, p path) (string, bool) {
	if len(p) < 2 || p[0] != field {
		return "", false
	}
	name, ok := p[1].(string)
	return name, ok
}

func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}
