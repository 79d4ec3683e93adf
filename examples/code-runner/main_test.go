//go:build dockertest

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/audit"
)

const program = `
import os, sys
import helper
open("out/result.txt", "w").write(helper.double(open("data/in.txt").read()))
print("arguments", sys.argv[1:])
print("a secret of", len(os.environ["CODE_RUNNER_SECRET"]), file=sys.stderr)
sys.exit(3)
`

// newJob is what a user would ask for: a directory with a module and data in
// it, and a program beside it.
func newJob(t *testing.T) job {
	t.Helper()
	image := os.Getenv("SANDBOXIO_TEST_IMAGE")
	if image == "" {
		t.Fatal("SANDBOXIO_TEST_IMAGE is not set: make test starts an engine and sets it")
	}
	top := t.TempDir()
	for name, text := range map[string]string{
		"files/helper.py":   "def double(s): return s + s\n",
		"files/data/in.txt": "pâté\n",
		"program.py":        program,
	} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return job{
		image:    image,
		dir:      filepath.Join(top, "files"),
		program:  filepath.Join(top, "program.py"),
		args:     []string{"one", "two"},
		audit:    filepath.Join(top, "audit.jsonl"),
		trust:    "a test of our own",
		lifetime: time.Minute,
		timeout:  30 * time.Second,
		results:  "out",
		to:       filepath.Join(top, "results"),
	}
}

// Files go in, results come out, the exit code is the program's own, and the
// audit file is whole and does not hold the secret.
func TestTheExampleRuns(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	t.Setenv("CODE_RUNNER_SECRET", secret)
	j := newJob(t)
	j.secret, j.extend = "CODE_RUNNER_SECRET", 2*time.Minute
	var stdout, stderr bytes.Buffer
	code, err := run(t.Context(), j, &stdout, &stderr)
	if err != nil || code != 3 {
		t.Fatalf("exit %d, %v, want 3\n%s", code, err, &stderr)
	}
	if got, want := stdout.String(), "arguments ['one', 'two']\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	for _, want := range []string{"a secret of 28\n", "isolation: container", "extended until"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %q in %s", want, &stderr)
		}
	}
	if got, err := os.ReadFile(filepath.Join(j.to, "result.txt")); err != nil || string(got) != "pâté\npâté\n" {
		t.Errorf("result %q, %v", got, err)
	}

	kept, err := os.ReadFile(j.audit)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(kept, []byte(secret)) {
		t.Error("the secret is in the audit file")
	}
	if report, err := audit.Verify(bytes.NewReader(kept), audit.VerifyOptions{}); err != nil || report.Records == 0 {
		t.Errorf("audit file: %+v, %v", report, err)
	}
}

func TestAProgramThatTakesTooLong(t *testing.T) {
	j := newJob(t)
	j.timeout = 10 * time.Second
	if err := os.WriteFile(j.program, []byte("import time\nprint('began', flush=True)\ntime.sleep(60)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code, err := run(t.Context(), j, &stdout, &stderr)
	if code != exitTimeout || !errors.Is(err, sandbox.CodeTimeout) {
		t.Errorf("exit %d, %v, want %d", code, err, exitTimeout)
	}
	if got := stdout.String(); got != "began\n" {
		t.Errorf("stdout %q, want what was written until then", got)
	}
}

func TestThePolicyDenies(t *testing.T) {
	for rule, change := range map[string]func(*job){
		"SBX-IMG-001": func(j *job) { j.image = "python:3.12" },
		"SBX-RES-001": func(j *job) { j.lifetime = 5 * time.Hour },
	} {
		t.Run(rule, func(t *testing.T) {
			j := newJob(t)
			change(&j)
			var stdout, stderr bytes.Buffer
			code, err := run(t.Context(), j, &stdout, &stderr)
			denied, ok := errors.AsType[*sandbox.DeniedError](err)
			if code != exitOurs || !ok {
				t.Fatalf("exit %d, %v, want a denial", code, err)
			}
			if len(denied.Verdict.Findings) == 0 || denied.Verdict.Findings[0].Rule != rule {
				t.Errorf("findings %+v, want %s first", denied.Verdict.Findings, rule)
			}
		})
	}
}
