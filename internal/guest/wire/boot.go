package wire

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Boot is all that PID 1 is told at its start, in its arguments, where anyone
// who may inspect the container reads it: nothing secret.
type Boot struct {
	// Owned sandboxes end with the connection on PID 1's stdin and stdout.
	// Others have no such connection and are reached by the bridge.
	Owned bool
	// Lifetime until PID 1 ends the sandbox by itself.
	Lifetime time.Duration
	// Longest is how far from its start the end can be moved, and never below
	// Lifetime.
	Longest time.Duration
	// UID and gid of the workload; never 0, and unique on the host, since
	// the kernel counts NProc per uid over the whole host.
	UID uint32
	// NProc bounds the workload's processes and threads. Below the
	// container's PID cap, so that PID 1 can still make its own.
	NProc int
	// DiskMiB bounds any single file of the workload; 0 does not.
	DiskMiB int64
	// Resolver is the gateway that names are asked of, where the kernel does
	// not bring questions there by itself; none on others, and without a
	// network.
	Resolver netip.Addr
}

// Args are PID 1's arguments for b.
func (b Boot) Args() []string {
	args := []string{
		"init",
		"owned=" + strconv.FormatBool(b.Owned),
		"lifetime=" + b.Lifetime.String(),
		"longest=" + b.Longest.String(),
		"uid=" + strconv.FormatUint(uint64(b.UID), 10),
		"nproc=" + strconv.Itoa(b.NProc),
		"disk=" + strconv.FormatInt(b.DiskMiB, 10),
	}
	if b.Resolver.IsValid() {
		args = append(args, "resolver="+b.Resolver.String())
	}
	return args
}

// ParseBoot reads what Args wrote, all of it and nothing else.
func ParseBoot(args []string) (Boot, error) {
	var b Boot
	if len(args) == 0 || args[0] != "init" {
		return b, fmt.Errorf("the first argument is not init")
	}
	seen := map[string]bool{}
	for _, arg := range args[1:] {
		k, v, _ := strings.Cut(arg, "=")
		if seen[k] {
			return b, fmt.Errorf("%q is given twice", k)
		}
		seen[k] = true
		var err error
		switch k {
		case "owned":
			b.Owned, err = strconv.ParseBool(v)
		case "lifetime":
			b.Lifetime, err = time.ParseDuration(v)
		case "longest":
			b.Longest, err = time.ParseDuration(v)
		case "uid":
			var uid uint64
			uid, err = strconv.ParseUint(v, 10, 32)
			b.UID = uint32(uid)
		case "nproc":
			b.NProc, err = strconv.Atoi(v)
		case "disk":
			b.DiskMiB, err = strconv.ParseInt(v, 10, 64)
		case "resolver":
			b.Resolver, err = netip.ParseAddr(v)
		default:
			return b, fmt.Errorf("%q is no argument of init", k)
		}
		if err != nil {
			return b, fmt.Errorf("%s: %w", k, err)
		}
	}
	delete(seen, "resolver")
	if len(seen) != 6 {
		return b, fmt.Errorf("init needs owned, lifetime, longest, uid, nproc and disk")
	}
	return b, b.Validate()
}

// Validate refuses a Boot without the limits that always apply.
func (b Boot) Validate() error {
	switch {
	case b.Lifetime <= 0:
		return fmt.Errorf("lifetime %v is not positive", b.Lifetime)
	case b.Longest < b.Lifetime:
		return fmt.Errorf("longest %v is below the lifetime %v", b.Longest, b.Lifetime)
	case b.UID == 0 || b.UID == 1<<32-1:
		return fmt.Errorf("uid %d cannot be the workload's", b.UID)
	case b.NProc <= 0:
		return fmt.Errorf("nproc %d is not positive", b.NProc)
	case b.Resolver.IsValid() && !b.Resolver.Is4():
		return fmt.Errorf("resolver %v is no IPv4 address", b.Resolver)
	case b.DiskMiB < 0 || b.DiskMiB > 1<<40:
		return fmt.Errorf("disk %d MiB is out of range", b.DiskMiB)
	}
	return nil
}

// How PID 1 exits tells why the sandbox ended.
const (
	ExitEnded    = 0   // asked to, by End or a signal to PID 1
	ExitBoot     = 70  // it could not set itself up; stderr says why
	ExitProtocol = 76  // the owner's first bytes were no greeting of this protocol
	ExitOwner    = 123 // the owner hung up, or stopped answering
	ExitDeadline = 124 // the lifetime was over
)
