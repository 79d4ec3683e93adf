package main

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

func TestTheDumpIsReadByTerraformsOwnReader(t *testing.T) {
	t.Parallel()
	s, err := schemas(t.Context(), providerserver.NewProtocol6(provider.New(provider.Options{}))())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read tfjson.ProviderSchemas
	if err := read.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	p := read.Schemas[name]
	if p == nil {
		t.Fatal("the provider is not there")
	}
	resources := []string{"sandboxio_network_policy", "sandboxio_reaper_schedule", "sandboxio_sandbox", "sandboxio_template"}
	if diff := cmp.Diff(resources, slices.Sorted(maps.Keys(p.ResourceSchemas))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(resources, slices.Sorted(maps.Keys(p.ResourceIdentitySchemas))); diff != "" {
		t.Errorf("every resource has an identity: %s", diff)
	}
	start := p.ResourceSchemas["sandboxio_sandbox"].Block.Attributes["start"].AttributeNestedType
	if start == nil || !start.Attributes["secrets_wo"].WriteOnly || start.NestingMode != tfjson.SchemaNestingModeSingle {
		t.Errorf("start is %+v", start)
	}
	if f := p.Functions["policy_findings"]; f == nil || f.Summary == "" || !f.ReturnType.IsListType() || len(f.Parameters) != 1 || f.Parameters[0].Name != "manifest" {
		t.Errorf("the function is %+v", f)
	}
	if p.ConfigSchema.Block.NestedBlocks["docker"] == nil {
		t.Error("the provider's blocks are lost")
	}
}
