package network

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
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

// Malformed is what is wrong with what is known: of a network that is known in
// full, that its rules have no canonical form too.
func (e Expanded) Malformed() error {
	if !e.Known() {
		return e.Problems
	}
	_, err := Canonical(e.Network)
	return err
}

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
	all := v.Egress.Elements()
	if err := driver.CheckCount("network.egress", len(all)); err != nil {
		e.Problems = driver.Join(append(errs, err)...)
		return e, diags
	}
	for i, el := range all {
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
		r, err := ruleOf(o)
		if err != nil {
			diags.AddError("A rule cannot be read", fmt.Sprintf("%s: %v. This is a bug in the provider, please report it.", at, err))
		}
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
	if !r.Ports.IsNull() && !r.Ports.IsUnknown() && len(r.Ports.Elements()) == 0 {
		errs = append(errs, wish.NoPorts(at+".ports"))
	}
	out := driver.Rule{Why: r.Why.ValueString(), Ports: ports}
	if r.Why.IsUnknown() {
		e.unknown(at + ".why")
	}
	known := !r.Host.IsUnknown() && !r.CIDR.IsUnknown()
	switch {
	case r.Host.IsUnknown():
		e.unknown(at + ".host")
	case !r.Host.IsNull():
		host, err := wish.Host(at+".host", r.Host.ValueString())
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
	errs = append(errs, wish.Rule(at, out))
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
		port, err := wish.Port(at, n.ValueInt64()) // null is 0, which is none
		if err != nil {
			return nil, err
		}
		out = append(out, port)
	}
	slices.Sort(out)
	return out, nil
}

func (e *Expanded) unknown(at string) { e.Unknown = append(e.Unknown, at) }
