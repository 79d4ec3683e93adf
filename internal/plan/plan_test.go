package plan

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// named is a backend that is called otherwise.
type named struct {
	driver.Backend
	name, image string
}

func (n named) Info() driver.Info {
	info := n.Backend.Info()
	info.Name, info.DefaultImage = n.name, n.image
	return info
}

func backends(_ context.Context, name, image string) (driver.Backend, error) {
	return named{memory.Open(memory.Options{}), name, image}, nil
}

// write makes a directory of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
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

// read opens what lies at a place and gives all of its items.
func read(t *testing.T, name string, opts Options) ([]Item, Seen) {
	t.Helper()
	opts.Backend = backends
	p, err := Open(t.Context(), name, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	var items []Item
	for i, err := range p.Items(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, i)
	}
	return items, p.Seen()
}

// jsonPlan is a plan of these changes.
func jsonPlan(changes string) string {
	return `{"format_version":"1.2","terraform_version":"1.11.4","planned_values":{},"resource_changes":[` + changes + `],"configuration":{"provider_config":{}},"complete":true,"errored":false}`
}

func TestAPlansValues(t *testing.T) {
	t.Parallel()
	t.Run("are known, unknown or sensitive, and none is taken for missing (M164)", threeValued)
}

func threeValued(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"plan.json": jsonPlan(`
{"address":"module.m[\"a.b]\"].sandboxio_template.t[0]","module_address":"module.m[\"a.b]\"]","mode":"managed","type":"sandboxio_template","name":"t","index":0,
 "change":{"actions":["create"],"before":null,
  "after":{"name":"t","backend":"docker","env":{"A":"hunter2-canary","B":null},"labels":{"team":"x"},"lifetime":"1h","secrets":["S"],
    "network_policy":{"egress":[{"host":"Example.COM","ports":[443]},{"ports":[443]},null],"expose":[],"mode":"transparent","learn":false},
    "resources":{"cpu_millis":1000,"memory_mib":512,"disk_mib":256}},
  "after_unknown":{"id":true,"env":{"C":true},"image":true,"network_policy":{"egress":[{"ports":[false]},{"cidr":true},true]},"resources":{"pids":true},"secrets":[false]},
  "after_sensitive":{"env":{"A":true},"labels":true}}},
{"address":"sandboxio_template.gone","mode":"managed","type":"sandboxio_template","name":"gone","change":{"actions":["delete"],"before":{"name":"gone"},"after":null,"after_unknown":{}}},
{"address":"data.sandboxio_backend.b","mode":"data","type":"sandboxio_backend","name":"b","change":{"actions":["read"],"after":{}}},
{"address":"aws_instance.i","mode":"managed","type":"aws_instance","name":"i","change":{"actions":["create"],"after":{}}}`)})
	items, seen := read(t, filepath.Join(dir, "plan.json"), Options{})
	if len(items) != 1 || items[0].Problem != nil {
		t.Fatalf("items %+v", items)
	}
	in := items[0].Parts[0].Input
	want := []string{`env["C"]`, "image", "network.egress[1].cidr", "network.egress[2]", "resources.pids"}
	if d := cmp.Diff(want, sortedCopy(in.Unknown)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{`env["A"]`, "labels", `labels["team"]`}, sortedCopy(in.Sensitive)); d != "" {
		t.Error(d)
	}
	if got := items[0].Redact("it says hunter2-canary"); strings.Contains(got, "hunter2") {
		t.Errorf("redacted to %q", got)
	}
	if seen.Known != 2 || seen.Deleted != 1 || seen.Judged != 1 || seen.Changes != 3 {
		t.Errorf("seen %+v", seen)
	}
	if d := cmp.Diff([]string{"m"}, items[0].module); d != "" {
		t.Error(d)
	}
}

func TestWhatDoesNotChangeIsUnchanged(t *testing.T) {
	t.Parallel()
	const values = `{"name":"p","egress":[{"host":"a.example","ports":[443]}],"expose":[],"mode":"transparent","learn":false`
	for _, c := range []struct {
		name, change string
		want         bool
	}{
		{"a no-op", `"actions":["no-op"],"before":` + values + `},"after":` + values + `}`, true},
		{"an update of what nobody judges", `"actions":["update"],"before":` + values + `,"digest":"old"},"after":` + values + `},"after_unknown":{"digest":true}`, true},
		{"an update of what is judged", `"actions":["update"],"before":` + values + `},"after":{"name":"p","egress":[{"host":"b.example","ports":[443]}],"mode":"transparent"}`, false},
		{"an update to what is not known", `"actions":["update"],"before":` + values + `},"after":` + values + `},"after_unknown":{"egress":true}`, false},
		{"a replacement by the same", `"actions":["delete","create"],"before":` + values + `},"after":` + values + `}`, false},
		{"a creation", `"actions":["create"],"before":null,"after":` + values + `}`, false},
		{"an import", `"actions":["no-op"],"importing":{"id":"x"},"before":` + values + `},"after":` + values + `}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{"p.json": jsonPlan(`{"address":"sandboxio_network_policy.p","mode":"managed","type":"sandboxio_network_policy","name":"p","change":{` + c.change + `}}`)})
			items, _ := read(t, filepath.Join(dir, "p.json"), Options{})
			if len(items) != 1 || items[0].Unchanged != c.want {
				t.Errorf("got %+v", items)
			}
		})
	}
}

func TestWhatIsNoPlanIsRefusedWithAFix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, says string }{
		{"a failed plan", strings.Replace(jsonPlan(""), `"errored":false`, `"errored":true`, 1), "the plan failed"},
		{"a state", `{"format_version":"1.0","terraform_version":"1.11.4","values":{}}`, "a state"},
		{"another format", strings.Replace(jsonPlan(""), `"1.2"`, `"2.0"`, 1), "1.x is understood"},
		{"a link to a saved plan", `{"remote_plan_format":1,"run_id":"run-x","hostname":"app.terraform.io"}`, "HCP Terraform"},
		{"an encrypted plan", `{"meta":{},"encrypted_data":"x","encryption_version":"v0"}`, "only tofu"},
		{"any JSON", `{"a":1}`, "not the JSON of a plan"},
		{"a list", `[]`, "not the JSON of a plan"},
		{"nothing", ``, "unexpected EOF"},
		{"half a plan", jsonPlan("")[:40], "unexpected EOF"},
		{"UTF-16", "\xff\xfe{\x00", "UTF-16"},
		{"an archive that is no plan", "PK\x03\x04 and no more", "zip"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{"p": c.text})
			_, err := Open(t.Context(), filepath.Join(dir, "p"), Options{Backend: backends})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("says %v", err)
			}
		})
	}
}

func TestNothingToJudgeSaysWhatWasSeen(t *testing.T) {
	t.Parallel()
	t.Run("a plan of other things is no pass (M163)", nothing)
}

func nothing(t *testing.T) {
	t.Parallel()
	s := Seen{}
	for _, kind := range []string{"aws_instance", "aws_instance", "null_resource"} {
		s.count(kind, false)
	}
	if err := s.Nothing(); err == nil || !strings.Contains(err.Error(), "aws_instance (2), null_resource (1)") {
		t.Errorf("says %v", err)
	}
	if err := (Seen{}).Nothing(); err == nil || !strings.Contains(err.Error(), "no resources at all") {
		t.Errorf("says %v", err)
	}
	s.count("sandboxio_template", true)
	if err := s.Nothing(); err != nil {
		t.Error(err)
	}
}
