// Package docker opens Docker Engines, 20.10 to current, as a backend for
// sandboxes. See the documentation of [Options] for how an engine is found.
//
//	b, err := docker.Open(ctx, docker.Options{})
//
// An engine needs the guest once; Setup, or the command sandboxio setup docker,
// brings it there.
package docker

import (
	"context"
	"net/url"

	backend "github.com/sandboxio/terraform-provider-sandboxio/internal/backends/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type (
	// Options say which engine. The zero value finds it as the docker
	// command does.
	Options = backend.Options
	// SetupOptions say which binaries an engine is given.
	SetupOptions = backend.SetupOptions
	// SetupReport is what an engine has after Setup.
	SetupReport = backend.SetupReport
	// ContainerID is what driver.As gives for a sandbox.
	ContainerID = backend.ContainerID
)

// Name is the backend's name, and the scheme of its addresses.
const Name = backend.Name

// Open makes a backend. It does no I/O: the engine is looked for on first use.
func Open(ctx context.Context, opts Options) (driver.Backend, error) {
	b, err := backend.Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// FromURL reads docker://[host:port][/socket][?parameter=value].
func FromURL(u *url.URL) (Options, error) { return backend.FromURL(u) }

// Setup gives an engine what sandboxes need. It can be repeated.
func Setup(ctx context.Context, opts Options, so SetupOptions) (SetupReport, error) {
	return backend.Setup(ctx, opts, so)
}
