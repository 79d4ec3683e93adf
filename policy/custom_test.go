package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// customRule is a rule of a customer's with the given body.
func customRule(id, pkg, body string) string {
	return `# METADATA
# scope: package
# title: A rule of ours
# description: It says what we want.
# custom:
#   id: ` + id + `
#   severity: medium
#   effect: deny
#   kinds: [template, sandbox]
#   stages: [plan, file, apply, runtime]
#   waivable: true
#   params:
#     acme_teams:
#       description: teams there are
#       default: [data, web]
#       tighten: fewer
#   sources:
#     - document: our handbook
#       section: sandboxes
#   remediation: Do as the handbook says.
package ` + pkg + "\n\n" + body + "\n"
}

// source writes files into a directory and makes a set of it.
func source(t testing.TB, files map[string]string) Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Source{Name: "acme", Dir: dir}
}

func oneRule(t testing.TB, body string) Source {
	t.Helper()
	return source(t, map[string]string{"rule.rego": customRule("ACME-001", "custom.acme.teams", body)})
}

const teamRule = `deny contains {"path": ["labels", "team"], "message": message} if {
	not input.resource.labels.team in data.params.acme_teams
	message := sprintf("%v is no team", [input.resource.labels.team])
}`

func TestACustomersSetAddsFindings(t *testing.T) {
	e := load(t, Options{Sources: []Source{oneRule(t, teamRule)}})
	in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}
	v := judge(t, e, in)
	if v.Decision != sandbox.Allow || !slices.Contains(v.Rules, "ACME-001") {
		t.Fatalf("%s, by %q", v.Decision, v.Rules)
	}
	in.Resource.Labels = map[string]string{"team": "ops"}
	in.Resource.Image = ImageOf("python:3.12")
	v = judge(t, e, in)
	if got := []string{v.Findings[0].Rule, v.Findings[1].Rule}; !slices.Equal(got, []string{"SBX-IMG-001", "ACME-001"}) || v.Decision != sandbox.Deny {
		t.Errorf("%s %q", v.Decision, got)
	}
	if f := v.Findings[1]; f.Path != `labels["team"]` || f.Message != "ops is no team" || f.Remediation != "Do as the handbook says." {
		t.Errorf("%+v", f)
	}
}

