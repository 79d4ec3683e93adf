package provider_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-log/tfsdklogtest"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

// unasked is an environment in which nobody asked for a log.
func unasked(t testing.TB) {
	t.Helper()
	for _, name := range []string{"TF_LOG", "TF_LOG_PROVIDER", "TF_LOG_SDK", "TF_LOG_SDK_FRAMEWORK"} {
		t.Setenv(name, "")
	}
}

// wide plans a network policy of so many rules, as Terraform does when there
// was none.
func wide(ctx context.Context, t testing.TB, server tfprotov6.ProviderServer, schema *tfprotov6.GetProviderSchemaResponse, rules int) {
	t.Helper()
	typ, ok := schema.ResourceSchemas["sandboxio_network_policy"].ValueType().(tftypes.Object)
	if !ok {
		t.Fatal("a network policy is no object")
	}
	list, ok := typ.AttributeTypes["egress"].(tftypes.List)
	if !ok {
		t.Fatal("egress is no list")
	}
	rule, ok := list.ElementType.(tftypes.Object)
	if !ok {
		t.Fatal("a rule is no object")
	}
	var egress []tftypes.Value
	for i := range rules {
		egress = append(egress, tftypes.NewValue(rule, map[string]tftypes.Value{
			"host": tftypes.NewValue(tftypes.String, fmt.Sprintf("h%d.example.com", i)), "cidr": tftypes.NewValue(tftypes.String, nil), "why": tftypes.NewValue(tftypes.String, nil),
			"ports": tftypes.NewValue(rule.AttributeTypes["ports"], []tftypes.Value{tftypes.NewValue(tftypes.Number, 443)}),
		}))
	}
	values := map[string]tftypes.Value{}
	for name, typ := range typ.AttributeTypes {
		values[name] = tftypes.NewValue(typ, nil)
	}
	values["name"], values["egress"] = tftypes.NewValue(tftypes.String, "wide"), tftypes.NewValue(list, egress)
	config := dynamic(t, typ, values)
	none, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, nil))
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: "sandboxio_network_policy", Config: config, ProposedNewState: config, PriorState: &none})
	if err != nil || failed(got.Diagnostics) {
		t.Fatal(err, got)
	}
}

func TestTheFrameworkWritesNoTraceUnlessTerraformIsAskedForALog(t *testing.T) {
	for _, c := range []struct {
		asked string // a variable that is set
		says  bool
	}{{"", false}, {"TF_LOG", true}, {"TF_LOG_PROVIDER", true}, {"TF_LOG_SDK", true}, {"TF_LOG_SDK_FRAMEWORK", true}} {
		t.Run("asked by "+c.asked, func(t *testing.T) {
			unasked(t)
			if c.asked != "" {
				t.Setenv(c.asked, "TRACE")
			}
			if err := provider.Quiet(); err != nil {
				t.Fatal(err)
			}
			server, schema := configured(t, acctest.WorldName(t))
			var said bytes.Buffer
			wide(tfsdklogtest.RootLogger(t.Context(), &said), t, server, schema, 3)
			if got := strings.Contains(said.String(), `"@level":"trace"`); got != c.says {
				t.Errorf("it says %q", said.String())
			}
		})
	}
}

// BenchmarkPlan is the plan of a network policy, with a logger as Terraform's
// plugins have it: its time for each rule is to stay what it is for few.
func BenchmarkPlan(b *testing.B) {
	unasked(b)
	if err := provider.Quiet(); err != nil {
		b.Fatal(err)
	}
	server, schema := configured(b, "bench")
	for _, rules := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			for b.Loop() {
				wide(tfsdklogtest.RootLogger(b.Context(), io.Discard), b, server, schema, rules)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(rules), "us/rule")
		})
	}
}
