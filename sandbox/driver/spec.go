package driver

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Spec is a resolved order for one sandbox: no field is left for the driver
// to decide. Package sandbox makes it from a wish; drivers only read it.
type Spec struct {
	Token       string    // idempotency token, unique per wanted sandbox; also the sandbox's instance name
	Image       string    // as [ParseImage] accepts it
	Isolation   Isolation // the floor; Unverified asks for none
	Trust       Trust
	MultiTenant bool
	Profile     Profile
	Lifetime    time.Duration // whole seconds, 1 s to [MaxLifetime]
	MaxLifetime time.Duration // whole seconds from creation that an [Extender] may reach; zero = Lifetime, which cannot be extended
	Resources   Resources     // every field set
	Network     Network       // canonical
	Env         map[string]string
	Labels      map[string]string // the caller's own
	Facts       Facts             // ours, fixed at creation
	Detached    bool              // lives to its deadline without an owner
}

// LongestLife is how long a sandbox made from s may live, every extension
// included.
func (s Spec) LongestLife() time.Duration { return max(s.Lifetime, s.MaxLifetime) }

// Facts are what the core knows of a sandbox at its creation. Backends keep
// them as native labels, under the names of [Facts.Labels], in the very call
// that creates it.
type Facts struct {
	Owner    string // instance of the Runtime that made it
	Instance string // the sandbox's own; equal to Spec.Token
	Parent   string // id of the object it lives and dies with
	Template string // digest of the template
	Policy   string // digest of the network and Rego policy it was judged by
	Pool     string
	Reaper   string // name of the schedule that covers it
	Tenant   string // digest or plain name, never a secret
	Session  string
}

// Limits that hold for every backend.
const (
	DefaultLifetime = 300 * time.Second
	MaxLifetime     = 30 * 24 * time.Hour
	DefaultTimeout  = 300 * time.Second
)

// Resources are a sandbox's caps. They always apply; they can be raised,
// never unset. A zero field means its default, see [Resources.Resolve].
type Resources struct {
	CPUMillis int64 `json:"cpu_millis"` // thousandths of a core; zero is 1000
	MemoryMiB int64 `json:"memory_mib"` // without what DiskMiB adds; zero is 512
	DiskMiB   int64 `json:"disk_mib"`   // writable space; zero is 256
	PIDs      int64 `json:"pids"`       // processes and threads; zero is 256
}

// defaultResources are what zero fields mean.
var defaultResources = Resources{CPUMillis: 1000, MemoryMiB: 512, DiskMiB: 256, PIDs: 256}

// bounds of each cap: below the first a sandbox does not start, above the
// second the figure is certainly a mistake of units.
var resourceBounds = []struct {
	name     string
	get      func(*Resources) *int64
	min, max int64
}{
	{"cpu_millis", func(r *Resources) *int64 { return &r.CPUMillis }, 10, 1_024_000},
	{"memory_mib", func(r *Resources) *int64 { return &r.MemoryMiB }, 16, 16 << 20},
	{"disk_mib", func(r *Resources) *int64 { return &r.DiskMiB }, 4, 64 << 20},
	{"pids", func(r *Resources) *int64 { return &r.PIDs }, 32, 4 << 20},
}

// Resolve replaces zero fields by their defaults and refuses what is out of
// bounds. All problems are joined, each with its Field.
func (r Resources) Resolve() (Resources, error) {
	var errs []error
	for _, b := range resourceBounds {
		v, d := b.get(&r), defaultResources
		if *v == 0 {
			*v = *b.get(&d)
		}
		if *v < b.min || *v > b.max {
			errs = append(errs, Invalid("resources."+b.name,
				fmt.Sprintf("%d is not between %d and %d", *v, b.min, b.max),
				fmt.Sprintf("set %s between %d and %d, or leave it out for %d", b.name, b.min, b.max, *b.get(&d))))
		}
	}
	return r, Join(errs...)
}

// Profile says how much of the image's root a workload may change.
type Profile uint8

const (
	// Strict, the zero value: the root is read-only; /work, /tmp and /run are
	// writable, capped and in memory.
	Strict Profile = iota
	// Compat has a writable root, for images that write elsewhere. It must be
	// asked for.
	Compat
)

func (p Profile) String() string {
	switch p {
	case Strict:
		return "strict"
	case Compat:
		return "compat"
	}
	return fmt.Sprintf("profile(%d)", uint8(p))
}

// ParseProfile reads what String writes; "" is strict.
func ParseProfile(s string) (Profile, error) {
	switch s {
	case "", "strict":
		return Strict, nil
	case "compat":
		return Compat, nil
	}
	return 0, Invalid("profile", fmt.Sprintf("%q is no profile", s), `use "strict" or "compat"`)
}

func (p Profile) MarshalText() ([]byte, error)  { return []byte(p.String()), nil }
func (p *Profile) UnmarshalText(b []byte) error { return unmarshal(b, p, ParseProfile) }

func unmarshal[T any](b []byte, to *T, parse func(string) (T, error)) error {
	v, err := parse(string(b))
	if err == nil {
		*to = v
	}
	return err
}

// Trust says what is known of the code that will run. Its zero value is
// unstated: allowed on every tier, with a warning on the container tier.
type Trust struct {
	level  trustLevel
	reason string
}

type trustLevel uint8

const (
	unstated trustLevel = iota
	untrusted
	trusted
)

// Untrusted is code that nobody vouches for. It raises the isolation floor to
// UserKernel, as gVisor is, and for several tenants to MicroVM: a container on
// the host's kernel is refused. What an agent wrote is Untrusted; where nothing
// above Container is at hand, leave Trust unstated, which warns, or say why it
// is Trusted.
var Untrusted = Trust{level: untrusted}

// Trusted is code that somebody vouches for, and why. The reason is recorded;
// an empty one is refused when the wish is resolved.
func Trusted(reason string) Trust { return Trust{trusted, reason} }

// ParseTrust reads "" (unstated), "untrusted", or "trusted" with its reason.
func ParseTrust(level, reason string) (Trust, error) {
	var t Trust
	switch level {
	case "":
	case "untrusted":
		t = Untrusted
	case "trusted":
		t = Trusted(reason)
	default:
		return t, Invalid("trust", fmt.Sprintf("%q is no level of trust", level), `use "untrusted", or "trusted" with a reason`)
	}
	if t.level != trusted && reason != "" {
		return Trust{}, Invalid("trust", "a reason belongs to trust = \"trusted\" only", "remove the reason, or say trusted")
	}
	return t, t.Validate()
}

func (t Trust) IsUntrusted() bool { return t.level == untrusted }
func (t Trust) IsTrusted() bool   { return t.level == trusted }
func (t Trust) Stated() bool      { return t.level != unstated }
func (t Trust) Reason() string    { return t.reason }

// String gives the level: "", "untrusted" or "trusted".
func (t Trust) String() string { return [...]string{"", "untrusted", "trusted"}[t.level] }

// Validate refuses trust without a reason.
func (t Trust) Validate() error {
	if t.level == trusted && strings.IndexFunc(t.reason, unicode.IsLetter) < 0 {
		return Invalid("trust", "trusted code needs a reason", `say why, as in Trusted("built from our own repository")`)
	}
	return nil
}
