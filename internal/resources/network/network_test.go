package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func rule(host, cidr, why types.String, ports types.Set) types.Object {
	return types.ObjectValueMust(RuleType.AttrTypes, map[string]attr.Value{"host": host, "cidr": cidr, "why": why, "ports": ports})
}

func host(s string) types.Object {
	return rule(types.StringValue(s), types.StringNull(), types.StringNull(), types.SetNull(types.Int64Type))
}

func value(rules ...attr.Value) types.Object {
	v := Flatten(driver.Network{})
	v.Egress = types.ListValueMust(RuleType, rules)
	return v.Object()
}

func TestM19NullAbsentAndEmptyMeanDeny(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]types.Object{"null": types.ObjectNull(Types), "the zero value": Deny(), "an empty list": value()} {
		e, diags := ExpandObject(t.Context(), o)
		if diags.HasError() || !e.Known() || len(e.Network.Egress) != 0 || len(e.Network.Expose) != 0 {
			t.Errorf("%s: %+v, %v", name, e, diags)
		}
	}
}

func TestUnknownsAreNamedAndNeverEmpty(t *testing.T) {
	t.Parallel()
	null, unknown, ports := types.StringNull(), types.StringUnknown(), types.SetNull(types.Int64Type)
	for _, c := range []struct {
		name string
		from types.Object
		want []string
	}{
		{"the whole value", Unknown(), []string{"network"}},
		{"one rule", value(host("a.example.com"), types.ObjectUnknown(RuleType.AttrTypes)), []string{"network.egress[1]"}},
		{"a host", value(rule(unknown, null, null, ports)), []string{"network.egress[0].host"}},
		{"a range", value(rule(null, unknown, null, ports)), []string{"network.egress[0].cidr"}},
		{"a reason", value(rule(types.StringValue("a.example.com"), null, unknown, ports)), []string{"network.egress[0].why"}},
		{"ports", value(rule(types.StringValue("a.example.com"), null, null, types.SetUnknown(types.Int64Type))), []string{"network.egress[0].ports"}},
		{"one port", value(rule(types.StringValue("a.example.com"), null, null, types.SetValueMust(types.Int64Type, []attr.Value{types.Int64Value(80), types.Int64Unknown()}))), []string{"network.egress[0].ports"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, diags := ExpandObject(t.Context(), c.from)
			if diags.HasError() || e.Problems != nil || e.Known() {
				t.Errorf("%+v, %v", e, diags)
			}
			if diff := cmp.Diff(c.want, e.Unknown); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNamesInOtherScriptsBecomeALabels(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"bücher.example": "xn--bcher-kva.example", "*.BÜCHER.example.": "*.xn--bcher-kva.example", "straße.example": "xn--strae-oqa.example",
		"例え.テスト": "xn--r8jz45g.xn--zckzah", "a。example": "a.example", "xn--bcher-kva.example": "xn--bcher-kva.example",
	} {
		e, _ := ExpandObject(t.Context(), value(host(in)))
		n, err := Canonical(e.Network)
		if e.Problems != nil || err != nil || n.Egress[0].Host != want {
			t.Errorf("%q becomes %v, %v, %v, want %q", in, n.Egress, e.Problems, err, want)
		}
	}
}

func TestWhatLooksLikeAnotherHostIsRefused(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "*", "*.*.example.com", "a.example.com:443", "https://a.example.com", "a.example.com/x", "10.0.0.1", "１０.０.０.１", "0x7f.1", "localhost",
		"a..example.com", "-a.example.com", "a.example.com\u200b/", "user@a.example.com", "a b.example.com", "ａ/ｂ.example.com", "ex\u202eample.com", "foo.*.example.com",
	} {
		e, _ := ExpandObject(t.Context(), value(host(in)))
		if e.Problems == nil {
			n, err := Canonical(e.Network)
			t.Errorf("%q is accepted as %v, %v", in, n.Egress, err)
		} else if f := driver.Problems(e.Problems)[0].Field; !strings.HasPrefix(f, "network.egress[0]") {
			t.Errorf("%q is refused at %q", in, f)
		}
	}
}

func TestAPortThatIsNoneIsRefusedAndNotDropped(t *testing.T) {
	t.Parallel()
	for _, port := range []attr.Value{types.Int64Value(0), types.Int64Value(-1), types.Int64Value(65536), types.Int64Value(1 << 32), types.Int64Null()} {
		r := rule(types.StringValue("a.example.com"), types.StringNull(), types.StringNull(), types.SetValueMust(types.Int64Type, []attr.Value{port}))
		e, _ := ExpandObject(t.Context(), value(r))
		if e.Problems == nil || driver.Problems(e.Problems)[0].Field != "network.egress[0].ports" {
			t.Errorf("%v becomes %v, %v", port, e.Network, e.Problems)
		}
	}
}

// As many rules as there may be: each of their places is found, and the next
// rule is one too many.
func TestAListHasABound(t *testing.T) {
	t.Parallel()
	rules := make([]driver.Rule, driver.MaxRules)
	els := make([]attr.Value, len(rules)+1)
	for i := range els {
		host := fmt.Sprintf("H%05d.example", len(els)-i) // in the other order than the canonical one
		els[i] = rule(types.StringValue(host), types.StringNull(), types.StringNull(), types.SetNull(types.Int64Type))
		if i < len(rules) {
			rules[i].Host = host
		}
	}
	places := PlacesOf(rules)
	for i := range rules {
		if got, want := places.Written(fmt.Sprintf("network.egress[%d].host", i)), fmt.Sprintf("network.egress[%d].host", len(rules)-1-i); got != want {
			t.Fatalf("rule %d is at %s, want %s", i, got, want)
		}
	}
	e, _ := ExpandObject(t.Context(), value(els[1:]...))
	if e.Problems != nil || len(e.Network.Egress) != driver.MaxRules {
		t.Errorf("%d rules: %v", len(e.Network.Egress), e.Problems)
	}
	e, _ = ExpandObject(t.Context(), value(els...))
	p := driver.Problems(e.Problems)
	if len(p) != 1 || p[0].Field != "network.egress" || !strings.Contains(p[0].Err.Error(), fmt.Sprintf("%d rules are too many", len(els))) || p[0].Hint == "" || e.Known() {
		t.Errorf("%v", e.Problems)
	}
}

// An empty list of ports would read as none and mean 80 and 443.
func TestAnEmptyListOfPortsIsRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	r := rule(types.StringValue("a.example.com"), types.StringNull(), types.StringNull(), types.SetValueMust(types.Int64Type, []attr.Value{}))
	e, _ := ExpandObject(t.Context(), value(r))
	p := driver.Problems(e.Problems)
	if len(p) != 1 || p[0].Field != "network.egress[0].ports" || !strings.Contains(p[0].Hint, "leave ports out for 80 and 443") {
		t.Errorf("got %+v, %v", e.Network, e.Problems)
	}
}

func TestWrittenFindsTheRuleThatWasWritten(t *testing.T) {
	t.Parallel()
	rules := []driver.Rule{{Host: "B.example.com"}, {Host: "a.example.com"}, {Prefix: netip.MustParsePrefix("203.0.113.9/24")}}
	for field, want := range map[string]string{
		"network.egress[0].cidr": "network.egress[2].cidr", "network.egress[1].host": "network.egress[1].host", "network.egress[2]": "network.egress[0]",
		"network.egress[7].host": "network.egress[7].host", "network.egress[x]": "network.egress[x]", "image": "image", "network.egress[": "network.egress[",
	} {
		if got := PlacesOf(rules).Written(field); got != want {
			t.Errorf("Written(%q) = %q, want %q", field, got, want)
		}
	}
}

func TestFlattenAndExpandAreEachOthersInverse(t *testing.T) {
	t.Parallel()
	n, err := Canonical(driver.Network{
		Egress: []driver.Rule{{Host: "a.example.com", Why: "x"}, {Prefix: netip.MustParsePrefix("2001:db8::/32"), Ports: []uint16{443}}},
		Expose: []uint16{8080, 80}, Mode: driver.Proxy, Learn: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	e, diags := ExpandObject(t.Context(), Flatten(n).Object())
	if diags.HasError() || !e.Known() {
		t.Fatalf("%+v, %v", e, diags)
	}
	if diff := cmp.Diff(n, e.Network, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"a.example.com", "*.bücher.example", "10.0.0.0/8", "xn--", "１.2.3.4", "a。b"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, name, cidr string) {
		e, diags := ExpandObject(t.Context(), value(host(name), rule(types.StringNull(), types.StringValue(cidr), types.StringNull(), types.SetNull(types.Int64Type))))
		if diags.HasError() {
			t.Fatal(diags)
		}
		if e.Problems != nil {
			return
		}
		n, err := Canonical(e.Network)
		if err != nil {
			t.Fatalf("%q, %q: expanded, and not canonical: %v", name, cidr, err)
		}
		for _, r := range n.Egress {
			if strings.IndexFunc(r.Host, func(c rune) bool { return c >= 0x80 || c <= ' ' }) >= 0 {
				t.Errorf("%q leaves %q", name, r.Host)
			}
		}
		again, _ := ExpandObject(t.Context(), Flatten(n).Object())
		if m, err := Canonical(again.Network); err != nil || !slices.EqualFunc(n.Egress, m.Egress, func(a, b driver.Rule) bool { return a.String() == b.String() }) {
			t.Errorf("%v reads back as %v, %v", n.Egress, m.Egress, err)
		}
	})
}
