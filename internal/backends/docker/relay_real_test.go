//go:build dockertest

package docker

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// relaysOf are the processes of a gateway's relays. The engine is on this
// machine.
func relaysOf(t testing.TB, b *Backend, gate string) []int {
	t.Helper()
	cli := raw(t, b)
	top, err := cli.ContainerTop(t.Context(), gate, client.ContainerTopOptions{Arguments: []string{"-eo", "pid,args"}})
	if err != nil {
		t.Fatal(err)
	}
	var relays []int
	for _, p := range top.Processes {
		if strings.HasSuffix(p[1], " relay") {
			pid, err := strconv.Atoi(p[0])
			if err != nil {
				t.Fatal(err)
			}
			relays = append(relays, pid)
		}
	}
	return relays
}

// TestARelayOfAGatewayHasNoPrivileges looks at a relay from outside: what the gateway has given
// up, it never had.
func TestARelayOfAGatewayHasNoPrivileges(t *testing.T) {
	plain, image := engine(t)
	w := newInternet(t, plain, image)
	b := w.backend(t, plain)
	spec := realSpec(t, image)
	spec.Network.Egress = rules(t, "allowed.example")
	sb := create(t, b, spec)
	gate := gatewayOf(t, b, sb)
	uid := procUID(t, raw(t, b), gate)
	relays := relaysOf(t, b, gate)
	if len(relays) != 1 {
		t.Fatalf("%d relays are ready", len(relays))
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", relays[0]))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Uid": strings.Join([]string{uid, uid, uid, uid}, "\t"), "Gid": strings.Join([]string{uid, uid, uid, uid}, "\t"), "Groups": "",
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapAmb": "0000000000000000",
		"NoNewPrivs": "1", "Seccomp": "2",
	} {
		m := regexp.MustCompile(`(?m)^` + name + `:[ \t]*(.*?)[ \t]*$`).FindSubmatch(status)
		if m == nil || string(m[1]) != want {
			t.Errorf("%s: %q, want %q", name, m, want)
		}
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", relays[0]))
	if err != nil || !regexp.MustCompile(`^GOMEMLIMIT=\d+\x00$`).Match(env) {
		t.Errorf("its environment is %q, %v", env, err)
	}
	// What is not dumpable belongs to root.
	info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", relays[0]))
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 {
		t.Errorf("another program of its user may look into it: %+v", st)
	}
}

// TestAKilledRelayOfAGateway ends what it carried, and nothing else.
func TestAKilledRelayOfAGateway(t *testing.T) {
	b, sb := gated(t, "allowed.example")
	gate := gatewayOf(t, b, sb)
	p, err := sb.Start(t.Context(), driver.Cmd{Timeout: driver.DefaultTimeout, Args: []string{"python3", "-c", `
import socket
c = socket.create_connection((socket.gethostbyname("allowed.example"), 80), 20)
c.sendall(b"GET /for-ever HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
c.recv(1 << 16)
print("flows", flush=True)
try:
    while c.recv(1 << 16): pass
except ConnectionError: pass
print("ended", flush=True)
`}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill(cleanup(t)) })
	var said string
	hear := func(words string) {
		t.Helper()
		for !strings.Contains(said, words) {
			c, err := p.Recv(t.Context())
			if err != nil {
				t.Fatalf("%v after %q", err, said)
			}
			said += string(c.Data)
		}
	}
	hear("flows")
	was := relaysOf(t, b, gate)
	if len(was) != 1 {
		t.Fatalf("%d relays", len(was))
	}
	if err := syscall.Kill(was[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	hear("ended")
	if open, what := attempt(t, sb, `http("allowed.example", 80, "allowed.example")`); !open {
		t.Errorf("a new connection: %s", what)
	}
	now := relaysOf(t, b, gate)
	if len(now) != 1 || slices.Contains(now, was[0]) {
		t.Errorf("the relays %v after %v", now, was)
	}
	if open, what := attempt(t, sb, `http("allowed.example", 80, "denied.example")`); open {
		t.Errorf("a denied name: %s", what)
	}
	// With the gateway goes what carries for it.
	if _, err := raw(t, b).ContainerKill(t.Context(), gate, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the relay is gone", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", now[0]))
		return os.IsNotExist(err)
	})
}
