package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// released is the command as it is shipped: that of SANDBOXIO_CLI, which `make
// build` made, or one built here in the same way.
func released(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SANDBOXIO_CLI"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "sandboxio")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=0.1.0-dev", "-o", path, "../../cmd/sandboxio")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// answer is what an entry is to become.
type answer struct{ Want, Problem, Fix string }

type entry struct {
	Name, In string
	answer
	Doors *answer // where names in other scripts are known
}

// entries are those of driver.TestEntries.
func entries(t *testing.T) []entry {
	t.Helper()
	raw, err := os.ReadFile("../../sandbox/driver/testdata/entries.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []entry
	if err := json.Unmarshal(raw, &all); err != nil || len(all) < 70 {
		t.Fatalf("%d entries: %v", len(all), err)
	}
	for i, e := range all {
		if e.Doors != nil {
			all[i].answer = *e.Doors
		}
	}
	return all
}

// The command that is shipped decides every entry as its source does: no form
// of the grammar is known to a debug build alone (M15).
func TestTheReleasedCommandDecidesEveryEntry(t *testing.T) {
	t.Parallel()
	command := released(t)
	run := func(args ...string) (out, errs string, code int) {
		cmd := exec.CommandContext(t.Context(), command, args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return stdout.String(), stderr.String(), exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
		return stdout.String(), stderr.String(), 0
	}
	for _, e := range entries(t) {
		if e.In == "" {
			continue // no line is empty: see egress.txtar
		}
		t.Run(e.Name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "rules")
			text := e.In + "\n"
			if strings.TrimSpace(e.In) != e.In || strings.ContainsFunc(e.In, func(c rune) bool { return c < ' ' }) { // not to be written on a line
				b, err := json.Marshal([]map[string]string{{"host": e.In}})
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, errs, code := run("egress", "lint", "--json", "--mode", "proxy", file)
			var report struct {
				Rules    []string
				Findings []struct{ Kind, Effect, Text, Fix string }
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v: exit code %d: %s%s", err, code, out, errs)
			}
			if e.Want != "" {
				if !slices.Equal(report.Rules, []string{e.Want}) {
					t.Errorf("%+q gives %q; want %s", e.In, report.Rules, e.Want)
				}
				return
			}
			malformed := slices.ContainsFunc(report.Findings, func(f struct{ Kind, Effect, Text, Fix string }) bool {
				return f.Kind == "malformed" && f.Effect == "deny" && strings.Contains(f.Text, e.Problem) && f.Fix != "" && strings.Contains(f.Fix, e.Fix)
			})
			if code != 2 || len(report.Rules) > 0 || !malformed {
				t.Errorf("%+q: exit code %d, %q, %+v; want it denied for %q, with the fix %q", e.In, code, report.Rules, report.Findings, e.Problem, e.Fix)
			}
			// Nor does a list with such an entry answer anything.
			if out, errs, code = run("egress", "explain", file, "example.com:443"); code != 1 || out != "" || !strings.Contains(errs, e.Problem) || !strings.Contains(errs, "fix: ") {
				t.Errorf("explain %+q: exit code %d: %s%s", e.In, code, out, errs)
			}
		})
	}
}

// A list of ten thousand entries, all in several spellings, is one list (M15).
func TestTheReleasedCommandTakesTenThousandEntries(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules")
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintln(&b, fmt.Sprintf([]string{"h%d.example.com", "H%d.Example.COM", "h%d.example.com.", "h%d.example.com:443"}[i%4], i/4))
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), released(t), "egress", "lint", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "warn: 2500 rules of 10000 entries; findings: 0 deny") {
		t.Errorf("%v: %.400s", err, out)
	}
}
