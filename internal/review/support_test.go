package review_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/review"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// files makes a directory.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reviewed reviews what lies at a place.
func reviewed(t *testing.T, name string, o plan.Options, rules policy.Options, ro review.Options) *review.Report {
	t.Helper()
	o.Backend = estate.Promise
	e, err := policy.Load(t.Context(), rules)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Open(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	r, err := review.Run(t.Context(), p, e, ro)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := r.SARIF(&log, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	checkPlaces(t, log.String())
	return r
}

// formats writes a report in every format.
func formats(t *testing.T, r *review.Report) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range review.Formats() {
		w, err := review.Format(name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := w(&b, r, "1.2.3"); err != nil {
			t.Fatal(err)
		}
		out[name] = b.String()
	}
	checkPlaces(t, out["sarif"])
	return out
}

// checkPlaces wants a file and a line for every result of a log, without which
// GitHub refuses all of them, and what it is about beside.
func checkPlaces(t *testing.T, log string) {
	t.Helper()
	type location struct {
		Physical struct {
			Artifact struct{ URI string } `json:"artifactLocation"`
			Region   struct{ StartLine int }
		} `json:"physicalLocation"`
		Logical []struct{ FullyQualifiedName string } `json:"logicalLocations"`
	}
	var doc struct {
		Runs []struct {
			Results []struct {
				RuleID    string
				Locations []location
				Related   []location `json:"relatedLocations"`
			}
		}
	}
	if err := json.Unmarshal([]byte(log), &doc); err != nil || len(doc.Runs) != 1 {
		t.Fatalf("%v: %s", err, log)
	}
	for _, r := range doc.Runs[0].Results {
		if len(r.Locations) != 1 || len(r.Locations[0].Logical) != 1 {
			t.Errorf("%s has the places %+v", r.RuleID, r.Locations)
		}
		for _, at := range append(r.Locations, r.Related...) {
			if at.Physical.Artifact.URI == "" || at.Physical.Region.StartLine < 1 {
				t.Errorf("%s has the place %+v, which is no line of a file", r.RuleID, at)
			}
		}
	}
}

// checkSARIF holds a log against the standard's own schema.
func checkSARIF(t *testing.T, log string) {
	t.Helper()
	schema, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{log: true, strings.Replace(log, `"version": "2.1.0"`, `"version": "9"`, 1): false} {
		problems, err := validate(t.Context(), string(schema), text)
		if err != nil {
			t.Fatal(err)
		}
		if (len(problems) == 0) != want {
			t.Errorf("valid %v, want %v: %v", !want, want, problems)
		}
	}
}

func validate(ctx context.Context, schema, document string) ([]any, error) {
	var doc, s any
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		return nil, err
	}
	rs, err := rego.New(rego.Query(`[ok, problems] := json.match_schema(input.document, input.schema)`),
		rego.Input(map[string]any{"document": doc, "schema": s}), rego.StrictBuiltinErrors(true)).Eval(ctx)
	if err != nil || len(rs) != 1 {
		return []any{"no answer"}, err
	}
	problems, _ := rs[0].Bindings["problems"].([]any)
	return problems, nil
}

// asked is a Guard that remembers what it was asked.
type asked struct {
	policy  string
	request sandbox.Request
}

func (a *asked) Judge(_ context.Context, req sandbox.Request) (sandbox.Verdict, error) {
	a.request = req
	return sandbox.Verdict{Decision: sandbox.Allow, Policy: a.policy}, nil
}
