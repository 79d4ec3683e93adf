package archtest

import (
	"path"
	"strings"
	"testing"
)

// synthetic makes a tree of sources, by file name.
func synthetic(t *testing.T, sources map[string]string) *tree {
	t.Helper()
	made := &tree{module: module}
	for name, source := range sources {
		if err := made.add(name, source); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// one fails unless exactly the wanted finding is there; no want means none.
func one(t *testing.T, found []finding, want string) {
	t.Helper()
	if want == "" {
		if len(found) != 0 {
			t.Fatalf("found %v in a tree without fault", found)
		}
		return
	}
	if len(found) != 1 || !strings.Contains(found[0].String(), want) {
		t.Fatalf("found %v, want one that says %q", found, want)
	}
}

// importing is a file that imports one thing.
func importing(pkg string) string {
	return "package p\nimport _ \"" + strings.Replace(pkg, "./", module+"/", 1) + "\"\n"
}

func TestImportRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule            string
		file, bad, good string
	}{
		{"the runtime imports the standard library and itself", "sandbox/memory/a.go", "github.com/google/go-cmp/cmp", "./sandbox/driver"},
		{"the runtime imports the standard library and itself", "sandbox/a_windows.go", "./internal/guest", "net/netip"},
		{"backends know the driver contract, not those who call them", "internal/backends/x/a.go", "./sandbox", "./sandbox/driver"},
		{"backends know the driver contract, not those who call them", "internal/backends/x/y/a.go", "./policy", "./internal/guest"},
		{"only the estate opens doors", "internal/cli/a.go", "./drivers/x", "./internal/estate"},
		{"only policy knows OPA", "internal/plan/a.go", "github.com/open-policy-agent/opa/v1/rego", "./policy"},
		{"only tracing knows OpenTelemetry", "internal/cli/a.go", "go.opentelemetry.io/otel/trace", "./tracing"},
		{"only the provider's side knows Terraform's plugin libraries", "internal/cli/a.go", "github.com/hashicorp/terraform-plugin-framework/types", "github.com/hashicorp/terraform-json"},
		{"what is said of an allowlist is said by the driver contract alone", "internal/egress/a.go", "./policy", "./sandbox/driver"},
		{"what is said of an allowlist is said by the driver contract alone", "internal/egress/a.go", "golang.org/x/net/idna", "net/netip"},
		{"the gateway reads hostile bytes with few libraries", "internal/egress/gateway/a.go", "github.com/miekg/dns", "golang.org/x/net/dns/dnsmessage"},
		{"what a gateway is told and says needs nothing but what it applies", "internal/egress/gateway/boot/a.go", "github.com/google/nftables", "./internal/egress"},
		{"only the gateway itself touches the kernel", "internal/backends/x/a.go", "./internal/egress/gateway/kernel", "./internal/egress/gateway/boot"},
		{"only the gateway itself touches the kernel", "internal/guest/a.go", "github.com/vishvananda/netlink", "golang.org/x/sys/unix"},
		{"only the provider knows its resources", "internal/cli/a.go", "./internal/resources/template", "./internal/estate"},
	}
	tested := map[string]bool{}
	for _, tt := range tests {
		tested[tt.rule] = true
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			for _, r := range importRules {
				if r.name != tt.rule {
					continue
				}
				one(t, r.check(synthetic(t, map[string]string{tt.file: importing(tt.bad)})), "imports "+tt.bad)
				one(t, r.check(synthetic(t, map[string]string{tt.file: importing(tt.good)})), "")
				inTest := strings.TrimSuffix(tt.file, ".go") + "_test.go"
				one(t, r.check(synthetic(t, map[string]string{inTest: importing(tt.bad)})), "")
				return
			}
			t.Fatal("no such rule")
		})
	}
	for _, r := range importRules {
		if !tested[r.name] || r.why == "" {
			t.Errorf("rule %q has no test that shows it fail, or no why", r.name)
		}
		for _, dir := range r.except {
			one(t, r.check(synthetic(t, map[string]string{path.Join(strings.TrimSuffix(dir, "..."), "a.go"): importing(strings.TrimSuffix(r.never[0], "/..."))})), "")
		}
	}
}

func TestReachRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, rule string
		who        listed
		by         string // who imports what is reached: itself, or a package in between
		reached    string
		want       string
	}{
		{
			name: "sandbox compiles a third party's package", rule: "a program with only sandbox compiles no third-party package",
			who: listed{ImportPath: "./sandbox/memory"}, by: "./sandbox/memory", reached: "github.com/google/go-cmp/cmp",
			want: "reaches github.com/google/go-cmp/cmp by ./sandbox/memory",
		},
		{
			name: "sandbox compiles the standard library", rule: "a program with only sandbox compiles no third-party package",
			who: listed{ImportPath: "./sandbox/memory"}, by: "./sandbox/driver", reached: "context",
		},
		{
			name: "a binary reaches testing", rule: "testing reaches no binary",
			who: listed{ImportPath: "./cmd/sandboxio", Name: "main"}, by: "./internal/cli", reached: "testing",
			want: "reaches testing by ./internal/cli",
		},
		{
			name: "a binary reaches the judge of drivers", rule: "testing reaches no binary",
			who: listed{ImportPath: "./cmd/sandboxio", Name: "main"}, by: "./internal/cli", reached: "./sandbox/drivertest",
			want: "reaches ./sandbox/drivertest by ./internal/cli",
		},
		{
			name: "the provider gets testing from the library that serves Terraform", rule: "testing reaches no binary",
			who: listed{ImportPath: ".", Name: "main"}, by: "github.com/hashicorp/go-plugin", reached: "testing",
		},
		{
			name: "a library of ours is for tests", rule: "testing reaches no binary",
			who: listed{ImportPath: "./internal/acctest", Name: "acctest"}, by: "./sandbox/drivertest", reached: "testing",
		},
		{
			name: "the guest carries a third party's package", rule: "the guest is the standard library, x/sys and yamux",
			who: listed{ImportPath: "./cmd/sandboxio-guest", Name: "main"}, by: "./internal/guest/pid1", reached: "google.golang.org/grpc",
			want: "reaches google.golang.org/grpc by ./internal/guest/pid1",
		},
		{
			name: "the guest carries yamux", rule: "the guest is the standard library, x/sys and yamux",
			who: listed{ImportPath: "./cmd/sandboxio-guest", Name: "main"}, by: "./internal/guest/pid1", reached: "github.com/hashicorp/yamux",
		},
		{
			name: "the gateway carries another resolver", rule: "the gateway is the standard library, dnsmessage, netlink and nftables",
			who: listed{ImportPath: "./cmd/sandboxio-gateway", Name: "main"}, by: "./internal/egress/gateway/daemon", reached: "github.com/miekg/dns",
			want: "reaches github.com/miekg/dns by ./internal/egress/gateway/daemon",
		},
		{
			name: "the gateway carries nftables", rule: "the gateway is the standard library, dnsmessage, netlink and nftables",
			who: listed{ImportPath: "./cmd/sandboxio-gateway", Name: "main"}, by: "./internal/egress/gateway/kernel", reached: "github.com/google/nftables",
		},
	}
	shown := map[string]bool{}
	for _, tt := range tests {
		shown[tt.rule] = shown[tt.rule] || tt.want != ""
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			graph := []listed{tt.who}
			if tt.by == tt.who.ImportPath {
				graph[0].Imports, graph[0].Deps = []string{tt.reached}, []string{tt.reached}
			} else {
				graph[0].Imports, graph[0].Deps = []string{tt.by}, []string{tt.by, tt.reached}
				graph = append(graph, listed{ImportPath: tt.by, Imports: []string{tt.reached}, Deps: []string{tt.reached}})
			}
			for _, r := range reachRules {
				if r.name == tt.rule {
					one(t, r.check(graph), tt.want)
				}
			}
		})
	}
	for _, r := range reachRules {
		if !shown[r.name] || r.why == "" {
			t.Errorf("rule %q has no test that shows it fail, or no why", r.name)
		}
	}
}

