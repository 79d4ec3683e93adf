//go:build linux

package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheDemoTellsHowToStopTheEngineThatItStarted asks the script that make demo
// ends with, about a process that looks like the daemon it would have started.
func TestTheDemoTellsHowToStopTheEngineThatItStarted(t *testing.T) {
	run := t.TempDir()
	pidfile := filepath.Join(run, "sandboxio-dockerd.pid")
	tell := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "../../scripts/ensure-docker.sh", "tell")
		cmd.Env = append(os.Environ(), "SANDBOXIO_RUN="+run)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if said := tell(); said != "" {
		t.Errorf("nothing was started, and it says %q", said)
	}
	start := func(args ...string) int {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", "echo; read _", "sh"}, args...)...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = in.Close()
			_ = cmd.Wait() // its status says nothing
		})
		if _, err := out.Read(make([]byte, 1)); err != nil { // it is sh by now
			t.Fatal(err)
		}
		if err := os.WriteFile(pidfile, fmt.Appendln(nil, cmd.Process.Pid), 0o600); err != nil {
			t.Fatal(err)
		}
		return cmd.Process.Pid
	}
	start("--pidfile=/elsewhere")
	if said := tell(); said != "" {
		t.Errorf("the pid is somebody else's by now, and it says %q", said)
	}
	pid := start("--pidfile=" + pidfile)
	for said, want := range map[string]string{tell(): fmt.Sprintf("kill %d ", pid), tell() + " ": "unix:///var/run/docker.sock"} {
		if !strings.Contains(said, want) || !strings.Contains(said, "keeps running") {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}
