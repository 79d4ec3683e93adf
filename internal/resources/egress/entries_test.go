package egress

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// call is f of these arguments, as Terraform calls it.
func call(t *testing.T, f function.Function, result attr.Value, args ...attr.Value) (attr.Value, *function.FuncError) {
	t.Helper()
	resp := function.RunResponse{Result: function.NewResultData(result)}
	f.Run(t.Context(), function.RunRequest{Arguments: function.NewArgumentsData(args)}, &resp)
	return resp.Result.Value(), resp.Error
}

func canonicalOf(t *testing.T, words ...string) (types.List, *function.FuncError) {
	t.Helper()
	els := make([]attr.Value, len(words))
	for i, w := range words {
		els[i] = types.StringValue(w)
	}
	got, err := call(t, NewCanonical(), types.ListNull(network.RuleType), types.ListValueMust(types.StringType, els))
	list, _ := got.(types.List)
	return list, err
}

// TestEntries decides in Terraform every entry that driver.TestEntries decides
// in Go, from the same file.
func TestEntries(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../sandbox/driver/testdata/entries.json")
	if err != nil {
		t.Fatal(err)
	}
	type answer struct{ Want, Problem, Fix string }
	var entries []struct {
		Name, In string
		answer
		Doors *answer
	}
	if err := json.Unmarshal(raw, &entries); err != nil || len(entries) < 70 {
		t.Fatalf("%d entries: %v", len(entries), err)
	}
	for _, e := range entries {
		if e.Doors != nil {
			e.answer = *e.Doors
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			list, refused := canonicalOf(t, "first.example", e.In)
			if e.Want == "" {
				if refused == nil || !strings.Contains(refused.Text, "rules[1]: ") || !strings.Contains(refused.Text, e.Problem) || !strings.Contains(refused.Text, "Fix: ") || !strings.Contains(refused.Text, e.Fix) {
					t.Errorf("%+q: %v, %v; want it refused for %q, with the fix %q", e.In, list, refused, e.Problem, e.Fix)
				}
				return
			}
			if refused != nil {
				t.Fatalf("%+q: %v", e.In, refused)
			}
			x, diags := network.Value{Egress: list}.Expand(t.Context())
			if diags.HasError() || x.Problems != nil || len(x.Network.Egress) != 2 {
				t.Fatalf("%v, %v: %v", diags, x.Problems, list)
			}
			var rules []string
			for _, r := range x.Network.Egress {
				rules = append(rules, r.String())
			}
			if !strings.Contains(strings.Join(rules, "\n"), e.Want) {
				t.Errorf("%+q gives %q; want %s", e.In, rules, e.Want)
			}
		})
	}
}

// No rules, and rules that are null, allow nothing (M18, M19).
func TestNoRulesAllowNothing(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]types.List{"none": types.ListValueMust(network.RuleType, nil), "null": types.ListNull(network.RuleType)} {
		got, err := call(t, NewAllows(), types.BoolValue(true), rules, types.StringValue("example.com:443"))
		if got != types.BoolValue(false) || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestAListHasABound(t *testing.T) {
	t.Parallel()
	words := make([]string, driver.MaxRules+1)
	for i := range words {
		words[i] = fmt.Sprintf("h%d.example", i)
	}
	if list, err := canonicalOf(t, words[1:]...); err != nil || len(list.Elements()) != driver.MaxRules {
		t.Errorf("%d rules, %v", len(list.Elements()), err)
	}
	if _, err := canonicalOf(t, words...); err == nil || !strings.Contains(err.Text, fmt.Sprintf("rules: %d rules are too many", len(words))) || !strings.Contains(err.Text, "Fix: ") {
		t.Errorf("%v", err)
	}
}
