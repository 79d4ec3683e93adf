package provider_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// configured is the provider on a memory world, at the level of the protocol:
// import by identity is newer than the oldest terraform it serves.
func configured(t testing.TB, world string) (tfprotov6.ProviderServer, *tfprotov6.GetProviderSchemaResponse) {
	t.Helper()
	server, err := acctest.Server(t.Context(), provider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	resp := served(t)
	config, ok := resp.Provider.ValueType().(tftypes.Object)
	if !ok {
		t.Fatal("the provider's configuration is no object")
	}
	values := map[string]tftypes.Value{}
	for name, typ := range config.AttributeTypes {
		values[name] = tftypes.NewValue(typ, nil)
	}
	values["memory"] = tftypes.NewValue(config.AttributeTypes["memory"], map[string]tftypes.Value{"world": tftypes.NewValue(tftypes.String, world)})
	raw := dynamic(t, config, values)
	got, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: raw})
	if err != nil || len(got.Diagnostics) > 0 {
		t.Fatal(err, got.Diagnostics)
	}
	return server, resp
}

func dynamic(t testing.TB, typ tftypes.Object, values map[string]tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	v, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

var identityType = tftypes.Object{AttributeTypes: map[string]tftypes.Type{"id": tftypes.String}}

func TestEveryResourceIsImportedByIdentity(t *testing.T) {
	t.Parallel()
	w, _ := acctest.World(t)
	server, resp := configured(t, acctest.WorldName(t))
	b := memory.Open(memory.Options{World: w})
	tpl := sandbox.Template{Name: "t", Backend: "memory", Image: image, Reaper: "sweep", Lifetime: time.Hour}
	manifest, err := tpl.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	sb, err := sandbox.New(b, sandbox.Options{Unguarded: "a test of imports"}).Create(t.Context(), sandbox.Spec{Template: &tpl, Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	scheduler, ok := driver.As[driver.Scheduler](b)
	if !ok {
		t.Fatal("no schedules")
	}
	if _, err := scheduler.PutSchedule(t.Context(), driver.Schedule{Name: "sweep", Interval: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := driver.Join(sb.Close(), scheduler.DeleteSchedule(context.Background(), "sweep")); err != nil {
			t.Error(err)
		}
	})
	for name, id := range map[string]string{
		"sandboxio_template": string(manifest), "sandboxio_network_policy": `{"name":"n","egress":[{"host":"a.example.com","ports":[443]}],"expose":[],"mode":"transparent","learn":false}`,
		"sandboxio_reaper_schedule": "memory/sweep", "sandboxio_sandbox": "memory/" + sb.ID(),
	} {
		identity := dynamic(t, identityType, map[string]tftypes.Value{"id": tftypes.NewValue(tftypes.String, id)})
		got, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: name, Identity: &tfprotov6.ResourceIdentityData{IdentityData: identity}})
		if err != nil || failed(got.Diagnostics) || len(got.ImportedResources) != 1 {
			t.Errorf("%s: %v, %v", name, err, got)
			continue
		}
		in := got.ImportedResources[0]
		read, err := server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: in.State, Private: in.Private, CurrentIdentity: in.Identity})
		if err != nil || failed(read.Diagnostics) {
			t.Errorf("%s: %v, %v", name, err, read)
			continue
		}
		if v, err := read.NewIdentity.IdentityData.Unmarshal(identityType); err != nil || !v.Equal(tftypes.NewValue(identityType, map[string]tftypes.Value{"id": tftypes.NewValue(tftypes.String, id)})) {
			t.Errorf("%s: its identity is %v, %v", name, v, err)
		}
		if v, err := read.NewState.Unmarshal(resp.ResourceSchemas[name].ValueType()); err != nil || v.IsNull() {
			t.Errorf("%s: its state is %v, %v", name, v, err)
		}
	}
}

func TestAnIdentityOfAnotherBackendIsRefused(t *testing.T) {
	t.Parallel()
	acctest.World(t)
	server, _ := configured(t, acctest.WorldName(t))
	for _, name := range []string{"sandboxio_sandbox", "sandboxio_reaper_schedule"} {
		for _, id := range []string{"docker/abc", "abc", "", "memory/abc", "memory/"} {
			identity := dynamic(t, identityType, map[string]tftypes.Value{"id": tftypes.NewValue(tftypes.String, id)})
			got, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: name, Identity: &tfprotov6.ResourceIdentityData{IdentityData: identity}})
			if err != nil || !failed(got.Diagnostics) {
				t.Errorf("%s by %q: %v, %v", name, id, err, got)
			}
		}
	}
}

func failed(diags []*tfprotov6.Diagnostic) bool {
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return true
		}
	}
	return false
}
