package policy

// SchemaID names the layout of the input document.
const SchemaID = "sandboxio.policy.input/v1"

// Kind is what is judged.
type Kind string

const (
	KindTemplate       Kind = "template"
	KindSandbox        Kind = "sandbox" // a sandbox about to be created, by Terraform or by a program
	KindNetworkPolicy  Kind = "network_policy"
	KindReaperSchedule Kind = "reaper_schedule"
)

var kinds = []Kind{KindTemplate, KindSandbox, KindNetworkPolicy, KindReaperSchedule}

// Stage is when it is judged. Values may be unknown in a plan and in a plan
// file; in the others an unknown value denies.
type Stage string

const (
	StagePlan    Stage = "plan"
	StageFile    Stage = "file"
	StageApply   Stage = "apply"
	StageRuntime Stage = "runtime"
)

var stages = []Stage{StagePlan, StageFile, StageApply, StageRuntime}

// Input is one thing to judge. Paths in Unknown and Sensitive, as those in
// findings, are relative to the resource: "network.egress[2].cidr",
// `env["TOKEN"]`, "image".
type Input struct {
	Kind      Kind
	Stage     Stage
	Address   string // of the Terraform resource; "" in a program
	Resource  Resource
	Unknown   []string // not known yet: never judged as if missing
	Sensitive []string // known, but never shown to a rule
}

// Resource is the configuration under judgement, with every default resolved.
// A scalar that is missing is null in the document, a list that is missing is
// empty; only what Input.Unknown names is absent. A kind fills the part it
// has: a network policy has only Network, a reaper schedule only Backend,
// Labels and Schedule.
type Resource struct {
	Backend         *string           `json:"backend"`
	Image           Image             `json:"image"`
	Isolation       *string           `json:"isolation"` // the tier that is certain: the floor asked for, or what the backend promises, whichever is higher
	Trust           *string           `json:"trust"`     // "unstated", "untrusted", "trusted"
	TrustReason     *string           `json:"trust_reason"`
	MultiTenant     *bool             `json:"multi_tenant"`
	Profile         *string           `json:"profile"`
	LifetimeSeconds *int64            `json:"lifetime_seconds"`
	Resources       Caps              `json:"resources"`
	Network         Network           `json:"network"`
	Env             []Env             `json:"env"`
	Secrets         []string          `json:"secrets"` // names
	Labels          map[string]string `json:"labels"`
	Reaper          *string           `json:"reaper"`
	Detached        *bool             `json:"detached"`
	Owner           *string           `json:"owner"`
	Tenant          *string           `json:"tenant"`
	Schedule        Schedule          `json:"schedule"`
}

// Image is a reference to an image, taken apart.
type Image struct {
	Ref        *string `json:"ref"`
	Registry   *string `json:"registry"`
	Repository *string `json:"repository"`
	Tag        *string `json:"tag"`
	Digest     *string `json:"digest"`
	Pinned     *bool   `json:"pinned"`
}

// Caps are the limits of a sandbox.
type Caps struct {
	CPUMillis *int64 `json:"cpu_millis"`
	MemoryMiB *int64 `json:"memory_mib"`
	DiskMiB   *int64 `json:"disk_mib"`
	PIDs      *int64 `json:"pids"`
}

// Network is what a sandbox may reach.
type Network struct {
	Mode   *string  `json:"mode"`
	Learn  *bool    `json:"learn"`
	Expose []int64  `json:"expose"`
	Egress []Egress `json:"egress"`
}

// Egress is one rule of the allowlist. Judge brings it into canonical form,
// and keeps the order, so that a path points at what was written.
type Egress struct {
	Host  *string `json:"host"`
	CIDR  *string `json:"cidr"`
	Ports []int64 `json:"ports"` // empty = 80 and 443
	Why   *string `json:"why"`
}

// Env is an environment variable. Rules see its name, and the facts computed
// from its value; the value stays here.
type Env struct {
	Name  string `json:"name"`
	Value string `json:"-"`
}

// Schedule is a reaper's schedule.
type Schedule struct {
	IntervalSeconds *int64  `json:"interval_seconds"`
	Cron            *string `json:"cron"`
	MaxAgeSeconds   *int64  `json:"max_age_seconds"` // null = by deadline only
	DryRun          *bool   `json:"dry_run"`
}

// document is what rules see as input.
type document struct {
	Schema    string   `json:"schema"`
	Kind      Kind     `json:"kind"`
	Stage     Stage    `json:"stage"`
	Address   string   `json:"address"`
	Resource  Resource `json:"resource"`
	Facts     Facts    `json:"facts"`
	Unknown   []string `json:"unknown"`
	Sensitive []string `json:"sensitive"`
}
