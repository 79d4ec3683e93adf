// Command sandboxio sets up backends, looks after sandboxes and shows the
// whole idea at work. See sandboxio --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/cli"
)

var version = "0.1.0-dev" // set by the release build

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, version, os.Args[1:])
	stop()
	os.Exit(code)
}
