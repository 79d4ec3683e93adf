package docker

import (
	"context"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/outlet"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Backend is a Docker Engine. It connects on first use.
type Backend struct {
	opts Options
	info driver.Info

	candidates func() ([]endpoint, error) // where to look for the engine
	connecting chan struct{}              // held while looking for the engine
	closed     atomic.Bool
	cli        atomic.Pointer[client.Client]
	endpoint   atomic.Pointer[endpoint]
	host       atomic.Pointer[host]

	removeLimit, createGrace, searchLimit, routedLimit time.Duration

	images   imageCache
	helper   helperCheck
	gateways gatewayCheck
	looked   lookCache
	outlet   outlet.Options // Protect is found at each creation
}

var (
	_ driver.Backend   = (*Backend)(nil)
	_ driver.Clock     = (*Backend)(nil)
	_ driver.Scheduler = (*Backend)(nil)
	_ driver.Aser      = (*Backend)(nil)
)

// Open makes a backend. It does no I/O; ctx is not kept.
func Open(_ context.Context, opts Options) (*Backend, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir()
	return open(opts, environment{os.Getenv, home, runtime.GOOS}), nil
}

func open(opts Options, env environment) *Backend {
	caps := []driver.Capability{driver.CanAttach, driver.CanDetach, driver.CanEgressCIDR, driver.CanEgressHost, driver.CanEgressProxy, driver.CanExtend, driver.CanFiles, driver.CanLearn,
		driver.CanList, driver.CanSchedule, driver.CanStrict}
	if promised(opts.Runtime) < driver.UserKernel { // gVisor counts no kills for want of memory
		caps = append(caps, driver.CanReportOOM)
	}
	if opts.StorageQuota {
		caps = append(caps, driver.CanCompat)
	}
	slices.Sort(caps)
	b := &Backend{
		opts:        opts,
		info:        driver.Info{Name: Name, Capabilities: caps, Isolation: promised(opts.Runtime), DefaultImage: opts.Image},
		connecting:  make(chan struct{}, 1),
		removeLimit: removeLimit, createGrace: createGrace, searchLimit: searchLimit, routedLimit: routedLimit,
	}
	b.candidates = func() ([]endpoint, error) { return opts.candidates(env) }
	return b
}

// Info says what the backend is; it does no I/O.
func (b *Backend) Info() driver.Info {
	info := b.info
	info.Capabilities = slices.Clone(info.Capabilities)
	return info
}

// As gives the engine's client, once there is one, and, within this module, how
// proxies in this process reach the world: to be changed before the first
// sandbox is made.
func (b *Backend) As(target any) bool {
	switch to := target.(type) {
	case **client.Client:
		*to = b.cli.Load()
		return *to != nil
	case **outlet.Options:
		*to = &b.outlet
		return true
	}
	return false
}

// Close closes idle connections. Sandboxes
// stay as they are.
func (b *Backend) Close() error {
	b.closed.Store(true)
	if cli := b.cli.Load(); cli != nil {
		return cli.Close()
	}
	return nil
}
