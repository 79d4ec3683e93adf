// Package memory opens the backend that keeps sandboxes in this process. See
// package sandbox/memory for what it promises: it is for tests and for trying
// things out, and isolates nothing.
package memory

import (
	"context"
	"fmt"
	"net/url"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// Options choose a world.
type Options struct {
	// Name names a world that everybody in this process shares. The empty
	// name is one too.
	Name string
}

// Open opens a backend on the world of that name.
func Open(ctx context.Context, opts Options) (driver.Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return memory.Open(memory.Options{World: memory.Named(opts.Name)}), nil
}

// FromURL reads "memory://[name]". There are no parameters.
func FromURL(u *url.URL) (Options, error) {
	bad := func(problem, fix string) (Options, error) {
		return Options{}, driver.Invalid("dsn", problem, fix)
	}
	switch {
	case u.Scheme != "memory":
		return bad(fmt.Sprintf("the scheme is %q", u.Scheme), `write "memory://" or "memory://name"`)
	case u.User != nil:
		return bad("a user has no meaning", "remove what precedes the @")
	case u.RawQuery != "" || u.ForceQuery:
		for k := range u.Query() {
			return bad(fmt.Sprintf("unknown parameter %q", k), "remove it; there are none")
		}
		return bad("a malformed query", "remove what follows the ?")
	case u.Path != "" || u.Opaque != "" || u.Fragment != "" || u.Port() != "":
		return bad("more than a name", `write "memory://name"`)
	}
	return Options{Name: u.Hostname()}, nil
}
