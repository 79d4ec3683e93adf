//go:build dockertest

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// The example is run as a reader would run it: a manifest, a program, an
// engine that make test has set up.
func TestTheExampleRuns(t *testing.T) {
	image := os.Getenv("SANDBOXIO_TEST_IMAGE")
	if image == "" {
		t.Fatal("SANDBOXIO_TEST_IMAGE is not set: make test starts an engine and sets it")
	}
	manifest, err := sandbox.Template{Name: "example", Image: image, Reaper: "none", Trust: sandbox.Trusted("a test of our own")}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"template.json": string(manifest),
		"program.py":    "import os, sys\nprint('ran as', os.getuid() != 0)\nsys.exit(7)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, err := run(t.Context(), filepath.Join(dir, "template.json"), "tenant-1", filepath.Join(dir, "program.py"))
	if err != nil || code != 7 {
		t.Errorf("exit %d, %v, want 7", code, err)
	}
}
