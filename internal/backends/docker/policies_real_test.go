//go:build dockertest

package docker

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestM33EachSandboxHasAPolicyOfItsOwn has sandboxes on one engine, all at once,
// with other rules each: what one may reach is nothing to the others.
func TestM33EachSandboxHasAPolicyOfItsOwn(t *testing.T) {
	plain, image := engine(t)
	w := newInternet(t, plain, image)
	b := w.backend(t, plain)
	f := newFar(t, b)
	far := fmt.Sprintf("good.example:%d", portOf(f.http))
	attempts := map[string]string{
		"a name":                `http("allowed.example", 80, "allowed.example")`,
		"another of its server": `http("also.example", 80, "also.example")`,
		"a range":               `tcp("` + worldCIDR + `", 7000)`,
		"a proxy":               `tcp("127.0.0.1", 3128, b"GET http://` + far + `/ HTTP/1.1\r\nHost: ` + far + `\r\nConnection: close\r\n\r\n")`,
	}
	sandboxes := map[string]driver.Sandbox{}
	for name, n := range map[string]driver.Network{
		"a name":                {Egress: rules(t, "allowed.example")},
		"another of its server": {Egress: rules(t, "also.example")},
		"a range":               {Egress: rules(t, worldCIDR+"/32:7000")},
		"a proxy":               {Egress: f.rules(t), Mode: driver.Proxy},
		"nothing":               {},
	} {
		spec := realSpec(t, image)
		spec.Lifetime, spec.Network = 300*time.Second, n
		sandboxes[name] = create(t, b, spec)
	}
	each := func(when string) {
		for name, sb := range sandboxes {
			for what, expression := range attempts {
				if open, said := attempt(t, sb, expression); open != (name == what) {
					t.Errorf("%s, %s from the sandbox that may reach %s: %s", when, what, name, said)
				}
			}
		}
	}
	each("all at once")
	// Nor does one that ends take another's policy with it.
	if err := sandboxes["a name"].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(sandboxes, "a name")
	each("when one has ended")
}

// TestTheLongestListIsEnforced makes sandboxes with as many rules as there may
// be: none is lost on the way, whether they go into sets or are asked for by name.
func TestTheLongestListIsEnforced(t *testing.T) {
	plain, image := engine(t)
	w := newInternet(t, plain, image)
	b := w.backend(t, plain)
	many := rules(t, "allowed.example", worldCIDR+"/32:7000")
	for i := len(many); i < driver.MaxRules; i++ {
		if i%2 == 0 {
			many = append(many, driver.Rule{Host: fmt.Sprintf("h%d.example.com", i)})
		} else {
			many = append(many, driver.Rule{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{20, byte(i >> 16), byte(i >> 8), byte(i)}), 32)})
		}
	}
	many, err := driver.Canonical(many)
	if err != nil || len(many) != driver.MaxRules {
		t.Fatalf("%d rules, %v", len(many), err)
	}
	spec := realSpec(t, image)
	spec.Network.Egress = many
	sb := create(t, b, spec)
	for expression, want := range map[string]bool{
		`http("allowed.example", 80, "allowed.example")`: true, `tcp("` + worldCIDR + `", 7000)`: true,
		`http("` + worldDenied + `", 80, "denied.example")`: false, `resolve("denied.example")`: false,
	} {
		if open, said := attempt(t, sb, expression); open != want {
			t.Errorf("%s: %s", expression, said)
		}
	}
}

// TestM36ThePolicyStandsBeforeTheFirstInstruction looks at each step of a
// creation: there is no sandbox while its gateway has not found the whole policy
// in place, so that the first instruction of a program is under it already.
func TestM36ThePolicyStandsBeforeTheFirstInstruction(t *testing.T) {
	plain, image := engine(t)
	w := newInternet(t, plain, image)
	spec := realSpec(t, image)
	spec.Network.Egress = rules(t, "allowed.example")
	opts := plain.opts
	opts.Uplink, opts.DNS = w.name, worldResolver
	cli := raw(t, plain)
	var mu sync.Mutex
	var before, during int // looks without a sandbox, and with one that is not handed over
	var made bool
	look := func(int) {
		mu.Lock()
		defer mu.Unlock()
		if made {
			return
		}
		all, err := cli.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", driver.LabelInstance+"="+spec.Token)})
		if err != nil {
			t.Error(err)
			return
		}
		gate, sandboxes := "", 0
		for _, c := range all.Items {
			switch {
			case isGateway(c.Labels, programOf(c)) && c.State == container.StateRunning:
				gate = c.ID
			case c.Labels[driver.LabelRole] == driver.RoleSandbox:
				sandboxes++
			}
		}
		if sandboxes == 0 {
			before++
			return
		}
		during++
		if gate == "" {
			t.Error("there is a sandbox, and no gateway runs")
		} else if said, err := logs(t.Context(), cli, gate, 100); err != nil || !strings.Contains(said, `"ready":{`) {
			t.Errorf("there is a sandbox, and its gateway says %q, %v", said, err)
		}
	}
	b, calls := between(t, opts, look)
	sb := create(t, b, spec)
	mu.Lock()
	made = true
	mu.Unlock()
	// The first instructions of the first program.
	out, exit := run(t, sb, "python3", "-c", attempts+`
for name, to in (("denied", "`+worldDenied+`"), ("metadata", "`+worldMetadata+`"), ("allowed", "allowed.example")):
    try: print(name, b"alive" in http(to, 80, name + ".example"))
    except OSError as e: print(name, False)
`)
	if want := "denied False\nmetadata False\nallowed True\n"; out != want || exit.Code != 0 {
		t.Errorf("%q, %+v; want %q", out, exit, want)
	}
	if before < 3 || during < 2 {
		t.Errorf("%d looks without a sandbox, %d with one, at %q", before, during, calls())
	}
	var saw string
	eventually(t, 60*time.Second, "the world saw what is allowed", func() bool {
		saw = w.saw(t, plain)
		return strings.Contains(saw, "tcp 80 "+worldAllowed)
	})
	if strings.Contains(saw, worldDenied) || strings.Contains(saw, worldMetadata) {
		t.Errorf("the world saw %s", saw)
	}
}
