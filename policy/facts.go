package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Facts are computed from the resource, so that rules need neither address
// arithmetic nor lists of names, and see no secret.
type Facts struct {
	Egress      []EgressFacts    `json:"egress"` // one per rule of the allowlist, in order
	Share       Share            `json:"share"`
	Env         []EnvFacts       `json:"env"`         // one per variable, in order
	Credentials []CredentialFact `json:"credentials"` // texts that look like a credential
	Userinfo    []string         `json:"userinfo"`    // paths of texts that hold a URL with a user or password
	BuildArgs   []BuildArgFacts  `json:"build_args"`  // one per argument, in order
	Mounts      []MountFacts     `json:"mounts"`      // one per mount, in order
	Publish     []PublishFacts   `json:"publish"`     // one per published port, in order
	Endpoint    EndpointFacts    `json:"endpoint"`    // of the provider
}

// EgressFacts are what is known of one rule's target.
type EgressFacts struct {
	Field     string   `json:"field"`     // "host" or "cidr"
	Target    string   `json:"target"`    // the host or CIDR
	Classes   []string `json:"classes"`   // sorted; of addresses as driver.Class, of hosts "metadata", "host-gateway", "loopback"
	Family    *string  `json:"family"`    // "ipv4" or "ipv6" for a CIDR
	Bits      *int64   `json:"bits"`      // its prefix length
	Wildcard  *string  `json:"wildcard"`  // "tld", "public-suffix", "shared-suffix" or "domain" for a wildcard host
	Uploads   bool     `json:"uploads"`   // a host of the rule takes what anybody sends and shows it to others
	Explained bool     `json:"explained"` // the rule says why
}

// Share is how much of each address family the CIDRs reach together, in
// thousandths; of IPv6 only 2000::/3 counts, where all public addresses are.
type Share struct {
	IPv4 int64 `json:"ipv4"`
	IPv6 int64 `json:"ipv6"`
}

// EnvFacts are what is known of one variable.
type EnvFacts struct {
	CredentialName bool `json:"credential_name"` // it has a value, and is named like a credential
}

// CredentialFact says where a text looks like a credential, and like which.
type CredentialFact struct {
	Path     string `json:"path"`
	Detector string `json:"detector"`
}

// BuildArgFacts are what is known of one argument of a build.
type BuildArgFacts struct {
	CredentialName bool    `json:"credential_name"` // it has a value, and is named like a credential
	Detector       *string `json:"detector"`        // which credential its value looks like
}

func factsOf(r Resource, unknown []path) Facts {
	f := Facts{
		Egress: []EgressFacts{}, Env: []EnvFacts{}, Credentials: []CredentialFact{}, Userinfo: []string{},
		BuildArgs: []BuildArgFacts{}, Mounts: []MountFacts{}, Publish: []PublishFacts{}, Endpoint: endpointFacts(r.Provider.Endpoint),
	}
	for _, m := range r.Mounts {
		f.Mounts = append(f.Mounts, mountFacts(m))
	}
	for _, p := range r.Network.Publish {
		f.Publish = append(f.Publish, publishFacts(p))
	}
	var prefixes []netip.Prefix
	for _, e := range r.Network.Egress {
		facts := EgressFacts{Classes: []string{}}
		switch {
		case e.Host != nil:
			facts = hostFacts(*e.Host)
		case e.CIDR != nil:
			p := netip.MustParsePrefix(*e.CIDR)
			facts = prefixFacts(p)
			prefixes = append(prefixes, p)
		}
		facts.Explained = e.Why != nil && strings.TrimSpace(*e.Why) != ""
		f.Egress = append(f.Egress, facts)
	}
	f.Share = shareOf(prefixes)

	inspect := func(at path, value string) {
		if covered(at, unknown) {
			return
		}
		if d := detect(value); d != "" {
			f.Credentials = append(f.Credentials, CredentialFact{at.String(), d})
		}
		if hasUserinfo(value) {
			f.Userinfo = append(f.Userinfo, at.String())
		}
	}
	for _, e := range r.Env {
		at := path{"env", e.Name}
		f.Env = append(f.Env, EnvFacts{CredentialName: !covered(at, unknown) && e.Value != "" && credentialName(e.Name)})
		inspect(at, e.Value)
	}
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		inspect(path{"labels", k}, r.Labels[k])
	}
	for i, e := range r.Network.Egress {
		if e.Why != nil {
			inspect(path{"network", "egress", i, "why"}, *e.Why)
		}
	}
	if r.TrustReason != nil {
		inspect(path{"trust_reason"}, *r.TrustReason)
	}
	for i, word := range r.Command {
		inspect(path{"command", i}, word)
	}
	for _, file := range r.Files {
		inspect(path{"files", file.Name}, file.Value)
	}
	if r.Provider.Endpoint != nil {
		inspect(path{"provider", "endpoint"}, *r.Provider.Endpoint)
	}
	for _, arg := range r.BuildArgs {
		known := !covered(path{"build_args", arg.Name}, unknown) && arg.Value != ""
		facts := BuildArgFacts{CredentialName: known && credentialName(arg.Name)}
		if d := detect(arg.Value); known && d != "" {
			facts.Detector = &d
		}
		f.BuildArgs = append(f.BuildArgs, facts)
	}
	return f
}

