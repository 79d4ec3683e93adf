package archtest

// Patterns. "./x" is our package x, "./x/..." it and what lies below, "." the
// module's root; "std" is the standard library; anything else is an import path
// of others, where a trailing "..." matches any rest.

// imports is a rule on what packages import directly.
type imports struct {
	name, why string
	who       []string // the packages it binds; nil means all of ours
	except    []string // and those it does not bind
	only      []string // they may import nothing but this
	never     []string // they may not import this
}

// reach is a rule on what packages pull in, however far away.
type reach struct {
	name, why string
	who       []string // nil means every main package
	only      []string
	never     []string
	past      []string // packages of others that may import it all the same
}

// vocabulary is a rule on the words of imports and identifiers.
type vocabulary struct {
	name, why string
	who       []string
	words     []string
}

var importRules = []imports{
	{
		name: "the runtime imports the standard library and itself",
		why:  "an agent program that imports sandbox must not inherit anyone's dependencies, nor have its own lifted by ours",
		who:  []string{"./sandbox/..."},
		only: []string{"std", "./sandbox/..."},
	},
	{
		name: "backends know the driver contract, not those who call them",
		why:  "a backend that reads policy or the runtime could weaken one of them; one that reads its neighbour cannot be removed alone",
		who:  []string{"./internal/backends/..."},
		never: []string{
			"./sandbox", "./sandbox/memory/...", "./sandbox/drivertest/...", "./policy/...", "./policies/...", "./drivers/...",
			"./internal/estate/...", "./internal/provider/...", "./internal/resources/...", "./internal/cli/...",
			"./internal/reap/...", "./internal/keeper/...", "./internal/plan/...", "./internal/acctest/...",
		},
	},
	{
		name: "what is said of an allowlist is said by the driver contract alone",
		why:  "it judges rules for every door and parses what hostile programs send; whatever it imports would be part of both",
		who:  []string{"./internal/egress"},
		only: []string{"std", "./sandbox/driver"},
	},
	{
		name: "the gateway reads hostile bytes with few libraries",
		why:  "a hole in what parses for it is a hole in every allowlist",
		who:  []string{"./internal/egress/gateway"},
		only: []string{"std", "./internal/egress", "./sandbox/driver", "golang.org/x/net/dns/dnsmessage"},
	},
	{
		name: "what a gateway is told and says needs nothing but what it applies",
		why:  "backends import it on every system; netlink and the packet filter must not come with it",
		who:  []string{"./internal/egress/gateway/boot"},
		only: []string{"std", "./internal/egress/...", "./internal/pin", "./sandbox/driver"},
	},
	{
		name:   "only the gateway itself touches the kernel",
		why:    "it runs in a network namespace of its own; anywhere else it would change the host's",
		except: []string{"./cmd/sandboxio-gateway", "./internal/egress/gateway/daemon", "./internal/egress/gateway/kernel"},
		never:  []string{"./internal/egress/gateway/kernel", "./internal/egress/gateway/daemon", "github.com/google/nftables/...", "github.com/vishvananda/..."},
	},
	{
		name:   "only the estate opens doors",
		why:    "backends, judge and defaults are put together in one place, so that no door is opened past the judge",
		except: []string{"./internal/estate/...", "./drivers/...", "./examples/..."},
		never:  []string{"./drivers/..."},
	},
	{
		name:   "only policy knows OPA",
		why:    "the capability list, the strict errors and the three values hold only if there is one way in",
		except: []string{"./policy/..."},
		never:  []string{"github.com/open-policy-agent/..."},
	},
	{
		name:   "only tracing knows OpenTelemetry",
		why:    "spans are one rendering of a Record; made elsewhere they would hold what redaction has not seen",
		except: []string{"./tracing/..."},
		never:  []string{"go.opentelemetry.io/..."},
	},
	{
		name:   "only the provider's side knows Terraform's plugin libraries",
		why:    "the CLI, the keeper and agent programs must not carry a plugin framework",
		except: []string{".", "./internal/provider/...", "./internal/resources/...", "./internal/acctest/...", "./internal/schemadump/..."},
		never:  []string{"github.com/hashicorp/terraform-plugin-..."},
	},
	{
		name:   "only the provider knows its resources",
		why:    "a resource is reached through the schema and the judge, never around them",
		except: []string{"./internal/provider/...", "./internal/resources/..."},
		never:  []string{"./internal/resources/..."},
	},
}

var reachRules = []reach{
	{
		name: "a program with only sandbox compiles no third-party package",
		why:  "the promise is made of what is compiled, not of what is written in one file",
		who:  []string{"./sandbox/..."},
		only: []string{"std", "./sandbox/..."},
	},
	{
		name:  "testing reaches no binary",
		why:   "a test double that reaches a release can be switched on in one",
		never: []string{"testing", "./sandbox/drivertest/...", "./internal/acctest/..."},
		past:  []string{"github.com/hashicorp/go-plugin"}, // its testing.go is no test, and whoever serves Terraform gets it
	},
	{
		name: "the guest is the standard library, x/sys and yamux",
		why:  "it is PID 1 beside hostile code, and is at most 4 MiB; x/sys has the system calls that package syscall lacks",
		who:  []string{"./cmd/sandboxio-guest"},
		only: []string{"std", "./cmd/sandboxio-guest", "./internal/guest/...", "./sandbox/...", "github.com/hashicorp/yamux", "golang.org/x/sys/unix"},
	},
	{
		name: "the gateway is the standard library, dnsmessage, netlink and nftables",
		why:  "it has the network of a sandbox in its hands, begins with privileges, and is at most 10 MiB",
		who:  []string{"./cmd/sandboxio-gateway"},
		only: []string{"std", "./cmd/sandboxio-gateway", "./internal/egress/...", "./internal/pin", "./sandbox/driver", "golang.org/x/net/...", "golang.org/x/sys/unix", "golang.org/x/sync/...",
			"github.com/google/nftables/...", "github.com/mdlayher/netlink/...", "github.com/mdlayher/socket", "github.com/vishvananda/..."},
	},
}

var vocabularyRules = []vocabulary{{
	name:  "no provider's name where capabilities are asked for",
	why:   "code that asks for a name treats the next backend as a stranger, and grants by name what was never measured",
	who:   []string{"./sandbox/...", "./policy/...", "./internal/resources/...", "./internal/reap/...", "./internal/keeper/..."},
	words: []string{"docker", "moby", "kubernetes", "k8s", "e2b", "modal", "daytona"},
}}

// rooms are package names that say nothing of what is inside.
var rooms = []string{"util", "utils", "common", "helper", "helpers", "model", "models", "type", "types", "misc", "shared"}

// longest is where a file must be split.
const longest = 600

// planned are the patterns that name what is designed and not yet built. One
// that is built is struck from here, by this test: from then on it must stay.
var planned = []string{}
