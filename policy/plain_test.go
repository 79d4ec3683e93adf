package policy

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
)

// sameAsJSON compares a document with what encoding/json makes of it.
func sameAsJSON(t *testing.T, d document) {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	v, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ast.InterfaceToValue(v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ast.InterfaceToValue(d.plain())
	if err != nil {
		t.Fatal(err)
	}
	if want.Compare(got) != 0 {
		t.Errorf("the document differs from its JSON: %s", cmp.Diff(want.String(), got.String()))
	}
}

func TestADocumentIsWhatItsJSONSays(t *testing.T) {
	own, err := builtinRules()
	if err != nil {
		t.Fatal(err)
	}
	docs := []document{{}, {Graph: &graphDocument{Nodes: []nodeDocument{{Volumes: []Use{{Name: "v"}}}}}}}
	for _, r := range own.rules {
		for _, ex := range readExamples(t, r) {
			if ex.Kind == KindGraph {
				continue
			}
			in := ex.input(t, r.Stages[0])
			unknown, err := parsePaths(in.Unknown)
			if err != nil {
				t.Fatal(err)
			}
			res, err := complete(in.Resource, unknown)
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, document{Kind: in.Kind, Resource: res, Facts: factsOf(res, unknown), Unknown: slices.Clone(in.Unknown)})
		}
	}
	for _, d := range docs {
		sameAsJSON(t, d)
	}
}

func FuzzADocumentIsWhatItsJSONSays(f *testing.F) {
	f.Add("name", "value", int64(5), true)
	f.Add("\xff\xfe", "a\xc3", int64(-1)<<62, false)
	f.Fuzz(func(t *testing.T, name, value string, n int64, set bool) {
		r := Resource{Backend: &name, Labels: map[string]string{name: value}, MultiTenant: &set, LifetimeSeconds: &n, Command: []string{value}, Env: []Env{{name, value}}}
		sameAsJSON(t, document{Address: value, Resource: r, Facts: Facts{Userinfo: []string{value}}})
	})
}
