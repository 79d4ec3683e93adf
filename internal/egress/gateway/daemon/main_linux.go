package daemon

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/relay"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// How a gateway exits.
const (
	exitEnded   = 0 // its owner, its lifetime, or a signal
	exitRefused = 1
)

// Main runs the program with its arguments, and gives its exit code.
func Main(args []string) int {
	if len(args) == 1 && args[0] == relay.Arg {
		return relay.Main()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	out := &speaker{w: os.Stdout}
	if err := run(ctx, args, out); err != nil {
		out.say(boot.Line{Refused: refused(err)})
		return exitRefused
	}
	return exitEnded
}

func run(ctx context.Context, args []string, out *speaker) error {
	if len(args) == 1 && args[0] == boot.HostArgs()[0] {
		h, err := host()
		if err == nil {
			out.say(boot.Line{Host: &h})
		}
		return err
	}
	cfg, err := boot.ParseArgs(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Lifetime)
	defer cancel()
	p, ready, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	if cfg.Owned {
		go func() { // ends with the process at the latest: a read of stdin cannot be stopped
			p.hear(ctx, os.Stdin)
			cancel()
		}()
	}
	out.say(boot.Line{Ready: &ready})
	p.serve(ctx, out)
	return nil
}

// refused is an error for who started the gateway.
func refused(err error) *boot.Refused {
	r := &boot.Refused{Code: driver.CodeInternal, Text: err.Error()}
	if e, ok := errors.AsType[*driver.Error](err); ok {
		r.Code, r.Field, r.Hint = e.Code, e.Field, e.Hint
		if e.Err != nil {
			r.Text = e.Err.Error()
		}
	}
	if len(r.Text) > maxText {
		r.Text = r.Text[:maxText]
	}
	return r
}

const maxText = 4 << 10

// every is how often what was refused is told, when there is something new.
const every = time.Second