func TestSourceRules(t *testing.T) {
	t.Parallel()
	words := vocabularyRules[0].check
	tests := []struct {
		name   string
		check  func(*tree) []finding
		file   string
		source string
		want   string
	}{
		{"a provider in an identifier", words, "policy/a.go", "package policy\n\nvar isDockerLike bool\n", "isDockerLike names docker"},
		{"a provider in the name of a method", words, "internal/reap/a.go", "package reap\n\ntype t int\n\nfunc (t) E2B() {}\n", "E2B names e2b"},
		{"a provider in an import", words, "internal/keeper/a.go", importing("./internal/backends/kubernetes"), "names kubernetes"},
		{"a provider's client in an import", words, "sandbox/a.go", importing("github.com/moby/moby/client"), "names moby"},
		{"a provider in strings and comments is data", words, "policy/a.go", "package policy\n\n// docker\nvar host = \"modal.com\"\n", ""},
		{"a provider in a test is free", words, "policy/a_test.go", "package policy\n\nvar docker int\n", ""},
		{"a provider where it belongs", words, "internal/backends/docker/a.go", "package docker\n\nvar daytona int\n", ""},

		{"a backend past its door", backendDoors, "internal/estate/a.go", importing("./internal/backends/x"), "behind the door ./drivers/x"},
		{"a backend by the neighbour's door", backendDoors, "drivers/y/a.go", importing("./internal/backends/x"), "behind the door ./drivers/x"},
		{"a backend that knows another", backendDoors, "internal/backends/y/a.go", importing("./internal/backends/x/image"), "behind the door ./drivers/x"},
		{"a backend by its door", backendDoors, "drivers/x/a.go", importing("./internal/backends/x"), ""},
		{"a backend by its own part", backendDoors, "internal/backends/x/a.go", importing("./internal/backends/x/image"), ""},

		{"a lumber room", namelessRooms, "internal/utils/a.go", "package utils\n", `"utils" does not say`},
		{"a lumber room on the way", namelessRooms, "internal/common/clock/a.go", "package clock\n", `"common" does not say`},
		{"a lumber room behind a name", namelessRooms, "internal/clock/a.go", "package helpers\n", "package helpers does not say"},
		{"a room with a name", namelessRooms, "internal/commonname/a.go", "package commonname\n", ""},

		{"a file past the limit", longFiles, "a.go", "package p\n" + strings.Repeat("\n", longest), "split at 600"},
		{"a file at the limit", longFiles, "a.go", "package p\n" + strings.Repeat("\n", longest-1), ""},
		{"a generated file past the limit", longFiles, "a.go", "// Code generated by x. DO NOT EDIT.\n\npackage p\n" + strings.Repeat("\n", longest), ""},

		{"an init that calls", initialisers, "a.go", "package p\n\nfunc init() { register() }\n", "init calls"},
		{"an init that starts a goroutine", initialisers, "a.go", "package p\n\nfunc init() { go func() {}() }\n", "init calls"},
		{"an init that assigns", initialisers, "a.go", "package p\n\nvar a int\n\nfunc init() { a = 1 }\n", ""},
		{"a method named init", initialisers, "a.go", "package p\n\ntype t int\n\nfunc (t) init() { f() }\n", ""},
		{"a variable that reads a file", initialisers, "a.go", "package p\n\nimport \"os\"\n\nvar a, _ = os.ReadFile(\"x\")\n", "looks outward"},
		{"a variable that dials under another name", initialisers, "a.go", "package p\n\nimport n \"net\"\n\nvar a = must(n.Dial(\"tcp\", \"x\"))\n", "looks outward"},
		{"a variable from a function called at once", initialisers, "a.go", "package p\n\nimport \"os\"\n\nvar a = func() string { s, _ := os.Hostname(); return s }()\n", "looks outward"},
		{"a variable that holds a function", initialisers, "a.go", "package p\n\nimport \"os\"\n\nvar a = func() string { s, _ := os.Hostname(); return s }\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			one(t, tt.check(synthetic(t, map[string]string{tt.file: tt.source})), tt.want)
		})
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                    string
		patterns, planned, dirs []string
		want                    string
	}{
		{"a rule on a package that is gone", []string{"./policy/..."}, nil, []string{"."}, "is gone"},
		{"a rule on a package that is planned", []string{"./policy/..."}, []string{"./policy/..."}, []string{"."}, ""},
		{"a planned package that is built", []string{"./policy/..."}, []string{"./policy/..."}, []string{"./policy/rego"}, "is built"},
		{"a planned package of no rule", nil, []string{"./policy/..."}, []string{"."}, "no rule names it"},
		{"a rule on a package that is there", []string{"./policy/...", "std", "github.com/x/..."}, nil, []string{"./policy"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			one(t, gone(tt.patterns, tt.planned, tt.dirs), tt.want)
		})
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, pkg string
		want         bool
	}{
		{"./sandbox/...", "./sandbox", true},
		{"./sandbox/...", "./sandbox/driver", true},
		{"./sandbox/...", "./sandboxes", false},
		{"./sandbox", "./sandbox/driver", false},
		{".", ".", true},
		{".", "./sandbox", false},
		{"std", "net/netip", true},
		{"std", "vendor/golang.org/x/net/idna", true},
		{"std", "golang.org/x/net/idna", false},
		{"std", "./sandbox", false},
		{"std", ".", false},
		{"github.com/hashicorp/terraform-plugin-...", "github.com/hashicorp/terraform-plugin-go/tfprotov6", true},
		{"github.com/hashicorp/terraform-plugin-...", "github.com/hashicorp/terraform-json", false},
	}
	for _, tt := range tests {
		if got := matches(tt.pattern, tt.pkg); got != tt.want {
			t.Errorf("matches(%q, %q) = %t, want %t", tt.pattern, tt.pkg, got, tt.want)
		}
	}
}
