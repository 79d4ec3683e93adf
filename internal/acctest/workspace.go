package acctest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

// Workspace is a directory in which a test runs terraform commands itself, for
// what the steps of a test case cannot say: plan files, -replace, for_each,
// traces. The provider runs in this process and is reached by reattachment.
type Workspace struct {
	Dir string
	Env []string // more for the commands
}

// NewWorkspace starts the provider and initialises a directory with the
// configuration, in which "sandboxio" is the provider under test.
func NewWorkspace(t *testing.T, opts provider.Options, config string) *Workspace {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reattach, closed := make(chan *plugin.ReattachConfig), make(chan struct{})
	opts.Version = "test"
	serve := func() tfprotov6.ProviderServer { return providerserver.NewProtocol6(provider.New(opts))() }
	failed := make(chan error, 1)
	go func() {
		failed <- tf6server.Serve(provider.Address, serve, tf6server.WithDebug(ctx, reattach, closed),
			tf6server.WithGoPluginLogger(hclog.NewNullLogger()), tf6server.WithLoggingSink(t), tf6server.WithoutLogStderrOverride())
	}()
	var at *plugin.ReattachConfig
	select {
	case at = <-reattach:
	case err := <-failed:
		cancel()
		t.Fatalf("the provider does not serve: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		<-closed
	})
	addresses, err := json.Marshal(map[string]any{provider.Address: map[string]any{
		"Protocol": at.Protocol, "ProtocolVersion": at.ProtocolVersion, "Pid": at.Pid, "Test": at.Test,
		"Addr": map[string]string{"Network": at.Addr.Network(), "String": at.Addr.String()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := &Workspace{Dir: t.TempDir(), Env: []string{"TF_REATTACH_PROVIDERS=" + string(addresses), "TF_IN_AUTOMATION=1"}}
	w.Write(t, "versions.tf", required)
	w.Write(t, "main.tf", config)
	w.tidy(t)
	w.Must(t, "init", "-no-color")
	return w
}

// Write puts a file into the directory.
func (w *Workspace) Write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Read gives a file of the directory.
func (w *Workspace) Read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Terraform runs a command and gives what it said on both streams.
func (w *Workspace) Terraform(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := w.command(&out, &out, args...)
	return out.String(), err
}

// command runs one; a test's cleanup may too, when the test's context is over.
func (w *Workspace) command(stdout, stderr io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Getenv("TF_ACC_TERRAFORM_PATH"), args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.Dir, append(os.Environ(), w.Env...), stdout, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("terraform %v: %w", args, err)
	}
	return nil
}

// Background starts a command, whose words come on done when it ends, and gives
// the function that interrupts it as Ctrl-C does.
func (w *Workspace) Background(t *testing.T, done chan<- string, args ...string) (interrupt func()) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(os.Getenv("TF_ACC_TERRAFORM_PATH"), args...) //nolint:noctx // a context would kill it instead of interrupting
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.Dir, append(os.Environ(), w.Env...), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // its words say how it ended
		done <- out.String()
	}()
	return func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
}

// Output gives the value of an output.
func (w *Workspace) Output(t *testing.T, name string) string {
	t.Helper()
	var out, said bytes.Buffer
	if err := w.command(&out, &said, "output", "-raw", name); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	return out.String()
}

// tidy destroys what a test that failed midway left behind.
func (w *Workspace) tidy(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			_ = w.command(io.Discard, io.Discard, "destroy", "-auto-approve", "-input=false", "-refresh=false")
		}
	})
}

// Must is Terraform for a command that has to succeed.
func (w *Workspace) Must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.Terraform(t, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// Apply applies without asking.
func (w *Workspace) Apply(t *testing.T, args ...string) string {
	t.Helper()
	return w.Must(t, append([]string{"apply", "-auto-approve", "-no-color", "-input=false"}, args...)...)
}

// Destroy destroys without asking.
func (w *Workspace) Destroy(t *testing.T, args ...string) string {
	t.Helper()
	return w.Must(t, append([]string{"destroy", "-auto-approve", "-no-color", "-input=false"}, args...)...)
}

// Empty fails the test unless a plan has nothing to do.
func (w *Workspace) Empty(t *testing.T, args ...string) {
	t.Helper()
	out, err := w.Terraform(t, append([]string{"plan", "-detailed-exitcode", "-no-color", "-input=false"}, args...)...)
	if err != nil {
		t.Fatalf("the plan is not empty: %v\n%s", err, out)
	}
}

// Deny fails the test unless the command fails, and gives what it said.
func (w *Workspace) Deny(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.Terraform(t, args...)
	if err == nil {
		t.Fatalf("terraform %v succeeded\n%s", args, out)
	}
	return out
}
