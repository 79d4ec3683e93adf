package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/sandboxio/terraform-provider-sandboxio/policies"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// catalogued is how many rules were thought of. Each is shipped, or left out
// for a reason that anybody can read.
const catalogued = 53

// omitted are the rules that were thought of and left out.
var omitted = []struct{ id, title, reason string }{
	{"SBX-NET-013", "Deny entries are effective", "There is nothing but an allowlist: no deny entry can be written, and so none can lose against an allow entry. " +
		"A backend whose own rules would let more through has to refuse."},
	{"SBX-NET-014", "Credentialed endpoints are inspectable", "It asks for a proxy that opens TLS inside the sandbox's way out. " +
		"The gateway looks at names and addresses and opens nothing; whoever wants inspection puts a proxy of their own behind it."},
	{"SBX-RES-002", "An idle time-out is there, and bounded", "No sandbox has an idle time-out to leave out: its lifetime is mandatory and SBX-RES-001 bounds it. " +
		"An attribute would be there only to be denied."},
	{"SBX-RES-007", "The network is rate-limited", "No sandbox has a rate to leave out, and neither have plain containers; for pods it is an annotation that most networks ignore, " +
		"so that a rule would call safe what nothing enforces."},
	{"SBX-RES-008", "Pools are bounded", "It waits for pools, as a resource. Nothing can ask for one yet."},
	{"SBX-SEC-005", "Secrets are bound to hosts and put in by a proxy", "Secrets are handed to one command, over the sandbox's own channel, and a template holds their names only. " +
		"A proxy that puts them in would have to open TLS."},
	{"SBX-TEN-002", "A pool is one tenant's", "It waits for pools, as a resource. Nothing can ask for one yet; a sandbox is never handed to a second tenant."},
	{"SBX-TEN-003", "Members of a pool are used once", "It waits for pools, as a resource. Nothing can ask for recycling, and nothing should be able to."},
}

func TestTheCatalogueIsShippedOrOmittedAndNothingIsLost(t *testing.T) {
	own, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]string{}
	for _, r := range own.rules {
		where[r.ID] = "shipped"
	}
	shipped := len(where)
	var page bytes.Buffer
	page.WriteString(madeBy + "\n# Rules that are not there\n\n" + fmt.Sprintf(
		"Of %d rules that were thought of, %d are shipped and %d are not. A rule is there only if a configuration can express what it denies;\n"+
			"no attribute is added in order to deny it.\n\n| rule | | why not |\n|---|---|---|\n", catalogued, shipped, len(omitted)))
	for _, o := range omitted {
		if where[o.id] != "" {
			t.Errorf("%s is omitted, and %s", o.id, where[o.id])
		}
		where[o.id] = "omitted"
		fmt.Fprintf(&page, "| %s | %s | %s |\n", o.id, o.title, o.reason)
	}
	if len(where) != catalogued {
		t.Errorf("%d shipped and %d omitted are %d rules, not %d", shipped, len(omitted), len(where), catalogued)
	}
	generated(t, filepath.Join(docsDir, "omitted.md"), page.Bytes())
}

// catalogueOf is the catalogue of a set that passed all checks.
func catalogueOf(rs *ruleset) catalogue {
	c := catalogue{Sources: sourcesDigest(rs.sources)}
	for _, r := range rs.rules {
		c.Rules = append(c.Rules, catalogueEntry{r.file, r.answers, r.RuleInfo})
	}
	return c
}

