package plan

import (
	"fmt"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/redact"
)

// engine is how a provider is configured to reach what it works on.
type engine struct {
	modules []string
	kind    string // "docker"
	alias   string
	value   node
}

// address is what Terraform calls the provider's configuration.
func (e engine) address() string {
	var out strings.Builder
	for _, m := range e.modules {
		out.WriteString("module." + m + ".")
	}
	return out.String() + "provider." + e.name()
}

func (e engine) name() string { return strings.TrimSuffix(e.kind+"."+e.alias, ".") }

// item asks the policy about the way to the engine; ok is false for a provider
// of which that is not known how to read.
func (e engine) item(s *Source) (i Item, ok bool) {
	r := newReader()
	var p policy.Provider
	switch e.kind {
	case "docker":
		p = r.dockerEngine(e.value.get("host"), e.value, "cert_path", "ca_material", "cert_material")
	case "kubernetes":
		p = r.kubernetesEngine(e.value)
	case "sandboxio":
		rules := first(e.value.get("policy"))
		r.tell(append(strays("policy", rules), strays("policy", e.text(s))...))
		i.Weakens, i.Sets = r.weakenings(rules), r.sets(rules, e.text(s))
		block := first(e.value.get("docker"))
		if block.isNull() {
			if len(i.Weakens)+len(i.Sets) == 0 && r.err() == nil {
				return i, false
			}
			break
		}
		p = r.dockerEngine(block.get("host"), block)
		if p.Endpoint != nil && !block.get("plain").bool() {
			p.TLS = new(true) // our own refuses tcp without it
		}
		if plain := block.get("plain"); plain.isUnknown() {
			r.note("provider.tls", plain)
		}
	default:
		return i, false
	}
	i = Item{Address: e.address(), Type: "provider", module: e.modules, name: e.name(), source: s, Problem: r.err(), Weakens: i.Weakens, Sets: i.Sets}
	var hidden []string
	secrets(e.value.value, e.value.secret, &hidden)
	i.secrets = redact.New(hidden...)
	i.Parts = []Part{r.part(policy.KindProvider, policy.Resource{Provider: p})}
	return i, true
}

// weakenings are what a policy block says that makes the judge milder.
func (r *reader) weakenings(block node) []Weakening {
	var out []Weakening
	add := func(name string, n node, message string) {
		r.places["policy."+name] = n.path
		out = append(out, Weakening{"policy." + name, message})
	}
	if mode := block.get("mode"); mode.isUnknown() || mode.str() != "" && mode.str() != "enforce" {
		add("mode", mode, "the configuration has the provider warn where rules deny, or may")
	}
	if waivers := block.get("waivers"); waivers.isUnknown() || waivers.len()+len(waivers.keys()) > 0 {
		add("waivers", waivers, "the configuration grants itself waivers, which do not count in a review")
	}
	if params := block.get("params"); params.isUnknown() || !params.isNull() {
		add("params", params, "the configuration sets parameters of rules, which do not count in a review")
	}
	return out
}

// text is the policy block as it was written, which tells more than a plan's
// JSON, where the text is known.
func (e engine) text(s *Source) node {
	return first(s.written(e.modules, "provider."+e.name()).get("policy"))
}

// sets are the sets of rules that a policy block names.
func (r *reader) sets(block, text node) []Set {
	var out []Set
	add := func(n node, field, name, message string) {
		r.places[field] = n.path
		out = append(out, Set{Name: name, Field: field, Message: message})
	}
	for _, of := range []struct{ field, flags string }{{"sources", "%s=DIR"}, {"bundles", "%s=FILE.tar.gz with --policy-key"}} {
		n, field := block.get(of.field), "policy."+of.field
		if n.isUnknown() {
			n.value, n.unknown = text.get(of.field).value, text.get(of.field).unknown
			if n.value == nil {
				n.unknown = true
			}
		}
		if n.isUnknown() {
			add(n, field, "", "the provider names sets of rules, and which is not known here: add --policy "+fmt.Sprintf(of.flags, "NAME")+" for each, and check a plan file, or a plan as JSON with --source DIR")
			continue
		}
		for _, name := range n.keys() {
			add(n.get(name), fmt.Sprintf("%s[%q]", field, name), name,
				fmt.Sprintf("the provider names the set %s, which was not asked here: add --policy ", name)+fmt.Sprintf(of.flags, name))
		}
	}
	return out
}

// dockerEngine reads an endpoint, and whether one of the attributes that TLS
// needs is there. Without an endpoint the environment says it, or it is local.
func (r *reader) dockerEngine(host, block node, tls ...string) policy.Provider {
	p := policy.Provider{Endpoint: r.words("provider.endpoint", host)}
	r.places["provider"] = host.path
	for _, name := range tls {
		n := block.get(name)
		if n.isUnknown() {
			r.note("provider.tls", n)
		}
		if n.str() != "" {
			p.TLS = new(true)
		}
	}
	return p
}

func (r *reader) kubernetesEngine(n node) policy.Provider {
	p := policy.Provider{Endpoint: r.words("provider.endpoint", n.get("host"))}
	insecure := n.get("insecure")
	if r.note("provider.tls", insecure) && p.Endpoint != nil {
		p.TLS = new(!insecure.bool() && !strings.HasPrefix(*p.Endpoint, "http://"))
	}
	r.places["provider"] = n.get("host").path
	return p
}

// engines are the providers in a plan's configuration.
func (c configuration) engines() []engine {
	var out []engine
	for _, key := range sortedKeys(c.Providers) {
		p := c.Providers[key]
		value, unknown := map[string]any{}, map[string]any{}
		for name, e := range p.Expressions {
			value[name], unknown[name] = expression(e)
		}
		e := engine{kind: p.Name, alias: p.Alias, value: node{value: value, unknown: unknown}}
		if p.Module != "" {
			e.modules = module(p.Module)
		}
		out = append(out, e)
	}
	return out
}

// engines are the providers in a configuration's text.
func (s *Source) engines() []engine {
	var out []engine
	for _, key := range sortedKeys(s.modules) {
		m := s.modules[key]
		m.parse()
		for _, b := range m.providers {
			value, unknown := bodyValue(b.Body)
			n := node{value: value, unknown: unknown}
			e := engine{kind: b.Labels[0], alias: n.get("alias").str(), value: n}
			if key != "" {
				e.modules = strings.Split(key, ".")
			}
			out = append(out, e)
		}
	}
	return out
}
