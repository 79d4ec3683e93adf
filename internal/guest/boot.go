package guest

import "github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"

const (
	// Protocol is the version that host and guest must share.
	Protocol = wire.Protocol
	// Dir is where the helper volume is mounted, read-only.
	Dir = "/.sandboxio"
	// Binary is the entrypoint of every sandbox.
	Binary = Dir + "/sandboxio-guest"
)

// Boot is what PID 1 is told in its arguments.
type Boot = wire.Boot

// ParseBoot reads Boot.Args.
func ParseBoot(args []string) (Boot, error) { return wire.ParseBoot(args) }

// BridgeArgs is the command that joins its stdin and stdout to PID 1. It must
// run inside the sandbox, as uid 0.
func BridgeArgs() []string { return []string{Binary, "bridge"} }

// How PID 1 exits tells why the sandbox ended.
const (
	ExitEnded    = wire.ExitEnded
	ExitBoot     = wire.ExitBoot
	ExitProtocol = wire.ExitProtocol
	ExitOwner    = wire.ExitOwner
	ExitDeadline = wire.ExitDeadline
)

type (
	// Report is what [Client.Attest] measures.
	Report = wire.Report
	// Mount is a mount as a Report shows it.
	Mount = wire.Mount
	// Cgroup is the limits that a Report shows.
	Cgroup = wire.Cgroup
)

// What a number of a [Report] may say instead of a figure.
const (
	Unlimited = wire.Unlimited
	Unknown   = wire.Unknown
)