// The built-in rules are compiled without the checks whose outcome the
// catalogue has; here they are all made.
func TestCatalogueIsWhatTheChecksFind(t *testing.T) {
	sources, err := readSet(policies.Files)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := compile(builtin, sources)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.MarshalIndent(catalogueOf(checked), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	generated(t, "../policies/schema/catalogue.json", append(raw, '\n'))
	if *update {
		return // what is embedded here is the one before
	}
	known, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	if len(known.compiler.GetAnnotationSet().Flatten()) > 0 {
		t.Error("the catalogue was of no use, and everything was checked again")
	}
	if d := cmp.Diff(checked.rules, known.rules, cmp.AllowUnexported(rule{}), cmp.Comparer(func(a, b ast.Ref) bool { return a.Equal(b) })); d != "" {
		t.Errorf("what is checked and what the catalogue says differ (-checked +catalogue):\n%s", d)
	}
}

func TestWithTheCatalogueRulesAnswerAsWithAllChecks(t *testing.T) {
	checked, err := compileBuiltin(nil)
	if err != nil {
		t.Fatal(err)
	}
	params, err := new(Engine).settle(foundation{}, []*ruleset{checked}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	known, all := load(t, Options{}), load(t, Options{})
	all.sets[0] = newSet(checked, params)
	n := 0
	for _, r := range checked.rules {
		for _, ex := range readExamples(t, r) {
			for _, stage := range r.Stages {
				want, got := ex.judge(t, all, stage), ex.judge(t, known, stage)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s, %q at %s (-all checks +catalogue):\n%s", r.ID, ex.Name, stage, d)
				}
				n += len(want.Findings)
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d findings were compared", n)
	}
}

func TestACatalogueOfOtherRulesCountsForNothing(t *testing.T) {
	for name, raw := range map[string]string{"none": "", "of other rules": `{"sources": "00", "rules": []}`} {
		rs, err := compileBuiltin([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if len(rs.compiler.GetAnnotationSet().Flatten()) == 0 || len(rs.rules) == 0 {
			t.Errorf("with a catalogue that is %s, nothing was checked", name)
		}
	}
}

// For each rule, what it says of its bad examples at every stage it names, and
// of its good ones.
func TestEachRuleSaysNoToItsBadExamplesAtEveryStageAndNothingToItsGoodOnes(t *testing.T) {
	own, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-12s %-30s %-14s %-14s %s\n", "rule", "stages", "bad examples", "with a waiver", "good examples")
	refused, passed := 0, 0
	for _, r := range own.rules {
		verdict := sandbox.Deny
		if r.Effect == "warn" {
			verdict = sandbox.Warn
		}
		bad, good, waived := 0, 0, 0
		for _, ex := range readExamples(t, r) {
			e := load(t, Options{Params: ex.Params})
			excusing := sync.OnceValue(func() *Engine { w, _ := ex.waiver(t, r, r.Stages[0]); return exempt(t, w) })
			for _, stage := range r.Stages {
				var said []sandbox.Decision
				for _, f := range ex.judge(t, e, stage).Findings {
					if f.Rule == r.ID {
						said = append(said, f.Effect)
					}
				}
				switch {
				case ex.Expect == map[sandbox.Decision]string{sandbox.Deny: "fail", sandbox.Warn: "warn"}[verdict]:
					bad++
					if !slices.Contains(said, verdict) {
						t.Errorf("%s at %s: of the bad example %q it says %q", r.ID, stage, ex.Name, said)
					}
					if _, ok := ex.waiver(t, r, stage); ok {
						waived++
						if got := ex.waived(t, r, stage, excusing()); got != (r.Waivable && !ex.Firm) {
							t.Errorf("%s at %s: of the bad example %q, with a waiver: waived %t", r.ID, stage, ex.Name, got)
						}
					}
				case ex.Expect == "pass":
					good++
					if len(said) > 0 {
						t.Errorf("%s at %s: of the good example %q it says %q", r.ID, stage, ex.Name, said)
					}
				}
			}
		}
		if bad < len(r.Stages) || good < len(r.Stages) || waived < len(r.Stages) {
			t.Errorf("%s has %d bad, %d good and %d waived judgements for %d stages", r.ID, bad, good, waived, len(r.Stages))
			continue
		}
		refused, passed = refused+1, passed+1
		excuse := "never waived"
		if r.Waivable {
			excuse = fmt.Sprintf("%d waived", waived)
		}
		fmt.Fprintf(&table, "%-12s %-30s %-14s %-14s %d pass\n", r.ID, join(r.Stages), fmt.Sprintf("%d %s", bad, verdict), excuse, good)
	}
	t.Logf("\n%s%d shipped rules, %d refuse their bad examples and %d let their good ones pass; %d omitted", &table, len(own.rules), refused, passed, len(omitted))
}

// waiver is what would excuse the first finding that an example shows, where
// its value can be bound.
func (ex example) waiver(t *testing.T, r *rule, stage Stage) (Waiver, bool) {
	t.Helper()
	w := goodWaiver(func(w *Waiver) { w.Rule, w.Value, w.Expires = r.ID, nil, "2026-12-24" })
	at, _, _ := strings.Cut(ex.Path, " ")
	var value string
	known := len(ex.Params) == 0
	if ex.Kind == KindGraph {
		var n Node
		n, w.Path, _ = Graph{Nodes: ex.Nodes}.Place(at)
		text, ok := n.valueOf(w.Path)
		value, known = text, known && ok
	} else {
		s, err := newSubject(ex.input(t, stage))
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePath(at)
		if err != nil {
			t.Fatal(err)
		}
		text, ok := s.valueAt(p)
		value, known, w.Path = text, known && ok, at
	}
	w.ValueSHA256 = digestText(value)
	return w, known
}

// waived reports whether an engine with that waiver excuses the example's first
// finding.
func (ex example) waived(t *testing.T, r *rule, stage Stage, e *Engine) bool {
	t.Helper()
	name := goodWaiver().Target.Name
	var v sandbox.Verdict
	if ex.Kind == KindGraph {
		nodes := slices.Clone(ex.Nodes)
		for i := range nodes {
			if nodes[i].Kind != KindReaperSchedule {
				nodes[i].Name = name
			}
		}
		v = judgeGraph(t, e, nodes...)
	} else {
		in := ex.input(t, stage)
		in.Name = name
		v = judge(t, e, in)
	}
	at, _, _ := strings.Cut(ex.Path, " ")
	return slices.ContainsFunc(v.Findings, func(f sandbox.Finding) bool { return f.Rule == r.ID && f.Path == at && f.Effect == sandbox.Waived })
}
