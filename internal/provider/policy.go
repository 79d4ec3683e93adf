package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/judge"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

type rules struct {
	Mode    types.String  `tfsdk:"mode"`
	Params  types.Dynamic `tfsdk:"params"`
	Sources types.Map     `tfsdk:"sources"`
	Bundles types.Map     `tfsdk:"bundles"`
	Waivers types.List    `tfsdk:"waivers"`
}

type bundle struct {
	File        types.String `tfsdk:"file"`
	Key         types.String `tfsdk:"key"`
	MinRevision types.Int64  `tfsdk:"min_revision"`
	Digest      types.String `tfsdk:"digest"`
}

type waiver struct {
	ID          types.String `tfsdk:"id"`
	Rule        types.String `tfsdk:"rule"`
	Target      types.Object `tfsdk:"target"`
	Path        types.String `tfsdk:"path"`
	Value       types.String `tfsdk:"value"`
	ValueSHA256 types.String `tfsdk:"value_sha256"`
	Reason      types.String `tfsdk:"reason"`
	Owner       types.String `tfsdk:"owner"`
	Expires     types.String `tfsdk:"expires"`
}

type target struct {
	Name types.String `tfsdk:"name"`
	Kind types.String `tfsdk:"kind"`
}

func policyBlock() schema.Block {
	required := func(text string) schema.Attribute {
		return schema.StringAttribute{Required: true, MarkdownDescription: "Required. " + text}
	}
	optional := func(text string) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: text}
	}
	return schema.SingleNestedBlock{
		MarkdownDescription: "The policy. The built-in rules always hold. A floor that `SANDBOXIO_POLICY_FLOOR` names holds too, and nothing here can be " +
			"more lenient than it. Default: the built-in rules alone.",
		Attributes: map[string]schema.Attribute{
			"mode": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf("enforce", "advise")},
				MarkdownDescription: "`enforce`, or `advise` to warn where rules deny, which every plan says (SBX-POL-001). Default: `enforce`.",
			},
			"params": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "An object with parameters of rules, as `{ max_pids = 512 }`; a rule's page lists its own. Values looser than the rule's are " +
					"told of in every plan (SBX-POL-001). Default: the rules' own.",
			},
			"sources": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, Validators: []validator.Map{mapvalidator.NoNullValues()},
				MarkdownDescription: "Directories of Rego files, by the name of the set: rules of the set `acme` live in packages `custom.acme.…`. They can only add findings. " +
					"A file `waivers.yaml` at the top holds the set's waivers. Default: none.",
			},
			"bundles": schema.MapNestedAttribute{
				Optional: true, Validators: []validator.Map{mapvalidator.NoNullValues()},
				MarkdownDescription: "Signed bundles, by the name of the set, as `sandboxio policy bundle` makes them. Default: none.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"file": required("The bundle, a `.tar.gz`."),
					"key":  required("The public key that must have signed it, in PEM: ECDSA on P-256 or Ed25519."),
					"min_revision": schema.Int64Attribute{
						Optional: true, Validators: []validator.Int64{int64validator.AtLeast(1)},
						MarkdownDescription: "The least revision to take: an older bundle is refused as a rollback. Default: any.",
					},
					"digest": optional("The digest of the very file, as `sha256:…`. Default: any file that the key signed."),
				}},
			},
			"waivers": schema.ListNestedAttribute{
				Optional: true,
				MarkdownDescription: "Waivers: each excuses the findings of one rule about one target and one value for a time. What they excuse is still told, " +
					"and so is that this configuration excuses itself (SBX-POL-001). Default: none.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id":   required("A name of its own."),
					"rule": required("The rule's id. Some rules cannot be waived."),
					"target": schema.SingleNestedAttribute{
						Required: true, MarkdownDescription: "Required. What it is about.",
						Attributes: map[string]schema.Attribute{
							"name": required("The `name` of the template, network policy or reaper schedule. A template's covers the sandboxes made from it."),
							"kind": optional("`template`, `sandbox`, `network_policy` or `reaper_schedule`. Default: any."),
						},
					},
					"path":         required("The finding's path, as `network.egress[0].cidr`; `[*]` stands for any index."),
					"value":        optional("The value that is excused: a text as it is, anything else as JSON. Another value is denied. Default: `value_sha256`, one of the two is set."),
					"value_sha256": optional("The SHA-256 of the value in hex; of variables only this. Default: `value`, one of the two is set."),
					"reason":       required("Why, in 20 characters or more."),
					"owner":        required("Who answers for it."),
					"expires":      required("A time of RFC 3339, or a date, which ends with its day in UTC: at most 90 days from now, 30 for rules of severity critical."),
				}},
			},
		},
	}
}

