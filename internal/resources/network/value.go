package network

import (
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
	Host  types.String `tfsdk:"host"`
	CIDR  types.String `tfsdk:"cidr"`
	Ports types.Set    `tfsdk:"ports"`
	Why   types.String `tfsdk:"why"`
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
