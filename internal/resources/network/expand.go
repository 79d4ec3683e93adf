package network

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"golang.org/x/net/idna"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Expanded is a Value in the words of package driver.
type Expanded struct {
	// Network has its rules in the order they were written. Of a rule that
	// is not wholly known it holds what is.
	Network driver.Network
	// Unknown are the paths, as "network.egress[0].cidr", of what is not
	// known yet.
	Unknown []string
	// Problems are what cannot be read, joined, each with its Field.
	Problems error
}

// Known reports whether nothing is missing and nothing is wrong.
func (e Expanded) Known() bool { return len(e.Unknown) == 0 && e.Problems == nil }

// ExpandObject reads the object a template has. Null means deny.
func ExpandObject(ctx context.Context, o types.Object) (Expanded, diag.Diagnostics) {
	switch {
	case o.IsUnknown():
		return Expanded{Unknown: []string{"network"}}, nil
	case o.IsNull():
		return Expanded{}, nil
	}
	var v Value
	if diags := o.As(ctx, &v, basetypes.ObjectAsOptions{}); diags.HasError() {
		return Expanded{}, diags
	}
	return v.Expand(ctx)
}

// Expand reads a Value.
func (v Value) Expand(ctx context.Context) (Expanded, diag.Diagnostics) {
	var (
		e     Expanded
		diags diag.Diagnostics
		errs  []error
	)
	if v.Mode.IsUnknown() {
		e.unknown("network.mode")
	} else {
		mode, err := driver.ParseMode(v.Mode.ValueString())
		e.Network.Mode = mode
		errs = append(errs, err)
	}
	if v.Learn.IsUnknown() {
		e.unknown("network.learn")
	}
	e.Network.Learn = v.Learn.ValueBool()
	expose, err := e.ports("network.expose", v.Expose)
	e.Network.Expose = expose
	errs = append(errs, err)

	if v.Egress.IsUnknown() {
		e.unknown("network.egress")
		e.Problems = driver.Join(errs...)
		return e, diags
	}
	for i, el := range v.Egress.Elements() {
		at := fmt.Sprintf("network.egress[%d]", i)
		o, ok := el.(types.Object)
		if !ok || o.IsUnknown() {
			e.unknown(at)
			e.Network.Egress = append(e.Network.Egress, driver.Rule{})
			continue
		}
		if o.IsNull() {
			errs = append(errs, driver.Invalid(at, "a rule is null", "remove it, or give it a host or a cidr"))
			e.Network.Egress = append(e.Network.Egress, driver.Rule{})
			continue
		}
		var r Rule
		diags.Append(o.As(ctx, &r, basetypes.ObjectAsOptions{})...)
		rule, err := e.rule(at, r)
		e.Network.Egress = append(e.Network.Egress, rule)
		errs = append(errs, err)
	}
	e.Problems = driver.Join(errs...)
	return e, diags
}

func (e *Expanded) rule(at string, r Rule) (driver.Rule, error) {
	ports, err := e.ports(at+".ports", r.Ports)
	errs := []error{err}
	out := driver.Rule{Why: r.Why.ValueString(), Ports: ports}
	if r.Why.IsUnknown() {
		e.unknown(at + ".why")
	}
	known := !r.Host.IsUnknown() && !r.CIDR.IsUnknown()
	switch {
	case r.Host.IsUnknown():
		e.unknown(at + ".host")
	case !r.Host.IsNull():
		host, err := ascii(at+".host", r.Host.ValueString())
		out.Host = host
		errs = append(errs, err)
	}
	switch {
	case r.CIDR.IsUnknown():
		e.unknown(at + ".cidr")
	case !r.CIDR.IsNull():
		p, err := driver.ParseCIDR(at+".cidr", r.CIDR.ValueString())
		out.Prefix = p
		errs = append(errs, err)
	}
	if err := driver.Join(errs...); err != nil || !known {
		return out, err
	}
	// The rest of the grammar is Canonical's, told here for the rule alone, so
	// that one bad rule does not hide what is wrong with another.
	if _, err := driver.Canonical([]driver.Rule{out}); err != nil {
		for _, p := range driver.Problems(err) {
			moved := *p
			moved.Field = at + p.Field[len("network.egress[0]"):]
			errs = append(errs, &moved)
		}
	}
	return out, driver.Join(errs...)
}

// ports never drops one: without ports, a rule would mean the default ones.
func (e *Expanded) ports(at string, set types.Set) ([]uint16, error) {
	if set.IsUnknown() {
		e.unknown(at)
		return nil, nil
	}
	var out []uint16
	for _, el := range set.Elements() {
		n, ok := el.(types.Int64)
		if !ok || n.IsUnknown() {
			e.unknown(at)
			return nil, nil
		}
		v := n.ValueInt64()
		if n.IsNull() || v < 1 || v > math.MaxUint16 {
			return nil, driver.Invalid(at, fmt.Sprintf("%d is not a port", v), "list ports between 1 and 65535, or leave ports out for 80 and 443")
		}
		out = append(out, uint16(v))
	}
	slices.Sort(out)
	return out, nil
}

func (e *Expanded) unknown(at string) { e.Unknown = append(e.Unknown, at) }

// labels maps names to A-labels as browsers look them up, and leaves every
// other judgement to driver.Canonical.
var labels = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.VerifyDNSLength(false))

func ascii(field, host string) (string, error) {
	if len(host) > 4*253 { // no name of 253 ASCII characters is longer in UTF-8
		return "", driver.Invalid(field, fmt.Sprintf("a name of %d bytes is too long", len(host)), "host names are at most 253 characters")
	}
	for i := range len(host) {
		if host[i] < 0x80 {
			continue
		}
		wild := ""
		name := host
		if rest, ok := cutWildcard(host); ok {
			wild, name = "*.", rest
		}
		a, err := labels.ToASCII(name)
		if err != nil {
			return "", driver.Invalid(field, fmt.Sprintf("%q is no domain name", host), `write it as an A-label, as "xn--bcher-kva.example"`)
		}
		return wild + a, nil
	}
	return host, nil
}

func cutWildcard(host string) (string, bool) {
	if len(host) > 2 && host[:2] == "*." {
		return host[2:], true
	}
	return host, false
}