// The rule that the guide tells people to begin with.
func TestTheGuidesRuleWorks(t *testing.T) {
	guide, err := os.ReadFile("../docs/guides/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "```rego\n")
	rule, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the guide has no rule")
	}
	e := load(t, Options{Sources: []Source{source(t, map[string]string{"team/rule.rego": rule})}})
	for _, c := range []struct {
		labels map[string]string
		path   string
	}{
		{map[string]string{"owner": "a"}, `labels["team"]`}, {map[string]string{"owner": "a", "team": "ops"}, `labels["team"]`},
		{map[string]string{"owner": "a", "team": "web"}, ""},
	} {
		in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}
		in.Resource.Labels = c.labels
		v := judge(t, e, in)
		var at []string
		for _, f := range v.Findings {
			at = append(at, f.Rule+" "+f.Path)
		}
		if c.path == "" && v.Decision != sandbox.Allow || c.path != "" && !slices.Equal(at, []string{"ACME-LAB-001 " + c.path}) {
			t.Errorf("%v: %s %q", c.labels, v.Decision, at)
		}
	}
}

func TestACustomersSetIsRefused(t *testing.T) {
	ok := `deny contains {"path": ["profile"], "message": "no"} if input.resource.profile == "compat"`
	for _, tc := range []struct {
		name, body, want string
		files            map[string]string
	}{
		{name: "when it writes into the built-in rules", want: "is outside custom.acme", files: map[string]string{
			"a.rego": customRule("ACME-001", "custom.acme.teams", ok),
			"b.rego": "package sandboxio.lib.cap\n\nproblem(_, _) := false if false\n",
		}},
		{name: "when it writes into another set", want: "is outside custom.acme", files: map[string]string{"a.rego": customRule("ACME-001", "custom.acme2.teams", ok)}},
		{name: "when it writes into the root itself", want: "is outside custom.acme", files: map[string]string{"a.rego": customRule("ACME-001", "custom.acme", ok)}},
		{name: "when it takes a built-in name", want: "prefix SBX-", files: map[string]string{"a.rego": customRule("SBX-NET-002", "custom.acme.teams", ok)}},
		{name: "when two of its rules have one id", want: "is taken by", files: map[string]string{
			"a.rego": customRule("ACME-001", "custom.acme.teams", ok), "b.rego": customRule("ACME-001", "custom.acme.other", ok),
		}},
		{name: "when it has no rules", want: "has no rules", files: map[string]string{"README.md": "none"}},
		{name: "when only its tests have rules", want: "has no rules", files: map[string]string{"a_test.rego": customRule("ACME-001", "custom.acme.teams", ok)}},
		{name: "when a package says nothing of itself", want: "no METADATA", files: map[string]string{"a.rego": "package custom.acme.teams\n\n" + ok}},
		{name: "when METADATA has a misspelt field", want: "waiveable", files: map[string]string{"a.rego": strings.Replace(customRule("ACME-001", "custom.acme.teams", ok), "waivable", "waiveable", 1)}},
		{name: "when METADATA has no remediation", want: "remediation is missing", files: map[string]string{"a.rego": strings.Replace(customRule("ACME-001", "custom.acme.teams", ok), "Do as the handbook says.", `""`, 1)}},
		{name: "when METADATA has another severity", want: "severity", files: map[string]string{"a.rego": strings.Replace(customRule("ACME-001", "custom.acme.teams", ok), "severity: medium", "severity: dire", 1)}},
		{name: "when METADATA has another kind", want: "kinds", files: map[string]string{"a.rego": strings.Replace(customRule("ACME-001", "custom.acme.teams", ok), "[template, sandbox]", "[templates]", 1)}},
		{name: "when it warns and claims to deny", want: "custom.effect", body: strings.Replace(ok, "deny", "warn", 1)},
		{name: "when it misspells a path (M163)", want: "lifetime_second", body: `deny contains {"path": ["lifetime_seconds"], "message": "no"} if input.resource.lifetime_second > 1`},
		{name: "when it misspells a path inside a list", want: "cidrs", body: `deny contains {"path": ["network"], "message": "no"} if input.resource.network.egress[_].cidrs == "0.0.0.0/0"`},
		{name: "when it asks for a variable's value", want: "value", body: `deny contains {"path": ["env"], "message": "no"} if input.resource.env[_].value == "x"`},
		{name: "when it misspells deny", want: "never asked", body: ok + "\n\n" + strings.Replace(ok, "deny", "dney", 1)},
		{name: "when deny is no set", want: "must be a set", body: `deny if input.resource.profile == "compat"`},
		{name: "when deny is one object", want: "must be a set", body: `deny := {"path": ["profile"], "message": "no"} if input.resource.profile == "compat"`},
		{name: "when deny is a function", want: "must be a set", body: `deny(_) if input.resource.profile == "compat"`},
		{name: "when it answers nothing", want: "never asked", body: strings.Replace(ok, "deny contains", "denial contains", 1)},
		{name: "when it reads nothing", want: "reads nothing", body: `deny contains {"path": ["profile"], "message": "no"} if 1 == 1`},
		{name: "when it reads another set", want: "is outside data.custom.acme", body: `deny contains {"path": ["profile"], "message": "no"} if { count(data.sandboxio.image.pinned.deny) > 0; input.kind == "x" }`},
		{name: "when it reads data that is not there", want: "refers to nothing", body: `deny contains {"path": ["profile"], "message": "no"} if input.resource.profile == data.custom.acme.lib.profile`},
		{name: "when it reads all data", want: "recursive", body: `deny contains {"path": ["profile"], "message": "no"} if { some k; data[k]; input.resource.profile == k }`},
		{name: "when it reads a parameter that it does not declare", want: "is no parameter", body: `deny contains {"path": ["profile"], "message": "no"} if input.resource.profile == data.params.acme_team`},
		{name: "when it judges another input", want: `"with"`, body: "deny contains {\"path\": [\"profile\"], \"message\": \"no\"} if inner with input as {\"kind\": \"x\"}\n\ninner if input.resource.profile == \"compat\""},
		{name: "when it calls the network", want: "undefined function http.send", body: `deny contains {"path": ["profile"], "message": "no"} if http.send({"method": "get", "url": "http://127.0.0.1"}).body == input.kind`},
		{name: "when it resolves names", want: "undefined function net.lookup_ip_addr", body: `deny contains {"path": ["profile"], "message": "no"} if count(net.lookup_ip_addr(input.kind)) > 0`},
		{name: "when it reads the clock", want: "undefined function time.now_ns", body: `deny contains {"path": ["profile"], "message": input.kind} if time.now_ns() > 0`},
		{name: "when it counts to a milliard", want: "undefined function numbers.range", body: `deny contains {"path": ["profile"], "message": "no"} if count(numbers.range(1, 1000000000)) == count(input.kind)`},
		{name: "when it throws dice", want: "undefined function rand.intn", body: `deny contains {"path": ["profile"], "message": "no"} if rand.intn(input.kind, 2) == 0`},
		{name: "when it asks for the process", want: "undefined function opa.runtime", body: `deny contains {"path": ["profile"], "message": input.kind} if opa.runtime().env.HOME`},
		{name: "when it verifies against a schema, which could be fetched", want: "undefined function json.match_schema", body: `deny contains {"path": ["profile"], "message": "no"} if json.match_schema(input, {"$ref": "http://127.0.0.1/x"})[0]`},
		{name: "when it speaks a later Rego", want: "rego.v2", files: map[string]string{"a.rego": customRule("ACME-001", "custom.acme.teams", "import rego.v2\n\n"+ok)}},
		{name: "when an import is unused", want: "unused", files: map[string]string{"a.rego": customRule("ACME-001", "custom.acme.teams", "import data.custom.acme.lib.x\n\n"+ok)}},
		{name: "when it is no Rego", want: "rego_parse_error", body: "deny contains {"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			src := source(t, tc.files)
			if tc.body != "" {
				src = oneRule(t, tc.body)
			}
			_, err := Load(t.Context(), Options{Sources: []Source{src}})
			if !errors.Is(err, driver.CodeInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want invalid with %q", err, tc.want)
			}
		})
	}
}

func TestARemoteSchemaIsNotFetched(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	if _, err := net.Dial("tcp", server.Listener.Addr().String()); err != nil {
		t.Fatal(err) // nobody would be reached for another reason
	}
	rule := customRule("ACME-001", "custom.acme.teams", "# METADATA\n# schemas:\n#   - input.resource: {\"$ref\": \""+server.URL+"/s.json\"}\n"+teamRule)
	_, err := Load(t.Context(), Options{Sources: []Source{source(t, map[string]string{"a.rego": rule})}})
	if err == nil || !strings.Contains(err.Error(), "remote reference loading disabled") {
		t.Errorf("got %v", err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

func TestALinkOutOfTheDirectoryIsRefused(t *testing.T) {
	src := oneRule(t, teamRule)
	outside := filepath.Join(t.TempDir(), "x.rego")
	if err := os.WriteFile(outside, []byte("package custom.acme.lib.x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(src.Dir, "x.rego")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), Options{Sources: []Source{src}}); !errors.Is(err, driver.CodeInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestASetWithoutANameOrDirectoryIsRefused(t *testing.T) {
	good := oneRule(t, teamRule)
	for _, sources := range [][]Source{
		{{Name: "", Dir: good.Dir}},
		{{Name: "builtin", Dir: good.Dir}},
		{{Name: "Acme", Dir: good.Dir}},
		{{Name: "acme.x", Dir: good.Dir}},
		{{Name: "acme", Dir: filepath.Join(good.Dir, "missing")}},
		{{Name: "acme", Dir: ""}},
		{good, good},
	} {
		if _, err := Load(t.Context(), Options{Sources: sources}); !errors.Is(err, driver.CodeInvalid) {
			t.Errorf("%+v: got %v", sources, err)
		}
	}
}

// brokenRules are rules that load, and fail when they are asked.
var brokenRules = map[string]string{
	"a builtin fails":                 `deny contains {"path": ["labels"], "message": "no"} if to_number(input.resource.labels.team) > 1`,
	"an answer has no message":        `deny contains {"path": ["labels"]} if input.kind == "template"`,
	"an answer is a text":             `deny contains "no" if input.kind == "template"`,
	"an answer has no path":           `deny contains {"path": [], "message": "no"} if input.kind == "template"`,
	"an answer has a wrong path":      `deny contains {"path": "a..b", "message": "no"} if input.kind == "template"`,
	"an answer has a broken index":    `deny contains {"path": ["env", -1], "message": "no"} if input.kind == "template"`,
	"an answer lets itself be waived": `deny contains {"path": ["labels"], "message": "no", "waivable": true} if input.kind == "template"`,
	"an answer says more":             `deny contains {"path": ["labels"], "message": "no", "effect": "allow"} if input.kind == "template"`,
}

func TestARuleThatFailsDenies(t *testing.T) {
	for name, body := range brokenRules {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []Mode{Enforce, Advise} {
				e := load(t, Options{Sources: []Source{oneRule(t, body)}, Mode: mode})
				in := Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()}
				v := judge(t, e, in)
				if v.Decision != sandbox.Failed || v.Findings[0].Rule != "ACME-001" || v.Findings[0].Effect != sandbox.Failed {
					t.Errorf("%s: %s %+v", mode, v.Decision, v.Findings)
				}

				// Nor does it hide what the built-in rules say.
				in.Resource.Image = ImageOf("python:3.12")
				v = judge(t, e, in)
				if !slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == "SBX-IMG-001" }) {
					t.Errorf("%s: %+v", mode, v.Findings)
				}
			}
		})
	}
}

func TestARuleThatNeverEndsDeniesWithinItsBudget(t *testing.T) {
	e := load(t, Options{Sources: []Source{oneRule(t, `digits := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

deny contains {"path": ["labels"], "message": "no"} if {
	some a in digits
	some b in digits
	some c in digits
	some d in digits
	some e in digits
	some f in digits
	some g in digits
	some h in digits
	some i in digits
	((((((((a + b) + c) + d) + e) + f) + g) + h) + i) + 1 == count(input.resource.labels) - 1
}`)}})
	start := time.Now()
	v := judge(t, e, Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()})
	if took := time.Since(start); took < budget || took > 100*budget {
		t.Errorf("it took %s", took)
	}
	// It is for a template with one rule in its allowlist.
	if v.Decision != sandbox.Failed || !strings.Contains(v.Findings[0].Message, (budget+perItem).String()) {
		t.Errorf("%s %+v", v.Decision, v.Findings)
	}
}

func TestAnAllowlistOfTenThousandRulesIsJudgedInTime(t *testing.T) {
	r := goodOf(KindNetworkPolicy)
	r.Network.Egress = nil
	for i := range 10_000 {
		r.Network.Egress = append(r.Network.Egress, Egress{Host: new(fmt.Sprintf("h%d.example.com", i)), Ports: []int64{443}})
	}
	if v := judge(t, load(t, Options{}), Input{Kind: KindNetworkPolicy, Stage: StagePlan, Resource: r}); v.Decision != sandbox.Allow {
		t.Errorf("%s %+v", v.Decision, v.Findings)
	}
}

// Beyond the longest list there may be, nothing is evaluated, and the answer is
// an error that denies.
func TestAnAllowlistThatIsTooLongIsRefused(t *testing.T) {
	r := goodOf(KindNetworkPolicy)
	r.Network.Egress = make([]Egress, driver.MaxRules+1)
	for i := range r.Network.Egress {
		r.Network.Egress[i].Host = new("example.com")
	}
	v, err := load(t, Options{}).Judge(t.Context(), Input{Kind: KindNetworkPolicy, Stage: StagePlan, Resource: r})
	p := driver.Problems(err)
	if v.Decision == sandbox.Allow || len(p) != 1 || p[0].Field != "network.egress" || !strings.Contains(err.Error(), "50001 rules are too many") {
		t.Errorf("%s, %v", v.Decision, err)
	}
}

// What a rule makes is bounded by the time that it has: a text that doubles has
// no time to fill the memory.
func TestARuleThatDoublesATextDeniesWithinItsBudget(t *testing.T) {
	var body strings.Builder
	body.WriteString("deny contains {\"path\": [\"labels\"], \"message\": \"no\"} if {\n\tcount(input.resource.labels) > 0\n\ta0 := input.kind\n")
	for i := range 29 {
		fmt.Fprintf(&body, "\ta%d := replace(a%d, \"t\", \"tt\")\n", i+1, i)
	}
	body.WriteString("\ta29 != null\n}")
	e := load(t, Options{Sources: []Source{oneRule(t, body.String())}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v := judge(t, e, Input{Kind: KindTemplate, Stage: StagePlan, Resource: goodResource()})
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; v.Decision != sandbox.Failed || made > 2<<30 {
		t.Errorf("%s with %d MiB: %+v", v.Decision, made>>20, v.Findings)
	}
}

func TestACustomersRuleIsShownNoCredential(t *testing.T) {
	const canary = "ghp_canary0123456789canary0123456789"
	e := load(t, Options{Sources: []Source{oneRule(t, `deny contains {"path": ["labels"], "message": message} if {
	message := sprintf("%v %v", [input.kind, input.resource.labels])
}

deny contains {"path": ["network"], "message": message} if {
	some i
	message := sprintf("%v", [input.resource.network.egress[i]])
}

deny contains {"path": ["image"], "message": message} if message := sprintf("%v", [input.resource.image])`)}})
	in := Input{Kind: KindTemplate, Stage: StageApply, Resource: goodResource()}
	in.Resource.Labels = map[string]string{"note": canary, "repo": "https://" + canary + "@git.example/x", "team": "data"}
	in.Resource.Network.Egress = []Egress{{Host: new("example.com"), Why: new("password is " + canary)}}
	in.Resource.TrustReason = new(canary)
	in.Resource.Env = []Env{{Name: "A", Value: canary}}
	in.Resource.Image = ImageOf("me:" + canary + "@registry.example/x:1")
	v := judge(t, e, in)
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "canary") {
		t.Errorf("%s", raw)
	}
	if !strings.Contains(string(raw), "data") {
		t.Errorf("what is no credential is shown: %s", raw)
	}
}
