//go:build linux

package review_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/policies"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// spent is what a process took.
type spent struct {
	wall, cpu time.Duration
	mib       float64
	output    string
}

// spend runs a command, which may deny.
func spend(b *testing.B, name string, args ...string) spent {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), name, args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err := cmd.Run()
	s := spent{wall: time.Since(start), output: out.String()}
	if cmd.ProcessState == nil {
		b.Fatal(err)
	}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.mib = float64(usage.Maxrss) / 1024
	}
	return s
}

// conftestRules writes the built-in rules for templates, as they are, with what
// makes conftest ask them; it gives their number.
func conftestRules(b *testing.B, dir string) int {
	b.Helper()
	e, err := policy.Load(b.Context(), policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	params := map[string]any{}
	asked := map[string]string{}
	for _, r := range e.Rules() {
		for _, p := range r.Params {
			params[p.Name] = p.Default
		}
		if slices.Contains(r.Kinds, policy.KindTemplate) && slices.Contains(r.Stages, policy.StageFile) {
			asked[r.ID] = r.Effect
		}
	}
	var all strings.Builder
	all.WriteString("package main\n\ndeny contains msg if {\n\tsome rc in input.resource_changes\n\trc.type == \"sandboxio_template\"\n\tdoc := data.bench.document(rc)\n" +
		"\tsome f in answers with input as doc\n\tmsg := sprintf(\"%s %s: %v: %s\", [rc.address, f.rule, f.path, f.message])\n}\n\n")
	n := 0
	err = fs.WalkDir(policies.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(policies.Files, name)
		if err != nil {
			return err
		}
		text := string(raw)
		if !strings.HasPrefix(name, "lib/") {
			id := strings.TrimSpace(strings.SplitN(strings.SplitN(text, "#   id: ", 2)[1], "\n", 2)[0])
			if asked[id] == "" {
				return nil
			}
			n++
			pkg := "data.sandboxio." + strings.ReplaceAll(filepath.ToSlash(filepath.Dir(name)), "/", ".")
			for _, answer := range []string{"deny", "warn"} {
				if strings.Contains(text, "\n"+answer+" contains ") {
					fmt.Fprintf(&all, "answers contains {\"rule\": %q, \"path\": f.path, \"message\": f.message} if some f in %s.%s\n\n", id, pkg, answer)
				}
			}
		}
		return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "_")), raw, 0o600)
	})
	if err != nil {
		b.Fatal(err)
	}
	document, err := os.ReadFile("testdata/conftest/document.rego")
	if err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"params": params})
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"main.rego": all.String(), "document.rego": string(document), "params.json": string(raw)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return n
}

// BenchmarkConftest has sandboxio and conftest judge one plan of 10 000
// templates by the same rules, in turns. SANDBOXIO_CLI and CONFTEST name the
// programs: make bench-policy builds both and runs it.
func BenchmarkConftest(b *testing.B) {
	ours, theirs := os.Getenv("SANDBOXIO_CLI"), os.Getenv("CONFTEST")
	if theirs == "" {
		b.Log("CONFTEST names no program, so nothing is compared: make bench-policy")
		return
	}
	dir := b.TempDir()
	rules := filepath.Join(dir, "rules")
	if err := os.Mkdir(rules, 0o700); err != nil {
		b.Fatal(err)
	}
	n := conftestRules(b, rules)
	const resources = 10000
	big, small := filepath.Join(dir, "big.json"), filepath.Join(dir, "small.json")
	writePlan(b, big, resources)
	writePlan(b, small, 3)
	var we, they, cold []spent
	for b.Loop() {
		we = append(we, spend(b, ours, "policy", "check", big, "--format", "json="+filepath.Join(dir, "report.json")))
		they = append(they, spend(b, theirs, "test", "--policy", rules, "--data", filepath.Join(rules, "params.json"), "--no-color", big))
		for range 5 {
			cold = append(cold, spend(b, ours, "policy", "check", small))
		}
	}
	for _, s := range []struct {
		name, out string
	}{{"sandboxio", we[0].output}, {"conftest", they[0].output}} {
		if !strings.Contains(s.out, "1500 denied") && strings.Count(s.out, "0.0.0.0/0 is every address there is") != resources/20 {
			b.Fatalf("%s did not find what is wrong with one in twenty:\n%.2000s", s.name, s.out)
		}
	}
	fast := func(a, b spent) int { return int(a.wall - b.wall) }
	w, t, c := slices.MinFunc(we, fast), slices.MinFunc(they, fast), slices.MinFunc(cold, fast)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(w.wall.Seconds(), "sandboxio-s")
	b.ReportMetric(w.cpu.Seconds(), "sandboxio-cpu-s")
	b.ReportMetric(w.mib, "sandboxio-MiB")
	b.ReportMetric(t.wall.Seconds(), "conftest-s")
	b.ReportMetric(t.cpu.Seconds(), "conftest-cpu-s")
	b.ReportMetric(t.mib, "conftest-MiB")
	b.ReportMetric(float64(c.wall.Milliseconds()), "cold-ms")
	b.Logf("%d rules; sandboxio %.1f s, %.1f s of CPU, %.0f MiB; conftest %.1f s, %.1f s of CPU, %.0f MiB; cold start %d ms",
		n, w.wall.Seconds(), w.cpu.Seconds(), w.mib, t.wall.Seconds(), t.cpu.Seconds(), t.mib, c.wall.Milliseconds())
	if w.wall*2 > t.wall || w.mib*3 > t.mib || w.mib > 200 {
		b.Error("sandboxio promises to be twice as fast as conftest, with a third of the memory and at most 200 MiB")
	}
}
