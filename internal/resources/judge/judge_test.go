package judge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var places = Same("env", "secrets", "resources").With("network", path.Root("network_policy")).With("lifetime_seconds", path.Root("lifetime"))

func TestOf(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"network.egress[2].cidr":     "network_policy.egress[2].cidr",
		"network.egress[2].ports[1]": "network_policy.egress[2].ports",
		"network":                    "network_policy",
		`env["A.B[0]\"x"]`:           `env["A.B[0]\"x"]`,
		"resources.pids":             "resources.pids",
		"lifetime_seconds":           "lifetime",
		"secrets[0]":                 "secrets",
		`secrets["A"]`:               `secrets["A"]`,
		"image.pinned":               "",
		"":                           "",
		"env[":                       "env",
		`env["A`:                     "env",
		"env[99999999999]":           "env",
		"env[-1]":                    "env",
		"env..x":                     "env",
		"env.":                       "env",
		"env]x":                      "",
	} {
		if got := places.Of(field).String(); got != want {
			t.Errorf("Of(%q) = %q, want %q", field, got, want)
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, s := range []string{"network.egress[2].cidr", `env["A"]`, "env[", "resources..", "secrets[0].x", `env["\xff"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		at := places.Of(field)
		if n := len(line(at).Steps()); n > 2 {
			t.Errorf("line of %q has %d steps", field, n)
		}
	})
}

func TestLineIsWhatTerraformCanShow(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]path.Path{
		"network_policy": path.Root("network_policy").AtName("egress").AtListIndex(1).AtName("cidr"),
		"egress[1]":      path.Root("egress").AtListIndex(1).AtName("cidr"),
		`env["A"]`:       path.Root("env").AtMapKey("A"),
		"image":          path.Root("image"),
		"":               path.Empty(),
	} {
		if got := line(at).String(); got != want {
			t.Errorf("line(%s) = %q, want %q", at, got, want)
		}
	}
}

type engine struct {
	verdict sandbox.Verdict
	err     error
}

func (e engine) Judge(context.Context, policy.Input) (sandbox.Verdict, error) {
	return e.verdict, e.err
}

func finding(effect sandbox.Decision) sandbox.Finding {
	return sandbox.Finding{Rule: "SBX-NET-002", Title: "No default route", Severity: "high", Effect: effect, Message: "it is open",
		Path: "network.egress[0].cidr", Remediation: "name a range", Page: "https://example.com/SBX-NET-002"}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	v := func(d sandbox.Decision, f ...sandbox.Finding) sandbox.Verdict {
		return sandbox.Verdict{Decision: d, Findings: f}
	}
	for _, c := range []struct {
		name             string
		engine           engine
		unchanged        bool
		denied           bool
		errors, warnings int
		says             string
	}{
		{"an allowance says nothing", engine{verdict: v(sandbox.Allow)}, false, false, 0, 0, ""},
		{"a denial is an error with rule, attribute, fix and page", engine{verdict: v(sandbox.Deny, finding(sandbox.Deny))}, false, true, 1, 0,
			"it is open (high)\n\nAttribute: network_policy.egress[0].cidr\nFix: name a range\nSee: https://example.com/SBX-NET-002"},
		{"a denial of what exists unchanged warns and still counts as one", engine{verdict: v(sandbox.Deny, finding(sandbox.Deny))}, true, true, 0, 1, "stops neither this plan nor destroy"},
		{"a warning warns", engine{verdict: v(sandbox.Warn, finding(sandbox.Warn))}, false, false, 0, 1, "it is open"},
		{"unknowns are one warning", engine{verdict: v(sandbox.Unknown, finding(sandbox.Unknown), finding(sandbox.Unknown))}, false, false, 0, 1, "checked again before creation"},
		{"a rule that failed denies", engine{verdict: v(sandbox.Failed, finding(sandbox.Failed))}, false, true, 1, 0, "it is open"},
		{"what is waived warns, and says by whom", engine{verdict: v(sandbox.Allow, waived())}, false, false, 0, 1, `waived by "W-1" of team-build until 2026-12-31T00:00:00Z: because`},
		{"waived is no decision", engine{verdict: v(sandbox.Waived)}, false, true, 1, 0, "no rule says why"},
		{"a denial without a finding denies", engine{verdict: v(sandbox.Deny)}, false, true, 1, 0, "no rule says why"},
		{"a decision nobody knows denies", engine{verdict: v("maybe")}, false, true, 1, 0, "maybe"},
		{"no decision denies", engine{verdict: sandbox.Verdict{}}, false, true, 1, 0, ""},
		{"a denial among warnings denies", engine{verdict: v(sandbox.Deny, finding(sandbox.Deny), finding(sandbox.Warn))}, false, true, 1, 1, ""},
		{"an error of the judge denies", engine{err: errors.New("out of memory")}, false, true, 1, 0, "does not pass"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			denied := Report{Diags: &diags, Places: places, Exists: c.unchanged, Unchanged: c.unchanged}.Judge(t.Context(), c.engine, policy.Input{})
			if denied != c.denied || diags.ErrorsCount() != c.errors || diags.WarningsCount() != c.warnings {
				t.Errorf("denied %v, %d errors, %d warnings: %v", denied, diags.ErrorsCount(), diags.WarningsCount(), diags)
			}
			if c.says != "" && (len(diags) == 0 || !strings.Contains(diags[0].Detail(), c.says)) {
				t.Errorf("says %v, not %q", diags, c.says)
			}
		})
	}
}

func waived() sandbox.Finding {
	f := finding(sandbox.Waived)
	f.Waiver = &sandbox.Waiver{ID: "W-1", Owner: "team-build", Reason: "because", Expires: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC), Effect: sandbox.Deny}
	return f
}

func TestADenialOfAChangeNamesTheWayToDestroy(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	Report{Diags: &diags, Places: places, Exists: true}.Verdict(sandbox.Verdict{Decision: sandbox.Deny, Findings: []sandbox.Finding{finding(sandbox.Deny)}})
	if !diags.HasError() || !strings.Contains(diags[0].Detail(), "terraform destroy -refresh=false") {
		t.Errorf("got %v", diags)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		n    int
		says string
	}{
		{"every problem is told apart", driver.Join(driver.Invalid("env", "bad", "mend it"), driver.Invalid("network.mode", "worse", "drop it")), 2, "bad\n\nAttribute: env\nFix: mend it\nCode: invalid"},
		{"an error of nobody's kind is told too", errors.New("boom"), 1, "boom\n"},
		{"a code alone is told by its name", driver.CodeGone, 1, "gone"},
		{"a wrapped denial is told by its findings", &driver.Error{Code: driver.CodeDenied, Err: &sandbox.DeniedError{Verdict: sandbox.Verdict{Decision: sandbox.Deny, Findings: []sandbox.Finding{finding(sandbox.Deny)}}}}, 1, "it is open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			Report{Diags: &diags, Places: places}.Error("It failed", c.err)
			if diags.ErrorsCount() != c.n || !strings.HasPrefix(diags[0].Detail(), c.says) {
				t.Errorf("got %v", diags)
			}
		})
	}
}
