package network

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Value is a network policy.
type Value struct {
	Egress types.List   `tfsdk:"egress"`
	Expose types.Set    `tfsdk:"expose"`
	Mode   types.String `tfsdk:"mode"`
	Learn  types.Bool   `tfsdk:"learn"`
}

// Rule is one entry of Value.Egress.
type Rule struct {
	Host, CIDR, Why types.String
	Ports           types.Set
}

// ruleOf reads an object of RuleType. The framework's own way, by tags, costs
// more for each of thousands of rules than all that is done with it.
func ruleOf(o types.Object) (r Rule, err error) {
	at := o.Attributes()
	for name, into := range map[string]*types.String{"host": &r.Host, "cidr": &r.CIDR, "why": &r.Why} {
		v, ok := at[name].(types.String)
		if !ok {
			return r, fmt.Errorf("%s is a %T", name, at[name])
		}
		*into = v
	}
	ports, ok := at["ports"].(types.Set)
	if !ok {
		return r, fmt.Errorf("ports is a %T", at["ports"])
	}
	r.Ports = ports
	return r, nil
}

var (
	// RuleType is the type of one egress rule.
	RuleType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"host": types.StringType, "cidr": types.StringType, "ports": types.SetType{ElemType: types.Int64Type}, "why": types.StringType,
	}}
	// Types are the attributes of a Value.
	Types = map[string]attr.Type{
		"egress": types.ListType{ElemType: RuleType}, "expose": types.SetType{ElemType: types.Int64Type},
		"mode": types.StringType, "learn": types.BoolType,
	}
)

// Deny is the value that reaches nothing, which an absent policy means.
func Deny() types.Object {
	return types.ObjectValueMust(Types, map[string]attr.Value{
		"egress": types.ListValueMust(RuleType, []attr.Value{}), "expose": types.SetValueMust(types.Int64Type, []attr.Value{}),
		"mode": types.StringValue("transparent"), "learn": types.BoolValue(false),
	})
}

// Unknown is a value not known yet.
func Unknown() types.Object { return types.ObjectUnknown(Types) }
