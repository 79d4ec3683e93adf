// Package docker opens Docker Engines, 20.10 to current, as a backend for
// sandboxes.
//
//	b, err := docker.Open(ctx, docker.Options{})
//
// An engine needs the guest once, and each user whose programs were built from
// source the digest to trust: Setup, or the command sandboxio setup docker,
// brings the one there and writes the other into
// $XDG_CONFIG_HOME/sandboxio/guest.sha256 and gateway.sha256. A service has that
// done by its own user, or is given these two files.
package docker

import (
	"context"
	"net/url"

	backend "github.com/sandboxio/terraform-provider-sandboxio/internal/backends/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

type (
	// Options say which engine. The zero value finds it as the docker
	// command does. The fields:
	//
	//	Host         string // "unix:///var/run/docker.sock", "tcp://host:2376"; empty = DOCKER_HOST, the docker command's context, the known sockets
	//	Certs        string // directory with ca.pem, cert.pem and key.pem for tcp; empty = DOCKER_CERT_PATH
	//	Plain        bool   // allow tcp without TLS elsewhere than on loopback: who reaches such an engine is root on its host
	//	Image        string // what an empty Spec.Image means
	//	Runtime      string // the engine's runtime, as "runsc" for gVisor, whose tier is probed in each sandbox; empty = the engine's default
	//	StorageQuota bool   // the engine can cap a container's root, so that profile compat may be offered
	//	AddressPool  string // where the networks of allowlists get their addresses; empty = 198.18.0.0/15
	//	Uplink       string // a network of the engine that gateways go out by; empty = one of its own for each
	//	DNS          string // name server that gateways ask; empty = the engine's host's
	//	KeeperSocket string // the engine's socket on its own host, for reaper schedules; empty = the socket in Host
	//	KeeperImage  string // what reaper schedules run; empty = the image that Setup made
	Options = backend.Options
	// SetupOptions say which binaries an engine is given. The fields:
	//
	//	Guest    string       // path of sandboxio-guest
	//	Gateway  string       // path of sandboxio-gateway, for allowlists; empty leaves it out
	//	CLI      string       // path of a static linux sandboxio, for reaper schedules; empty leaves them out
	//	Progress func(string) // told of each step; may be nil
	SetupOptions = backend.SetupOptions
	// SetupReport is what an engine has after Setup. The fields:
	//
	//	Guest   string   // digest of the guest
	//	Volume  string   // that holds it
	//	Gateway string   // image of the gateway, for allowlists; empty without one
	//	Keeper  string   // image for reaper schedules; empty without a CLI
	//	Changed []string // what this call made; empty when all was there
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

// FromURL reads docker://[host:port][/socket][?parameter=value]. Parameters:
// tls, certs, image, runtime, storage_quota, address_pool, uplink, dns,
// keeper_socket, keeper_image.
func FromURL(u *url.URL) (Options, error) { return backend.FromURL(u) }

// Setup gives an engine what sandboxes need, and pins it for this user. It can
// be repeated.
func Setup(ctx context.Context, opts Options, so SetupOptions) (SetupReport, error) {
	return backend.Setup(ctx, opts, so)
}
