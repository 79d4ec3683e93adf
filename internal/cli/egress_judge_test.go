package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func TestWhatLintAndThePolicySayIsToldOnce(t *testing.T) {
	t.Parallel()
	metadata := egress.Finding{Kind: egress.KindMetadata, Deny: true, Field: "cidr", Text: "own", Fix: "own"}
	never := egress.Finding{Kind: egress.KindNever, Field: "cidr", Text: "own", Fix: "own"}
	says := func(id string, effect sandbox.Decision) linted {
		return linted{Kind: kindPolicy, Policy: id, Effect: effect, Field: "cidr", Text: "policy", Fix: "policy"}
	}
	merged := func(kind egress.Kind, id string, effect sandbox.Decision, text, fix string) linted {
		return linted{Kind: kind, Policy: id, Effect: effect, Field: "cidr", Text: text, Fix: fix}
	}
	elsewhere := says("SBX-NET-004", sandbox.Deny)
	elsewhere.Index = 1
	for _, c := range []struct {
		name   string
		own    egress.Finding
		judged []linted
		want   []linted
	}{
		{"what the policy does not say stands alone", never, nil, []linted{merged(egress.KindNever, "", sandbox.Warn, "own", "own")}},
		{"the same is one finding, with the policy's fix", metadata, []linted{says("SBX-NET-004", sandbox.Deny)},
			[]linted{merged(egress.KindMetadata, "SBX-NET-004", sandbox.Deny, "own", "policy")}},
		{"what the policy denies is denied, and what leads nowhere is best removed", never, []linted{says("SBX-NET-005", sandbox.Deny)},
			[]linted{merged(egress.KindNever, "SBX-NET-005", sandbox.Deny, "own", "own")}},
		{"a waiver excuses a warning, and says so", never, []linted{says("SBX-NET-005", sandbox.Waived)},
			[]linted{merged(egress.KindNever, "SBX-NET-005", sandbox.Waived, "policy", "own")}},
		{"but not what lint denies", metadata, []linted{says("SBX-NET-004", sandbox.Waived)},
			[]linted{merged(egress.KindMetadata, "SBX-NET-004", sandbox.Deny, "policy", "policy")}},
		{"another rule of the policy is another finding", metadata, []linted{says("SBX-NET-005", sandbox.Deny)},
			[]linted{merged(egress.KindMetadata, "", sandbox.Deny, "own", "own"), says("SBX-NET-005", sandbox.Deny)}},
		{"and so is another entry", metadata, []linted{elsewhere},
			[]linted{merged(egress.KindMetadata, "", sandbox.Deny, "own", "own"), elsewhere}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, together([]egress.Finding{c.own}, c.judged)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyWarningsAndWaivedFindingsAreNotDenied(t *testing.T) {
	t.Parallel()
	for effect, want := range map[sandbox.Decision]sandbox.Decision{
		sandbox.Warn: sandbox.Warn, sandbox.Waived: sandbox.Waived, sandbox.Deny: sandbox.Deny, sandbox.Failed: sandbox.Deny, sandbox.Unknown: sandbox.Deny, "else": sandbox.Deny,
	} {
		if got := effectOf(sandbox.Finding{Effect: effect}); got != want {
			t.Errorf("%s is %s", effect, got)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	type place struct {
		index int
		field string
	}
	for path, want := range map[string]place{
		"network.egress[2].cidr": {2, "cidr"}, "network.egress[10]": {10, ""}, "network.egress": {-1, "egress"}, "network.expose[1]": {-1, "expose[1]"}, "": {-1, ""},
	} {
		if i, f := placeOf(path); (place{i, f}) != want {
			t.Errorf("%q is %d, %q", path, i, f)
		}
	}
}