// expand gives the options, and whether all of them are known.
func (r rules) expand(ctx context.Context, diags *diag.Diagnostics) (o policy.Options, known bool) {
	if !whole(ctx, r.Mode, r.Params, r.Sources, r.Bundles, r.Waivers) {
		return o, false
	}
	var err error
	if o.Mode, err = policy.ParseMode(r.Mode.ValueString()); err != nil {
		diags.AddAttributeError(path.Root("policy").AtName("mode"), "Invalid mode", err.Error())
	}
	if o.Params, err = params(r.Params); err != nil {
		diags.AddAttributeError(path.Root("policy").AtName("params"), "Invalid parameters", err.Error())
	}
	sources := map[string]string{}
	diags.Append(r.Sources.ElementsAs(ctx, &sources, false)...)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		o.Sources = append(o.Sources, policy.Source{Name: name, Dir: sources[name]})
	}
	bundles := map[string]bundle{}
	diags.Append(r.Bundles.ElementsAs(ctx, &bundles, false)...)
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		b := bundles[name]
		o.Sources = append(o.Sources, policy.Source{Name: name, Bundle: &policy.Bundle{
			From: policy.File(b.File.ValueString()), Key: b.Key.ValueString(), MinRevision: uint64(b.MinRevision.ValueInt64()), Digest: b.Digest.ValueString(),
		}})
	}
	var waivers []waiver
	diags.Append(r.Waivers.ElementsAs(ctx, &waivers, false)...)
	for _, w := range waivers {
		var t target
		diags.Append(w.Target.As(ctx, &t, basetypes.ObjectAsOptions{})...)
		o.Waivers = append(o.Waivers, policy.Waiver{
			ID: w.ID.ValueString(), Rule: w.Rule.ValueString(), Target: policy.Target{Name: t.Name.ValueString(), Kind: policy.Kind(t.Kind.ValueString())},
			Path: w.Path.ValueString(), Value: w.Value.ValueStringPointer(), ValueSHA256: w.ValueSHA256.ValueString(),
			Reason: w.Reason.ValueString(), Owner: w.Owner.ValueString(), Expires: w.Expires.ValueString(),
		})
	}
	return o, true
}

// whole reports whether everything in values is known.
func whole(ctx context.Context, values ...attr.Value) bool {
	for _, v := range values {
		tf, err := v.ToTerraformValue(ctx)
		if err != nil || !tf.IsFullyKnown() {
			return false
		}
	}
	return true
}

// params are those of an object or map, as JSON has them.
func params(d types.Dynamic) (map[string]any, error) {
	if d.IsNull() || d.IsUnderlyingValueNull() {
		return nil, nil
	}
	v, err := plain(d.UnderlyingValue())
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("write an object, as { max_pids = 512 }")
	}
	return m, nil
}

func plain(v attr.Value) (any, error) {
	all := func(in []attr.Value) (any, error) {
		out := make([]any, len(in))
		for i, e := range in {
			var err error
			if out[i], err = plain(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	named := func(in map[string]attr.Value) (any, error) {
		out := map[string]any{}
		for k, e := range in {
			var err error
			if out[k], err = plain(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch v := v.(type) {
	case types.Bool:
		return v.ValueBool(), nil
	case types.String:
		return v.ValueString(), nil
	case types.Number:
		f, _ := v.ValueBigFloat().Float64()
		return f, nil
	case types.Tuple:
		return all(v.Elements())
	case types.List:
		return all(v.Elements())
	case types.Set:
		return all(v.Elements())
	case types.Object:
		return named(v.Attributes())
	case types.Map:
		return named(v.Elements())
	case types.Dynamic:
		return plain(v.UnderlyingValue())
	}
	return nil, fmt.Errorf("a parameter cannot be a %T", v)
}

// report puts the problems of a configuration on its attributes.
func (m model) report(diags *diag.Diagnostics, summary string, err error) {
	places := judge.Same("default_backend", "policy")
	if m.Policy != nil {
		for name := range m.Policy.Bundles.Elements() {
			places = places.With(fmt.Sprintf("policy.sources[%q]", name), path.Root("policy").AtName("bundles").AtMapKey(name))
		}
	}
	judge.Report{Diags: diags, Places: places}.Error(summary, err)
}
