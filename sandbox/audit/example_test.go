package audit_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/audit"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// An audit file that every operation waits for, and a log that none does.
func Example() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	name := filepath.Join(dir, "audit.jsonl")
	file, err := audit.OpenFile(name, audit.FileOptions{})
	if err != nil {
		panic(err)
	}
	rt := sandbox.New(memory.Open(memory.Options{}), sandbox.Options{
		Unguarded: "an example",
		Sinks:     []sandbox.Sink{file, audit.BestEffort{Sink: sandbox.LogSink{Logger: slog.New(slog.DiscardHandler)}}},
	})
	if _, err := rt.Run(context.Background(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"true"}}); err != nil {
		panic(err)
	}
	head := file.Head() // note it where the writer cannot reach
	if err := file.Close(); err != nil {
		panic(err)
	}

	f, err := os.Open(name)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	report, err := audit.Verify(f, audit.VerifyOptions{Head: head.Hash})
	fmt.Println(report.Records, "records,", report.After, "after the head:", err)
	// Output: 3 records, 0 after the head: <nil>
}
