package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The names are those of terraform's own output, format version 1.0.
type (
	document struct {
		FormatVersion string                  `json:"format_version"`
		Schemas       map[string]providerJSON `json:"provider_schemas"`
	}
	providerJSON struct {
		Provider    schemaJSON              `json:"provider"`
		Resources   map[string]schemaJSON   `json:"resource_schemas"`
		DataSources map[string]schemaJSON   `json:"data_source_schemas"`
		Functions   map[string]functionJSON `json:"functions"`
		Identities  map[string]identityJSON `json:"resource_identity_schemas"`
	}
	functionJSON struct {
		Description string          `json:"description,omitempty"`
		Summary     string          `json:"summary,omitempty"`
		ReturnType  json.RawMessage `json:"return_type"`
		Parameters  []parameterJSON `json:"parameters,omitempty"`
	}
	parameterJSON struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		IsNullable  bool            `json:"is_nullable,omitempty"`
		Type        json.RawMessage `json:"type"`
	}
	schemaJSON struct {
		Version int64     `json:"version"`
		Block   blockJSON `json:"block"`
	}
	blockJSON struct {
		Attributes      map[string]attributeJSON `json:"attributes,omitempty"`
		BlockTypes      map[string]blockTypeJSON `json:"block_types,omitempty"`
		Description     string                   `json:"description,omitempty"`
		DescriptionKind string                   `json:"description_kind,omitempty"`
	}
	blockTypeJSON struct {
		NestingMode string    `json:"nesting_mode"`
		Block       blockJSON `json:"block"`
		MinItems    int64     `json:"min_items,omitempty"`
		MaxItems    int64     `json:"max_items,omitempty"`
	}
	attributeJSON struct {
		Type            json.RawMessage `json:"type,omitempty"`
		NestedType      *nestedJSON     `json:"nested_type,omitempty"`
		Description     string          `json:"description,omitempty"`
		DescriptionKind string          `json:"description_kind,omitempty"`
		Deprecated      bool            `json:"deprecated,omitempty"`
		Required        bool            `json:"required,omitempty"`
		Optional        bool            `json:"optional,omitempty"`
		Computed        bool            `json:"computed,omitempty"`
		Sensitive       bool            `json:"sensitive,omitempty"`
		WriteOnly       bool            `json:"write_only,omitempty"`
	}
	nestedJSON struct {
		Attributes  map[string]attributeJSON `json:"attributes"`
		NestingMode string                   `json:"nesting_mode"`
	}
	identityJSON struct {
		Version    int64                            `json:"version"`
		Attributes map[string]identityAttributeJSON `json:"attributes"`
	}
	identityAttributeJSON struct {
		Type              json.RawMessage `json:"type"`
		Description       string          `json:"description,omitempty"`
		RequiredForImport bool            `json:"required_for_import,omitempty"`
		OptionalForImport bool            `json:"optional_for_import,omitempty"`
	}
)

// name is where tfplugindocs looks for a provider.
const name = "sandboxio"

func schemas(ctx context.Context, server tfprotov6.ProviderServer) (document, error) {
	resp, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return document{}, err
	}
	for _, d := range resp.Diagnostics {
		return document{}, fmt.Errorf("%s: %s", d.Summary, d.Detail)
	}
	out := providerJSON{Resources: map[string]schemaJSON{}, DataSources: map[string]schemaJSON{}, Identities: map[string]identityJSON{}}
	if out.Provider, err = schema(resp.Provider); err != nil {
		return document{}, err
	}
	for n, s := range resp.ResourceSchemas {
		if out.Resources[n], err = schema(s); err != nil {
			return document{}, err
		}
	}
	for n, s := range resp.DataSourceSchemas {
		if out.DataSources[n], err = schema(s); err != nil {
			return document{}, err
		}
	}
	if out.Functions, err = functions(resp.Functions); err != nil {
		return document{}, err
	}
	ids, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return document{}, err
	}
	for n, s := range ids.IdentitySchemas {
		id := identityJSON{Version: s.Version, Attributes: map[string]identityAttributeJSON{}}
		for _, a := range s.IdentityAttributes {
			t, err := typeOf(a.Type)
			if err != nil {
				return document{}, err
			}
			id.Attributes[a.Name] = identityAttributeJSON{Type: t, Description: a.Description, RequiredForImport: a.RequiredForImport, OptionalForImport: a.OptionalForImport}
		}
		out.Identities[n] = id
	}
	return document{FormatVersion: "1.0", Schemas: map[string]providerJSON{name: out}}, nil
}

