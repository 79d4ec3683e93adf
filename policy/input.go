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

	// What others describe in a plan, read by an adapter; judged at StageFile
	// only.

	KindContainer Kind = "container" // one container, of its own or in a pod
	KindImage     Kind = "image"     // an image that is built, pulled or pushed
	KindProvider  Kind = "provider"  // how an engine is reached
)

var kinds = []Kind{KindTemplate, KindSandbox, KindNetworkPolicy, KindReaperSchedule, KindContainer, KindImage, KindProvider, KindGraph}

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
	Address   string // of the Terraform resource; "" where it is not known, as in a provider or a program
	Name      string // of the template (a sandbox's too), network policy or schedule, for waivers; "" = none, or not known
	Resource  Resource
	Unknown   []string // not known yet: never judged as if missing
	Sensitive []string // known, but never shown to a rule
}

// Resource is the configuration under judgement, with every default resolved.
// A scalar that is missing is null in the document, a list that is missing is
// empty; only what Input.Unknown names is absent. A kind fills the part it
// has: a network policy has only Network, a reaper schedule only Backend,
// Labels and Schedule, an image only Image, Labels and BuildArgs, a provider
// only Provider. What the runtime itself settles for every sandbox, as the
// absence of capabilities, has its settled value in templates and sandboxes.
type Resource struct {
	Backend         *string           `json:"backend"`
	Image           Image             `json:"image"`
	Isolation       *string           `json:"isolation"` // the tier that is certain: the floor asked for, or what the backend promises, whichever is higher; null in a container is what its runtime stands for
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
	Process         Process           `json:"process"`
	Mounts          []Mount           `json:"mounts"`
	Restart         *string           `json:"restart"`               // "no", "on-failure", "always", "unless-stopped"
	ServiceToken    *bool             `json:"service_account_token"` // the identity of a service account is mounted
	BuildArgs       []Env             `json:"build_args"`            // of an image that is built
	Files           []Env             `json:"files"`                 // written into it at creation, named by their place inside
	Command         []string          `json:"-"`                     // words of entry point and command; rules see only facts of them
	Provider        Provider          `json:"provider"`
}

// Image is a reference to an image, taken apart.
type Image struct {
	Ref        *string `json:"ref"`
	Registry   *string `json:"registry"`
	Repository *string `json:"repository"`
	Tag        *string `json:"tag"`
	Digest     *string `json:"digest"`
	Pinned     *bool   `json:"pinned"`
	Made       *bool   `json:"made"`     // it is built or pushed here, so that it has no digest before
	Insecure   *bool   `json:"insecure"` // its registry is spoken to without a verified certificate
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
	Default *string   `json:"default"` // what becomes of a destination that no rule names: "deny" or "allow"
	Mode    *string   `json:"mode"`
	Learn   *bool     `json:"learn"`
	Expose  []int64   `json:"expose"` // to authenticated callers
	Publish []Publish `json:"publish"`
	Egress  []Egress  `json:"egress"`
	DNS     []string  `json:"dns"`    // addresses of name servers of its own choice
	Joined  []string  `json:"joined"` // networks that others may be on, by name or address in the plan
}

// Publish is a port that anybody reaches who reaches the host's address.
type Publish struct {
	Port     *int64  `json:"port"`      // inside
	HostPort *int64  `json:"host_port"` // null = one that the engine chooses
	HostIP   *string `json:"host_ip"`   // null = every address
}

// Egress is one rule of the allowlist. Judge brings it into canonical form,
// and keeps the order, so that a path points at what was written.
type Egress struct {
	Host  *string `json:"host"`
	CIDR  *string `json:"cidr"`
	Ports []int64 `json:"ports"` // empty = 80 and 443
	Why   *string `json:"why"`
}

// Process is what a program may do beside using its caps. What it does not
// mention is null, as where an engine's own default is not known.
type Process struct {
	User             *string  `json:"user"`     // "1000", "app:app"; null = the image's choice
	NonRoot          *bool    `json:"non_root"` // the engine refuses to start it as root
	Privileged       *bool    `json:"privileged"`
	NoNewPrivileges  *bool    `json:"no_new_privileges"`
	ReadOnlyRoot     *bool    `json:"read_only_root"` // null in templates and sandboxes, whose profile says it
	CapAdd           []string `json:"cap_add"`        // as "NET_ADMIN"
	CapDrop          []string `json:"cap_drop"`
	Seccomp          *string  `json:"seccomp"`  // "default", "unconfined", or the name of a profile
	AppArmor         *string  `json:"apparmor"` // as seccomp
	SELinux          *string  `json:"selinux"`  // "unconfined" where labels are switched off
	UnmaskedProc     *bool    `json:"unmasked_proc"`
	WritableCgroups  *bool    `json:"writable_cgroups"`
	HostNamespaces   []string `json:"host_namespaces"`   // some of "cgroup", "ipc", "network", "pid", "user", "uts"
	JoinedNamespaces []string `json:"joined_namespaces"` // other containers' that it is in, named alike; not the network's, see Network.Joined
	Devices          []string `json:"devices"`           // paths on the host, or names of device classes
	Sysctls          []string `json:"sysctls"`           // names
	Runtime          *string  `json:"runtime"`           // as the engine calls it; null = the engine's default
}

// Mount is a place of the file system that is not the container's own.
type Mount struct {
	Type        *string `json:"type"`   // "bind", "volume", "tmpfs", "pipe", "config"
	Source      *string `json:"source"` // a path on the host for a bind, else a name
	Target      *string `json:"target"`
	ReadOnly    *bool   `json:"read_only"`
	Propagation *string `json:"propagation"` // "private", "rslave", "rshared" and so on
}

// Provider is how a provider of somebody else's, or ours, reaches its engine.
type Provider struct {
	Endpoint *string `json:"endpoint"` // as "tcp://host:2376"; null = the default, a local socket
	TLS      *bool   `json:"tls"`      // the engine's certificate is verified, and one of ours shown
}

// Env is a text with a name, as an environment variable. Rules see the name,
// and the facts computed from the value; the value stays here.
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
	Schema    string         `json:"schema"`
	Kind      Kind           `json:"kind"`
	Stage     Stage          `json:"stage"`
	Address   string         `json:"address"`
	Resource  Resource       `json:"resource"`
	Facts     Facts          `json:"facts"`
	Graph     *graphDocument `json:"graph"` // null but for a graph, which has no resource
	Unknown   []string       `json:"unknown"`
	Sensitive []string       `json:"sensitive"`
}
