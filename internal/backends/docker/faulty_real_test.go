//go:build dockertest

package docker

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// tolerated are the calls of a creation that may fail, and why.
var tolerated = map[string]string{
	"HEAD /_ping #1":             "it is asked again with GET",
	"DELETE /containers/… #1":    "the look at the host is removed again, until it is gone",
	"GET /containers/…/json #1":  "and so is asked whether it is",
	"POST /containers/…/wait #1": "it only tells of an early end, which the guest's silence tells too",
}

// undivided are calls whose answer has no half: it has no body, or no end.
var undivided = regexp.MustCompile(`/(attach|start|connect|wait) #`)

// removing are calls of which there are as many as it takes.
var removing = regexp.MustCompile(`^(GET|DELETE) /(containers|networks)/…(/json)? #`)

// beside are calls that are made beside a creation, which does not wait for
// them: a guest that answers first lets them be given up unsent.
var beside = regexp.MustCompile(`/wait #`)

// tries are how many creations may pass before one comes to a call.
func tries(call string) int {
	if beside.MatchString(call) {
		return 10
	}
	return 1
}

// atHost is a host with two servers: one that sandboxes may reach, and one that
// they may not.
type atHost struct {
	rules []driver.Rule
	addr  string
}

func newHost(t *testing.T, b *Backend, image string) atHost {
	t.Helper()
	cli := raw(t, b)
	bystander(t, cli, image, "host", `import socketserver, threading
class H(socketserver.BaseRequestHandler):
    def handle(self): self.request.recv(1000); self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nalive\n")
class S(socketserver.ThreadingTCPServer): allow_reuse_address = True
threading.Thread(target=S(("", 18127), H).serve_forever).start()
S(("", 18126), H).serve_forever()`)
	control := bystander(t, cli, image, "bridge", "import time\nwhile True: time.sleep(60)")
	info, err := cli.ContainerInspect(t.Context(), control, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addr := info.Container.NetworkSettings.Networks["bridge"].Gateway.String()
	for _, port := range []string{":18126", ":18127"} {
		eventually(t, 20*time.Second, "the control reaches "+addr+port, func() bool { return answers(t.Context(), cli, control, addr+port) == nil })
	}
	return atHost{rules(t, addr+"/32:18126"), addr}
}

// holds checks that a sandbox runs programs, and is as open as was asked.
func (h atHost) holds(t *testing.T, sb driver.Sandbox, open bool) {
	t.Helper()
	out, exit := run(t, sb, "python3", "-c", attempts+`
def of(port, wait):
    try: return b"alive" in tcp("`+h.addr+`", port, b"x", wait)
    except OSError: return False
print(of(18126, 3 if `+map[bool]string{true: "True", false: "False"}[open]+` else 0.5), of(18127, 0.5))`)
	if want := map[bool]string{true: "True False\n", false: "False False\n"}[open]; exit.Code != 0 || out != want {
		t.Errorf("what it may reach and what it may not are reached: %q, expected %q (%+v)", out, want, exit)
	}
}

// TestM119WhateverCallFailsNothingIsLeft has, on the real engine, each call of a
// creation fail in each way, one at a time.
func TestM119WhateverCallFailsNothingIsLeft(t *testing.T) {
	b, image := engine(t)
	host := newHost(t, b, image)
	volumes := volumeNames(t, b)
	var mu sync.Mutex
	var tokens []string
	seen := map[string]bool{} // with a gateway, which others need not show again
	count := 0
	for _, mode := range []struct {
		name     string
		mode     driver.Mode
		egress   []driver.Rule
		detached bool
	}{
		{"transparent", driver.Transparent, host.rules, false},
		{"transparent, detached", driver.Transparent, host.rules, true},
		{"deny", driver.Transparent, nil, false},
		{"proxy", driver.Proxy, host.rules, false},
	} {
		order := func() driver.Spec {
			s := realSpec(t, image)
			s.Lifetime, s.Detached = 300*time.Second, mode.detached
			s.Network.Mode, s.Network.Egress = mode.mode, mode.egress
			mu.Lock()
			defer mu.Unlock()
			tokens = append(tokens, s.Token)
			return s
		}
		open := routed(order().Network)
		t.Run(mode.name, func(t *testing.T) {
			good, m := meddled(t, b.opts)
			sb := create(t, good, order())
			whole := m.calls()
			host.holds(t, sb, open)
			t.Logf("%d calls: %s", len(whole), strings.Join(whole, ", "))
			for _, call := range whole {
				if removing.MatchString(call) && !strings.HasSuffix(call, " #1") || mode.detached && seen[call] {
					continue
				}
				seen[call] = seen[call] || open
				for name, how := range faults {
					// To who asks, a question that is lost is one whose answer is.
					if how == cut && (undivided.MatchString(call) || tolerated[call] != "") || how == lose && strings.HasPrefix(call, "GET ") {
						continue
					}
					count++
					t.Run(call+"/"+name, func(t *testing.T) {
						t.Parallel()
						came := false
						for try := 0; !came && try < tries(call); try++ {
							came = befall(t, b, order(), call, how, func(sb driver.Sandbox) { host.holds(t, sb, open) })
						}
						if !came && !removing.MatchString(call) {
							t.Error("it never came to that call")
						}
					})
				}
			}
		})
	}
	for _, token := range tokens { // nothing came late
		if l := ofInstance(t, b, token); len(l) > 0 {
			t.Errorf("left: %v", l)
		}
	}
	if now := volumeNames(t, b); !slices.Equal(now, volumes) {
		t.Errorf("volumes were %v, are %v", volumes, now)
	}
	t.Logf("%d faults", count)
}

// befall creates a sandbox with a fault at one call, and reports whether it came
// to that call. Where the call may fail, holds checks what was made.
func befall(t *testing.T, plain *Backend, spec driver.Spec, call string, how fault, holds func(driver.Sandbox)) (came bool) {
	t.Helper()
	b, m := meddled(t, plain.opts)
	b.searchLimit = 300 * time.Millisecond
	m.fault = func(c string) fault {
		if c == call {
			return how
		}
		return none
	}
	sb, err := b.Create(limited(t, 30*time.Second), spec)
	switch why := tolerated[call]; {
	case why != "" && err == nil:
		holds(sb)
		if err := sb.Kill(t.Context()); err != nil {
			t.Error(err)
		}
	case why != "":
		t.Errorf("%s, and yet: %v", why, err)
	case err == nil:
		t.Error("it succeeded")
		_ = sb.Kill(t.Context())
	default:
		actionable(t, err)
	}
	came = slices.Contains(m.calls(), call)
	if l := ofInstance(t, b, spec.Token); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
	return came
}

// actionable is an error that says who, how and what to do, and of no leak.
func actionable(t *testing.T, err error) {
	t.Helper()
	problems := driver.Problems(err)
	if len(problems) == 0 {
		t.Errorf("not an error of ours: %v", err)
	}
	for _, e := range problems {
		if e.Backend != Name || e.Op == "" || e.Hint == "" {
			t.Errorf("not an error to act on: %#v", e)
		}
	}
	if errors.Is(err, driver.CodeLeaked) {
		t.Errorf("it says leaked, though it could remove all: %v", err)
	}
	if errors.Is(err, driver.CodeConflict) {
		t.Errorf("it blames something that is not at fault: %v", err)
	}
}

// lastStep is the call by which a sandbox with a gateway is started, when all
// that there is of it has been made.
const lastStep = "POST /containers/…/start #3"

// TestM119WhateverCallOfARemovalFailsNothingIsLeft has a creation fail when
// everything is there, and then each call by which it is removed.
func TestM119WhateverCallOfARemovalFailsNothingIsLeft(t *testing.T) {
	b, image := engine(t)
	failed := func(t *testing.T, then func(call string) fault) (*meddler, driver.Spec, error) {
		t.Helper()
		b, m := meddled(t, b.opts)
		over := false
		var mu sync.Mutex
		m.fault = func(call string) fault {
			mu.Lock()
			defer mu.Unlock()
			if over {
				return then(call)
			}
			if over = call == lastStep; over {
				m.anew()
				return refuse
			}
			return none
		}
		spec := realSpec(t, image)
		spec.Network.Egress = rules(t, "allowed.example")
		_, err := b.Create(limited(t, 40*time.Second), spec)
		return m, spec, err
	}
	m, _, _ := failed(t, func(string) fault { return none })
	whole := m.calls()
	t.Logf("%d calls: %s", len(whole), strings.Join(whole, ", "))
	for _, needed := range []string{"GET /containers/json #1", "GET /networks #1", "DELETE /containers/… #1", "DELETE /networks/… #2"} {
		if !slices.Contains(whole, needed) {
			t.Errorf("no %s", needed)
		}
	}
	t.Run("each", func(t *testing.T) {
		for _, call := range whole {
			for name, how := range faults {
				t.Run(call+"/"+name, func(t *testing.T) {
					t.Parallel()
					_, spec, err := failed(t, func(c string) fault {
						if c == call {
							return how
						}
						return none
					})
					actionable(t, err)
					if l := ofInstance(t, b, spec.Token); len(l) > 0 {
						t.Errorf("left: %v", l)
					}
				})
			}
		}
	})
}

// TestWhatAnEngineWillNotRemoveIsNamed has an engine that removes nothing, so
// that all of a failed creation is left, and is to be found by what is said.
func TestWhatAnEngineWillNotRemoveIsNamed(t *testing.T) {
	plain, image := engine(t)
	b, m := meddled(t, plain.opts)
	b.removeLimit = 3 * time.Second
	over := false
	var mu sync.Mutex
	m.fault = func(call string) fault {
		mu.Lock()
		defer mu.Unlock()
		over = over || call == lastStep
		if call == lastStep || over && strings.HasPrefix(call, "DELETE ") {
			return refuse
		}
		return none
	}
	spec := realSpec(t, image)
	spec.Detached = true // its gateway does not end with us
	spec.Network.Egress = rules(t, "allowed.example")
	_, err := b.Create(limited(t, 40*time.Second), spec)
	if !errors.Is(err, driver.CodeLeaked) || !strings.Contains(err.Error(), hintReap) {
		t.Errorf("it says of no leak, or not what to do: %v", err)
	}
	containers, networks, serr := plain.setOf(t.Context(), raw(t, plain), "")
	if serr != nil {
		t.Fatal(serr)
	}
	sets, found := map[string]bool{}, 0
	for _, c := range containers {
		if c.Labels[driver.LabelInstance] == spec.Token {
			sets[c.Labels[labelSet]], found = true, found+1
			if !strings.Contains(err.Error(), c.ID) {
				t.Errorf("it does not name %v (%s): %v", c.Names, c.ID, err)
			}
		}
	}
	for _, n := range networks {
		if sets[n.Labels[labelSet]] {
			if found++; !strings.Contains(err.Error(), n.ID) {
				t.Errorf("it does not name %s (%s): %v", n.Name, n.ID, err)
			}
		}
	}
	if found != 4 {
		t.Errorf("%d things are left, expected sandbox, gateway and two networks", found)
	}
	for set := range sets {
		if err := plain.removeSet(context.WithoutCancel(t.Context()), raw(t, plain), set); err != nil {
			t.Error(err)
		}
	}
	if l := ofInstance(t, plain, spec.Token); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
}
