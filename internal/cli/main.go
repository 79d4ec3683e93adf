package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Streams are the command's standard streams.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// app is what every subcommand shares.
type app struct {
	Streams
	version string
	backend string // DSN
	json    bool
	printed bool // a result as JSON
}

// Main runs the command and gives its exit code.
func Main(ctx context.Context, s Streams, version string, args []string) int {
	a := &app{Streams: s, version: version}
	root := a.root() //nolint:contextcheck // commands get ctx when they run
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	a.fail(err)
	if errors.Is(err, driver.CodeDenied) {
		return 2
	}
	return 1
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sandboxio",
		Short: "Safe sandboxes for AI agents, as code",
		Long: `Sandboxes that are closed by default, provably so in review, and never forgotten.

A container is not a boundary for hostile code: on the container tier sandboxio
keeps what it enforces (no network, caps, lifetime, no privileges) but a kernel
bug escapes it. For untrusted multi-tenant code use a microVM tier.

Exit codes: 0 done, 1 failed, 2 denied or refused; a command with more, or with
others, tells them in its --help.

With --json a failure is one JSON object too: "errors", each with code, field,
message and fix, unless a result was printed.`,
		Version:           a.version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetVersionTemplate("sandboxio {{.Version}}\n")
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.AddCommand(a.versionCommand(), a.doctorCommand(), a.setupCommand(), a.reapCommand(), a.policyCommand(), a.egressCommand(), a.inspectCommand(), a.demoCommand(), a.auditCommand(), a.explainCommand(), a.keeperCommand())
	takeArguments(root)
	root.SetFlagErrorFunc(flagError)
	return root
}

// backendFlag adds --backend to c.
func (a *app) backendFlag(c *cobra.Command) {
	dsn := os.Getenv("SANDBOXIO_BACKEND")
	if dsn == "" {
		dsn = "docker://"
	}
	c.Flags().StringVar(&a.backend, "backend", dsn, "address of the backend, as docker:///var/run/docker.sock (also SANDBOXIO_BACKEND)")
}

// jsonFlag adds --json to c.
func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print the result as JSON")
}

// open makes the estate of --backend.
func (a *app) open(ctx context.Context) (*estate.Estate, error) {
	c, err := estate.FromDSN(a.backend)
	if err != nil {
		return nil, err
	}
	return estate.Open(ctx, c)
}

// print writes v as JSON, or else what text writes.
func (a *app) print(v any, text func(io.Writer)) error {
	if !a.json {
		text(a.Out)
		return nil
	}
	a.printed = true
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// style gives the escape sequences for w: none unless it is a terminal that
// wants them.
func (a *app) style(w io.Writer) (bold, plain string) {
	if !isTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return "", ""
	}
	return "\x1b[1m", "\x1b[0m"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}
