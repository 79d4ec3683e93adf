package drivertest

import (
	"context"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Harness is what a driver's test hands to the suite. All but Open may be
// zero; a check that lacks what it needs counts as skipped. Its functions are
// called from several goroutines when Parallel is more than one.
type Harness struct {
	// Open opens one more backend on the same provider, which knows nothing of
	// the others but what the provider shows: it stands for another process.
	// The suite closes it.
	Open func(ctx context.Context) (driver.Backend, error)

	// Owner is the owner fact of every sandbox that the suite makes, so that
	// Leftovers can tell them from others'; empty means "drivertest". Make it
	// unique to the run where several use one provider.
	Owner string

	// Image is what the sandboxes run, as driver.ParseImage accepts it; empty
	// means the backend's default.
	Image string

	// Programs says the probes on that image; nil means Shell, which needs sh,
	// coreutils and python3 in it.
	Programs Programs

	// Canary is a place on the network that is alive.
	Canary Canary

	// Near is a place that the process of the sandbox's owner reaches, from
	// which mode Proxy goes out. The zero value is a listener of the suite's
	// own, on loopback.
	Near Canary

	// Leftovers looks past the driver for everything that carries Owner and is
	// left at the provider (sandboxes, volumes, networks, helpers), one line
	// each. It is asked last, until it is empty or ten seconds have passed.
	Leftovers func(ctx context.Context) ([]string, error)

	// Traces looks past the driver for everything that the provider shows of
	// a sandbox that runs: its configuration, logs, events and processes.
	// What it gives is searched for secrets.
	Traces func(ctx context.Context, id string) ([]byte, error)

	// Kernel tells, past the driver, what the "kernel" probe prints on the
	// host that the sandboxes run on: with Shell, its
	// /proc/sys/kernel/random/boot_id.
	Kernel func(ctx context.Context) (string, error)

	// Parallel is how many checks Examine runs at once; zero is one. Checks
	// of time and load are only as good as the machine has room. Run ignores
	// it.
	Parallel int

	// MaySkip says why checks may be skipped. First-party drivers leave it
	// empty: then a skipped check fails the run.
	MaySkip string
}

// Canary answers every TCP connection with a line of text. It stands where a
// sandbox would reach it if nothing held: beside it on the provider's default
// network, or on the internet.
type Canary struct {
	Addr string // "address:port", an IP address
	Host string // "name:port" of the same place; needed for host rules only

	// Control reaches it from where no policy applies, so that the proof that
	// a sandbox does not can fail.
	Control func(ctx context.Context) error
}

// Probe is a word of the vocabulary that the checks are written in.
type Probe string

const (
	Args       Probe = "args"         // …: each argument, ended by a NUL
	Getenv     Probe = "getenv"       // NAME: the variable's bytes
	Environ    Probe = "environ"      // every variable as NAME=value, ended by a NUL, as often as it is there
	Hash       Probe = "sha256"       // NAME: SHA-256 of the variable, in hex
	Pwd        Probe = "pwd"          // the working directory
	Exit       Probe = "exit"         // CODE
	Raise      Probe = "raise"        // TERM: end by that signal
	Swallow    Probe = "swallow"      // read stdin to its end, print how many bytes came
	Copy       Probe = "cat"          // stdin, or FILE, to stdout
	Both       Probe = "both"         // OUT ERR: to stdout and stderr
	Bytes      Probe = "bytes"        // all 256 of them
	Flood      Probe = "flood"        // N: that many NULs
	Count      Probe = "count"        // N: the numbers from 1 to it, a line each
	Hang       Probe = "hang"         // "ready", then nothing for long
	Stubborn   Probe = "stubborn"     // with any arguments: ignore every signal that can be, "ready", then nothing for long
	Deaf       Probe = "deaf"         // close stdin, "ready", then nothing for long
	Beat       Probe = "beat"         // FILE: append to it for ever
	Daemon     Probe = "spawn-daemon" // FILE: start a beat in another session, "ready", then nothing for long
	Jobs       Probe = "spawn-job"    // FILE: start a beat in a process group of its own, "ready", then nothing for long
	Leave      Probe = "leave"        // "hi", and end while a child holds stdout
	Write      Probe = "write"        // FILE: a byte; exits with the errno
	Link       Probe = "link"         // TARGET FILE
	Fifo       Probe = "fifo"         // FILE
	Fetch      Probe = "fetch"        // HOST:PORT: what is read from it; exits 7 when it cannot be reached
	Proxied    Probe = "proxied"      // HOST:PORT: what is read from it through the proxy that HTTP_PROXY names; exits 7 when it cannot be reached
	Resolve    Probe = "resolve"      // NAME; exits 6 when there is no such name
	Fork       Probe = "fork"         // N: try so many processes at once, print how many there were
	Hog        Probe = "hog"          // MIB: hold so much memory, then print "held"
	Fill       Probe = "fill"         // FILE MIB: write so much, print how much was; exits with the errno; removes it
	Burn       Probe = "burn"         // compute for a second, print the CPU time in ms
	Cmdlines   Probe = "cmdlines"     // the command line of every program that is seen, a line each
	Status     Probe = "status"       // /proc/self/status
	Kernel     Probe = "kernel"       // what tells the running kernel from another
	Missing    Probe = "no-such-program"
	Unrunnable Probe = "/etc/passwd" // a file that may not be executed
)

// Probes lists every probe that has a program, for who writes a table.
func Probes() []Probe {
	return []Probe{Args, Getenv, Environ, Hash, Pwd, Exit, Raise, Swallow, Copy, Both, Bytes, Flood, Count, Hang, Stubborn, Deaf, Beat, Daemon, Jobs, Leave,
		Write, Link, Fifo, Fetch, Proxied, Resolve, Fork, Hog, Fill, Burn, Status, Cmdlines, Kernel}
}

// Programs says each probe as the head of an argv; its arguments follow. A
// probe that is not in the table is a program of its own name.
type Programs map[Probe][]string

// Direct takes each probe for a program of that name.
func Direct() Programs { return Programs{} }

// Argv says one probe with its arguments.
func (p Programs) Argv(probe Probe, args ...string) []string {
	if p == nil {
		p = Shell()
	}
	head, ok := p[probe]
	if !ok {
		head = []string{string(probe)}
	}
	return append(slices.Clone(head), args...)
}