func functions(all map[string]*tfprotov6.Function) (map[string]functionJSON, error) {
	out := map[string]functionJSON{}
	for n, f := range all {
		if f.VariadicParameter != nil {
			return nil, fmt.Errorf("%s: a variadic parameter is not written yet", n)
		}
		j := functionJSON{Description: f.Description, Summary: f.Summary}
		var err error
		if j.ReturnType, err = typeOf(f.Return.Type); err != nil {
			return nil, err
		}
		for _, p := range f.Parameters {
			t, err := typeOf(p.Type)
			if err != nil {
				return nil, err
			}
			j.Parameters = append(j.Parameters, parameterJSON{Name: p.Name, Description: p.Description, IsNullable: p.AllowNullValue, Type: t})
		}
		out[n] = j
	}
	return out, nil
}

func schema(s *tfprotov6.Schema) (schemaJSON, error) {
	b, err := block(s.Block)
	return schemaJSON{Version: s.Version, Block: b}, err
}

func block(b *tfprotov6.SchemaBlock) (blockJSON, error) {
	out := blockJSON{Description: b.Description, DescriptionKind: kind(b.DescriptionKind)}
	var err error
	if out.Attributes, err = attributes(b.Attributes); err != nil {
		return out, err
	}
	for _, n := range b.BlockTypes {
		if out.BlockTypes == nil {
			out.BlockTypes = map[string]blockTypeJSON{}
		}
		in, err := block(n.Block)
		if err != nil {
			return out, err
		}
		out.BlockTypes[n.TypeName] = blockTypeJSON{NestingMode: blockNesting[n.Nesting], Block: in, MinItems: n.MinItems, MaxItems: n.MaxItems}
	}
	return out, nil
}

func attributes(all []*tfprotov6.SchemaAttribute) (map[string]attributeJSON, error) {
	out := make(map[string]attributeJSON, len(all))
	for _, a := range all {
		j := attributeJSON{
			Description: a.Description, DescriptionKind: kind(a.DescriptionKind), Deprecated: a.Deprecated,
			Required: a.Required, Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
		}
		var err error
		if a.NestedType != nil {
			j.NestedType = &nestedJSON{NestingMode: objectNesting[a.NestedType.Nesting]}
			j.NestedType.Attributes, err = attributes(a.NestedType.Attributes)
		} else {
			j.Type, err = typeOf(a.Type)
		}
		if err != nil {
			return nil, err
		}
		out[a.Name] = j
	}
	return out, nil
}

// typeOf writes a type as the protocol does.
func typeOf(t tftypes.Type) (json.RawMessage, error) {
	return t.MarshalJSON() //nolint:staticcheck // it is marked as for this library's own use, and is the one writer of this form
}

func kind(k tfprotov6.StringKind) string {
	if k == tfprotov6.StringKindMarkdown {
		return "markdown"
	}
	return "plain"
}

var (
	blockNesting = map[tfprotov6.SchemaNestedBlockNestingMode]string{
		tfprotov6.SchemaNestedBlockNestingModeSingle: "single", tfprotov6.SchemaNestedBlockNestingModeList: "list",
		tfprotov6.SchemaNestedBlockNestingModeSet: "set", tfprotov6.SchemaNestedBlockNestingModeMap: "map", tfprotov6.SchemaNestedBlockNestingModeGroup: "group",
	}
	objectNesting = map[tfprotov6.SchemaObjectNestingMode]string{
		tfprotov6.SchemaObjectNestingModeSingle: "single", tfprotov6.SchemaObjectNestingModeList: "list",
		tfprotov6.SchemaObjectNestingModeSet: "set", tfprotov6.SchemaObjectNestingModeMap: "map",
	}
)
