package review_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/review"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// writePlan writes a plan of n templates, no two alike: images, lifetimes,
// caps, hosts, ranges, variables and labels differ, and one in twenty is bad.
// Half of it repeats the values, as Terraform's own do.
func writePlan(t testing.TB, name string, n int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	values := func(i int) string {
		cidr, reaper := fmt.Sprintf("198.51.%d.%d/32", i/250%250, i%250), "\"sweep\""
		if i%20 == 0 {
			cidr, reaper = "0.0.0.0/0", "null"
		}
		return fmt.Sprintf(`{"backend":"docker","env":{"MODE":"m%d","REGION":"eu-%d","WORKERS":"%d"},"image":"ghcr.io/acme/agent-%d@sha256:%064x","isolation":null,`+
			`"labels":{"owner":"team-%d","tenant":"t%d"},"lifetime":"%ds","multi_tenant":false,"name":"agent-%d","network_policy":{"egress":[{"cidr":null,"host":"api-%d.example.com","ports":[443],"why":"its own service"},`+
			`{"cidr":%q,"host":null,"ports":[443],"why":"the database"},{"cidr":null,"host":"*.svc-%d.example.net","ports":[443],"why":null}],"expose":[],"learn":false,"mode":"transparent"},`+
			`"profile":"strict","reaper":%s,"resources":{"cpu_millis":%d,"disk_mib":256,"memory_mib":%d,"pids":256},"secrets":["API_TOKEN"],"trust":"trusted","trust_reason":"reviewed by the platform team"}`,
			i, i%7, i, i, i, i%40, i%40, 60+i%3000, i, i, cidr, i, reaper, 500+i%1000, 256+i%512)
	}
	fmt.Fprint(w, `{"format_version":"1.2","terraform_version":"1.11.4","planned_values":{"root_module":{"resources":[`)
	for i := range n {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, `{"address":"sandboxio_template.t[%d]","mode":"managed","type":"sandboxio_template","name":"t","index":%d,"provider_name":"registry.terraform.io/sandboxio/sandboxio","schema_version":0,"values":%s,"sensitive_values":{"env":{},"labels":{}}}`, i, i, values(i))
	}
	fmt.Fprint(w, `]}},"resource_changes":[`)
	for i := range n {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, `{"address":"sandboxio_template.t[%d]","mode":"managed","type":"sandboxio_template","name":"t","index":%d,"provider_name":"registry.terraform.io/sandboxio/sandboxio","change":{"actions":["create"],"before":null,"after":%s,`+
			`"after_unknown":{"id":true,"digest":true,"manifest":true,"env":{},"labels":{},"network_policy":{"egress":[{"ports":[false]},{"ports":[false]},{"ports":[false]}],"expose":[]},"resources":{},"secrets":[false]},"before_sensitive":false,"after_sensitive":{"env":{},"labels":{}}}}`, i, i, values(i))
	}
	fmt.Fprint(w, `,{"address":"sandboxio_reaper_schedule.sweep","mode":"managed","type":"sandboxio_reaper_schedule","name":"sweep","change":{"actions":["create"],"before":null,"after":{"name":"sweep","backend":"docker","interval":"300s","cron":null,"labels":{},"max_age":"3600s","dry_run":false},"after_unknown":{"id":true},"after_sensitive":{}}}`)
	fmt.Fprint(w, `],"configuration":{"provider_config":{"sandboxio":{"name":"sandboxio","full_name":"registry.terraform.io/sandboxio/sandboxio","expressions":{}}}},"complete":true,"errored":false}`)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkReview reviews a thousand templates, no two alike.
func BenchmarkReview(b *testing.B) {
	name := filepath.Join(b.TempDir(), "plan.json")
	writePlan(b, name, 1000)
	e, err := policy.Load(b.Context(), policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := plan.Open(b.Context(), name, plan.Options{Backend: estate.Promise})
		if err != nil {
			b.Fatal(err)
		}
		r, err := review.Run(b.Context(), p, e, review.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if r.Seen.Judged != 1001 || len(r.Findings) == 0 {
			b.Fatalf("%d judged, %d findings", r.Seen.Judged, len(r.Findings))
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1001, "µs/resource")
}
