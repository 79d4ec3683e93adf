package driver

import (
	"slices"
	"time"
)

// Info is what a backend is and can do. It is fixed when the backend is
// opened and needs no I/O.
type Info struct {
	Name         string       // "docker", "memory", …
	Capabilities []Capability // sorted
	Isolation    Isolation    // the weakest a sandbox of it can turn out to have
	DefaultImage string       // what an empty Spec.Image means; "" when there is none
	Simulated    bool         // it proves nothing: a fake
}

// Can reports whether the backend declares c.
func (i Info) Can(c Capability) bool { return slices.Contains(i.Capabilities, c) }

// Capability is something a backend may be able to do. A backend refuses what
// it does not declare with the code unsupported, and keeps what it declares:
// drivertest proves both.
type Capability string

const (
	CanAttach      Capability = "attach"       // join a sandbox from another process
	CanCompat      Capability = "compat"       // Profile Compat
	CanDetach      Capability = "detach"       // Spec.Detached
	CanEgressCIDR  Capability = "egress.cidr"  // rules with a Prefix, in mode Transparent
	CanEgressHost  Capability = "egress.host"  // rules with a Host, in mode Transparent
	CanEgressProxy Capability = "egress.proxy" // rules of either kind, in mode Proxy
	CanExpose      Capability = "expose"       // Network.Expose
	CanExtend      Capability = "extend"       // Extender
	CanFiles       Capability = "files"        // Sandbox.Files
	CanLearn       Capability = "egress.learn" // Denier and Network.Learn
	CanList        Capability = "list"         // List and Clock
	CanMultiTenant Capability = "multi-tenant" // Spec.MultiTenant
	CanReportOOM   Capability = "oom"          // Exit.OOM is never nil
	CanSchedule    Capability = "schedule"     // Scheduler
	CanStrict      Capability = "strict"       // Profile Strict: read-only root, capped writable space
)

// Capabilities lists every capability there is, sorted.
func Capabilities() []Capability {
	return []Capability{CanAttach, CanCompat, CanDetach, CanEgressCIDR, CanEgressHost, CanLearn, CanEgressProxy, CanExpose, CanExtend,
		CanFiles, CanList, CanMultiTenant, CanReportOOM, CanSchedule, CanStrict}
}

// Plan is what Check promises: how each part of the order will be enforced.
type Plan struct {
	Isolation Isolation   `json:"isolation"` // what will be measured, at least
	Network   string      `json:"network"`   // mechanism of the default deny, as "network mode none"
	Rules     []Mechanism `json:"rules"`     // one per egress rule, in order
	Caps      []Mechanism `json:"caps"`      // cpu, memory, disk, pids, lifetime, …
	Warnings  []string    `json:"warnings"`
}

// Mechanism is how one thing is enforced and where that ends.
type Mechanism struct {
	Name   string `json:"name"`   // the rule or cap
	By     string `json:"by"`     // "none", "ip-set", "dns+sni+ip", "proxy", "provider:…", "cgroup pids", "tmpfs size=…"
	Limits string `json:"limits"` // what it does not stop; "" when nothing is known
}

// State is where in its life a sandbox is.
type State string

const (
	StateCreated  State = "created" // made, never started
	StateRunning  State = "running"
	StatePaused   State = "paused"
	StateExited   State = "exited"
	StateRemoving State = "removing"
)

// Status is one sandbox as its backend shows it.
type Status struct {
	ID       string // what Attach takes
	Name     string
	Backend  string
	State    State
	Image    string
	Created  time.Time
	StartBy  time.Time // when one that is not started has failed; zero = StartGrace after Created
	Ended    time.Time // zero unless exited
	Deadline time.Time // when it ends by itself and may be reaped; never zero
	Detached bool
	Facts    Facts
	Labels   map[string]string // the caller's own

	// Known after Create and Attach by the process that measured it, zero in
	// lists.
	Isolation Isolation
	Evidence  Evidence
}

// Schedule is a reaper schedule: which sandboxes to sweep, and when. Exactly
// one of Interval and Cron is set.
type Schedule struct {
	Name     string            `json:"name"`
	Interval time.Duration     `json:"interval"` // at least 1 s
	Cron     string            `json:"cron"`     // five fields, UTC
	Labels   map[string]string `json:"labels"`   // swept: sandboxes whose native labels contain all of these; empty = those whose reaper fact is Name
	MaxAge   time.Duration     `json:"max_age"`  // a sandbox older than this is swept whatever its deadline; zero = deadline only
	DryRun   bool              `json:"dry_run"`  // report, kill nothing
}

// ScheduleStatus is a schedule as it runs at the backend.
type ScheduleStatus struct {
	Schedule
	ID      string // the keeper's id at the provider
	Running bool
	Image   string // what the keeper runs
}
