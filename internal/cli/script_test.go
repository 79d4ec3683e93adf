package cli_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/cli"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/audit"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"sandboxio": func() {
			os.Exit(cli.Main(context.Background(), cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, "1.2.3", os.Args[1:]))
		},
	})
}

// The scripts are the command's specification: one file a topic.
func TestScripts(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("EXAMPLES", examples)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"record": record, "shorten": shorten, "genkey": genkey, "soon": soon, "job": job},
	})
}

// record FILE OP... appends a record of each op to an audit file and puts its
// head into $HEAD.
func record(ts *testscript.TestScript, _ bool, args []string) {
	f, err := audit.OpenFile(ts.MkAbs(args[0]), audit.FileOptions{})
	ts.Check(err)
	for _, op := range args[1:] {
		ts.Check(f.Record(context.Background(), sandbox.Record{Op: op, Backend: "memory"}))
	}
	ts.Setenv("HEAD", f.Head().Hash)
	ts.Check(f.Close())
}

// shorten FILE N takes the last N bytes away.
func shorten(ts *testscript.TestScript, _ bool, args []string) {
	fi, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), fi.Size()-n))
}

// job FILE NAME OUT writes what a job of a GitLab pipeline runs as a script.
func job(ts *testscript.TestScript, _ bool, args []string) {
	raw, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var jobs map[string]struct {
		Variables map[string]string
		Script    []string
	}
	ts.Check(yaml.Unmarshal(raw, &jobs))
	j, ok := jobs[args[1]]
	if !ok {
		ts.Fatalf("no job %s", args[1])
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(j.Variables)) {
		fmt.Fprintf(&b, ": \"${%s=%s}\"\n", name, j.Variables[name])
	}
	b.WriteString(strings.Join(j.Script, "\n") + "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(b.String()), 0o600))
}
