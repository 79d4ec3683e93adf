// Command ephemeral-run runs a Python program in a sandbox of its own, made
// from a template that Terraform applied, and destroys it.
//
//	terraform output -raw manifest > template.json
//	go run ./examples/ephemeral-run -manifest template.json program.py
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"github.com/sandboxio/terraform-provider-sandboxio/drivers/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func main() {
	manifest := flag.String("manifest", "template.json", "the template's manifest, from terraform output -raw manifest")
	tenant := flag.String("tenant", "", "whom the run is for")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: ephemeral-run [-manifest template.json] [-tenant name] program.py")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, *manifest, *tenant, flag.Arg(0))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ephemeral-run:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(ctx context.Context, manifest, tenant, program string) (code int, err error) {
	data, err := os.ReadFile(manifest)
	if err != nil {
		return 1, err
	}
	template, err := sandbox.ParseTemplate(data)
	if err != nil {
		return 1, err
	}
	source, err := os.Open(program)
	if err != nil {
		return 1, err
	}
	defer func() { _ = source.Close() }()

	// The same rules that judged the template at terraform plan.
	judge, err := policy.Load(ctx, policy.Options{})
	if err != nil {
		return 1, err
	}
	backend, err := docker.Open(ctx, docker.Options{})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()

	rt := sandbox.New(backend, sandbox.Options{
		Guard: judge.Guard(),
		Owner: "ephemeral-run",
		Sinks: []sandbox.Sink{sandbox.LogSink{Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil))}},
	})
	// One call: create, run, destroy. The program goes in by stdin, so that no
	// length and no quoting can go wrong.
	res, err := rt.Run(ctx, sandbox.Spec{Template: template, Tenant: tenant}, sandbox.Cmd{
		Args:  []string{"python3", "-"},
		Stdin: source,
	})
	if err != nil {
		return 1, err
	}
	_, _ = os.Stdout.Write(res.Stdout)
	_, _ = os.Stderr.Write(res.Stderr)
	return res.Exit.Code, nil
}