// secrets are the places of texts with the shape of a credential. Those that
// only look random are not among them.
func (f Facts) secrets() []path {
	var out []path
	add := func(text string) {
		p, err := parsePath(text)
		if err != nil {
			panic(fmt.Sprintf("policy: %v", err)) // made by path.String
		}
		out = append(out, p)
	}
	for _, c := range f.Credentials {
		if c.Detector != highEntropy {
			add(c.Path)
		}
	}
	for _, at := range f.Userinfo {
		add(at)
	}
	return out
}

func prefixFacts(p netip.Prefix) EgressFacts {
	f := EgressFacts{Field: "cidr", Target: p.String(), Classes: []string{}, Family: new("ipv6"), Bits: new(int64(p.Bits()))}
	if p.Addr().Is4() {
		f.Family = new("ipv4")
	}
	for _, r := range driver.Touches(p) {
		f.Classes = append(f.Classes, string(r.Class))
	}
	slices.Sort(f.Classes)
	f.Classes = slices.Compact(f.Classes)
	return f
}

var (
	allIPv4    = netip.MustParsePrefix("0.0.0.0/0")
	publicIPv6 = netip.MustParsePrefix("2000::/3")
)

func shareOf(prefixes []netip.Prefix) Share {
	return Share{IPv4: share(prefixes, allIPv4), IPv6: share(prefixes, publicIPv6)}
}

// share is how much of whole the prefixes cover together, in thousandths. It
// halves whole until a part is inside one of them or outside all; ten halves
// are finer than a thousandth, and what is smaller is left out.
func share(prefixes []netip.Prefix, whole netip.Prefix) int64 {
	const depth = 20
	var parts func(part netip.Prefix, above []netip.Prefix, level int) int64
	parts = func(part netip.Prefix, above []netip.Prefix, level int) int64 {
		var inside []netip.Prefix
		for _, p := range above {
			if p.Addr().Is4() != part.Addr().Is4() || !p.Overlaps(part) {
				continue
			}
			if p.Bits() <= part.Bits() {
				return 1 << (depth - level)
			}
			inside = append(inside, p)
		}
		if len(inside) == 0 || level == depth {
			return 0
		}
		low, high := halves(part)
		return parts(low, inside, level+1) + parts(high, inside, level+1)
	}
	return parts(whole, prefixes, 0) * 1000 >> depth
}

func halves(p netip.Prefix) (low, high netip.Prefix) {
	bits := p.Bits() + 1
	b := p.Addr().AsSlice()
	b[(bits-1)/8] |= 0x80 >> ((bits - 1) % 8)
	upper, ok := netip.AddrFromSlice(b)
	if !ok {
		panic(fmt.Sprintf("policy: %s has no halves", p))
	}
	return netip.PrefixFrom(p.Addr(), bits), netip.PrefixFrom(upper, bits)
}
