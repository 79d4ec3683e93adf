//go:build dockertest

package docker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// gatewayOf is the id of a sandbox's gateway.
func gatewayOf(t testing.TB, b *Backend, sb driver.Sandbox) string {
	t.Helper()
	s, ok := sb.(*sandbox)
	if !ok {
		t.Fatalf("%T", sb)
	}
	containers, _, err := b.setOf(t.Context(), raw(t, b), s.set)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		if isGateway(c.Labels, programOf(c)) {
			return c.ID
		}
	}
	t.Fatal("there is no gateway")
	return ""
}

// networksOf are a sandbox's networks.
func networksOf(t testing.TB, b *Backend, sb driver.Sandbox) []network.Summary {
	t.Helper()
	_, networks, err := b.setOf(t.Context(), raw(t, b), sb.(*sandbox).set) //nolint:forcetypeassert // it is ours
	if err != nil {
		t.Fatal(err)
	}
	return networks
}

// left lists what carries a sandbox's set, past List.
func left(t testing.TB, b *Backend, set string) []string {
	t.Helper()
	containers, networks, err := b.setOf(t.Context(), raw(t, b), set)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range containers {
		out = append(out, fmt.Sprint(c.Names, c.State))
	}
	for _, n := range networks {
		out = append(out, n.Name)
	}
	return out
}

// TestADeadGatewayMeansNoNetwork kills it while bytes flow, through the router
// and straight through the packet filter: not one passes afterwards.
func TestADeadGatewayMeansNoNetwork(t *testing.T) {
	plain, image := engine(t)
	w := newInternet(t, plain, image)
	b := w.backend(t, plain)
	for _, c := range []struct{ name, addr, host string }{
		{"through the router (M17)", `socket.gethostbyname("allowed.example")`, "allowed.example"},
		{"straight through (M17)", `"` + worldCIDR + `"`, "x.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := realSpec(t, image)
			spec.Lifetime = 300 * time.Second
			spec.Network.Egress = rules(t, "allowed.example", worldCIDR+"/32:80")
			sb := create(t, b, spec)
			gate := gatewayOf(t, b, sb)
			// It counts what arrives, for ever, in a file that is looked at.
			p, err := sb.Start(t.Context(), driver.Cmd{Timeout: driver.DefaultTimeout, Args: []string{"python3", "-c", `
import socket
c = socket.create_connection((` + c.addr + `, 80), 5)
c.settimeout(None)
c.sendall(b"GET /for-ever HTTP/1.1\r\nHost: ` + c.host + `\r\n\r\n")
n = 0
while True:
    got = c.recv(1 << 16)
    n += len(got)
    with open("/work/new", "w") as f: f.write(str(n) if got else "end")
    import os; os.rename("/work/new", "/work/count")
    if not got: break
`}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Kill(cleanup(t)) })
			count := func() int {
				n, _ := strconv.Atoi(strings.TrimSpace(sh(t, sb, "cat /work/count 2>/dev/null")))
				return n
			}
			eventually(t, 20*time.Second, "bytes flow", func() bool { return count() > 1<<20 })
			if _, err := raw(t, b).ContainerKill(t.Context(), gate, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
				t.Fatal(err)
			}
			eventually(t, 20*time.Second, "the gateway is gone", func() bool { return isGone(t, b, gate) })
			sh(t, sb, "sleep 0.3") // what had arrived before is counted
			before := count()
			for name, try := range map[string]string{
				"a new connection": `http(` + c.addr + `, 80, "` + c.host + `")`,
				"an address":       `tcp("` + worldCIDR + `", 80)`,
				"a name":           `resolve("allowed.example")`,
				"a datagram":       `udp("` + worldAllowed + `", 9999)`,
			} {
				if open, what := attempt(t, sb, try); open {
					t.Errorf("%s without a gateway: %s", name, what)
				}
			}
			if after := count(); after != before {
				t.Errorf("%d bytes passed without a gateway", after-before)
			}
		})
	}
}

// TestM36ARestartOpensNothing sends without a pause while the gateway ends and
// comes up again: what it lets through afterwards is what it let through before.
func TestM36ARestartOpensNothing(t *testing.T) {
	plain, image := engine(t)
	w := newInternet(t, plain, image)
	b := w.backend(t, plain)
	spec := realSpec(t, image)
	spec.Detached, spec.Lifetime = true, 300*time.Second
	spec.Network.Egress = rules(t, "allowed.example")
	sb := create(t, b, spec)
	gate := gatewayOf(t, b, sb)
	p, err := sb.Start(t.Context(), driver.Cmd{Timeout: driver.DefaultTimeout, Args: []string{"python3", "-c", `
import socket, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.setblocking(False)
n = 0
while True:
    for port in (9999, 443, 53):
        try: u.sendto(b"x", ("` + worldDenied + `", port))
        except OSError: pass
    s = socket.socket(); s.setblocking(False)
    try: s.connect(("` + worldDenied + `", 22))
    except OSError: pass
    n += 1
    if n % 100 == 0: open("/work/sent", "w").write(str(n))
    time.sleep(0.002); s.close()
`}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill(cleanup(t)) })
	sent := func() int {
		n, _ := strconv.Atoi(strings.TrimSpace(sh(t, sb, "cat /work/sent 2>/dev/null")))
		return n
	}
	eventually(t, 20*time.Second, "it sends", func() bool { return sent() > 0 })
	for range 3 {
		if _, err := raw(t, b).ContainerRestart(t.Context(), gate, client.ContainerRestartOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "what is allowed works again", func() bool {
			open, _ := attempt(t, sb, `http("allowed.example", 80, "allowed.example")`)
			return open
		})
	}
	before := sent()
	eventually(t, 20*time.Second, "it sends on", func() bool { return sent() > before })
	if saw := w.saw(t, plain); strings.Contains(saw, "udp ") || strings.Contains(saw, worldDenied) {
		t.Errorf("it came to the world:\n%s", saw)
	}
}

// TestAGatewayThatIsTakenOverGetsNoFurther speaks from inside the gateway, as
// its own user: what protects the sandbox from metadata and neighbours protects
// it from the gateway's own faults too.
func TestAGatewayThatIsTakenOverGetsNoFurther(t *testing.T) {
	plain, image := engine(t)
	w := newInternet(t, plain, image)
	b := w.backend(t, plain)
	spec := realSpec(t, image)
	spec.Network.Egress = rules(t, "allowed.example")
	sb := create(t, b, spec)
	gate := gatewayOf(t, b, sb)
	cli := raw(t, b)
	uid := procUID(t, cli, gate)
	if uid == "0" {
		t.Fatal("the gateway runs as root")
	}
	try := func(user, expression string) string {
		c := looseConfig(image, "python3", "-c", attempts+"\ntry: print('open', "+expression+")\nexcept Exception as e: print('closed', type(e).__name__, e)\n")
		c.User = user
		made, err := cli.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: c, HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode("container:" + gate)}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.remove(cleanup(t), cli, made.ID) }()
		return strings.TrimSpace(runRaw(t, b, made.ID))
	}
	for _, c := range []struct {
		name, user, expression string
		open                   bool
	}{
		{"what the router may do", uid, `http("` + worldAllowed + `", 80, "allowed.example")`, true},
		{"metadata", uid, `http("` + worldMetadata + `", 80, "` + worldMetadata + `")`, false},
		{"a private neighbour", uid, `http("` + worldPrivate + `", 80, "` + worldPrivate + `")`, false},
		{"another port", uid, `tcp("` + worldAllowed + `", 22)`, false},
		{"a datagram", uid, `udp("` + worldAllowed + `", 9999)`, false},
		{"another user's connection", "12345:12345", `http("` + worldAllowed + `", 80, "allowed.example")`, false},
		{"root's connection", "0:0", `http("` + worldAllowed + `", 80, "allowed.example")`, false},
	} {
		if got := try(c.user, c.expression); strings.HasPrefix(got, "open") != c.open {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// procUID is who the programs of a gateway run as.
func procUID(t testing.TB, cli *client.Client, id string) string {
	t.Helper()
	top, err := cli.ContainerTop(t.Context(), id, client.ContainerTopOptions{Arguments: []string{"-eo", "uid,pid,comm"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Processes) < 2 {
		t.Fatalf("a gateway without a relay: %v", top.Processes)
	}
	for _, p := range top.Processes {
		if p[0] != top.Processes[0][0] {
			t.Fatalf("several users: %v", top.Processes)
		}
	}
	return top.Processes[0][0]
}

// TestTheHostAndItsBridgesAreClosed is the way out that everybody has: an
// uplink of the gateway's own, and the host for its router.
func TestTheHostAndItsBridgesAreClosed(t *testing.T) {
	b, image := engine(t)
	cli := raw(t, b)
	server := `import socketserver
class H(socketserver.BaseRequestHandler):
    def handle(self): self.request.recv(1000); self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nalive\n")
class S(socketserver.ThreadingTCPServer): allow_reuse_address = True
S(("", 18123), H).serve_forever()`
	neighbour := bystander(t, cli, image, "bridge", server)
	bystander(t, cli, image, "host", server)
	control := bystander(t, cli, image, "bridge", "import time\nwhile True: time.sleep(60)")
	info, err := cli.ContainerInspect(t.Context(), neighbour, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bridge := info.Container.NetworkSettings.Networks["bridge"]
	open := bridge.Gateway.String()
	spec := realSpec(t, image)
	spec.Lifetime = 300 * time.Second
	spec.Network.Egress = rules(t, "0.0.0.0/0:18123")
	closed := create(t, b, spec)
	var uplink string
	for _, n := range networksOf(t, b, closed) {
		if strings.Contains(n.Name, "uplink") {
			uplink = n.IPAM.Config[0].Gateway.String()
		}
	}
	for _, at := range []string{open, bridge.IPAddress.String()} {
		eventually(t, 60*time.Second, "the control reaches "+at, func() bool { return answers(t.Context(), cli, control, at+":18123") == nil })
	}
	for name, at := range map[string]string{"the host, by its default bridge": open, "the host, by the gateway's uplink": uplink, "a neighbour on another bridge": bridge.IPAddress.String(),
		"metadata": worldMetadata, "the host's loopback": "127.0.0.1"} {
		if reached, what := attempt(t, closed, `http("`+at+`", 18123, "x.example")`); reached {
			t.Errorf("%s: %s", name, what)
		}
	}
	// The proof can fail: a rule that names the host opens it, by the same way.
	spec = realSpec(t, image)
	spec.Lifetime = 300 * time.Second
	spec.Network.Egress = rules(t, open+"/32:18123")
	if reached, what := attempt(t, create(t, b, spec), `http("`+open+`", 18123, "x.example")`); !reached {
		t.Errorf("a rule that names the host: %s", what)
	}
}

// TestAPoolThatIsUsedUpIsAnError asks for one sandbox more than it has room for.
func TestAPoolThatIsUsedUpIsAnError(t *testing.T) {
	plain, image := engine(t)
	opts := plain.opts
	opts.AddressPool = "198.19.255.240/28"
	b, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	spec := func() driver.Spec {
		s := realSpec(t, image)
		s.Network.Egress = rules(t, "allowed.example")
		return s
	}
	first := create(t, b, spec())
	two := spec()
	_, err = b.Create(t.Context(), two)
	if e, ok := errors.AsType[*driver.Error](err); !ok || e.Code != driver.CodeExhausted || !strings.Contains(e.Hint, "address_pool") {
		t.Errorf("%v", err)
	}
	if l := ofInstance(t, b, two.Token); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
	if err := first.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, b, spec()) // there is room again
}

// TestASandboxThatEndsByItselfLeavesNothingForLong is found by a sweep, whoever
// sweeps.
func TestASandboxThatEndsByItselfLeavesNothingForLong(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	spec.Detached, spec.Lifetime = true, 2*time.Second
	spec.Network.Egress = rules(t, "allowed.example")
	sb := create(t, b, spec)
	set := sb.(*sandbox).set //nolint:forcetypeassert // it is ours
	eventually(t, 20*time.Second, "the sandbox has ended", func() bool { return isGone(t, b, sb.Status().ID) })
	var found []driver.Status
	for st, err := range b.List(t.Context(), map[string]string{driver.LabelInstance: spec.Token, "test": t.Name()}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, st)
	}
	if len(found) != 1 || found[0].Overdue(time.Now().Add(time.Hour)) == "" || found[0].Facts.Instance != spec.Token {
		t.Fatalf("%+v of %v", found, left(t, b, set))
	}
	other, err := b.Attach(t.Context(), found[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Start(t.Context(), driver.Cmd{Args: []string{"true"}, Timeout: time.Second}); driver.CodeOf(err) != driver.CodeGone {
		t.Errorf("a program in what is left: %v", err)
	}
	if err := other.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if l := left(t, b, set); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
}

// TestDenialsAreTold by the gateway as soon as the program that was refused has
// ended: to the sandbox's creator, to who attaches later, and after its end.
func TestDenialsAreTold(t *testing.T) {
	for _, detached := range []bool{false, true} {
		t.Run(map[bool]string{false: "owned", true: "detached"}[detached], func(t *testing.T) {
			plain, image := engine(t)
			b := newInternet(t, plain, image).backend(t, plain)
			spec := realSpec(t, image)
			spec.Lifetime, spec.Detached = 300*time.Second, detached
			spec.Network.Egress = rules(t, "allowed.example", "nowhere.example")
			sb := create(t, b, spec)
			joined, err := b.Attach(t.Context(), sb.Status().ID)
			if err != nil {
				t.Fatal(err)
			}
			tells := func(s driver.Sandbox, want func(driver.Denial) bool) {
				t.Helper()
				d, _ := driver.As[driver.Denier](s)
				got, err := d.Denied(t.Context())
				if err != nil || !slices.ContainsFunc(got.Told, want) {
					t.Errorf("%+v, %v", got, err)
				}
				if strings.Contains(fmt.Sprint(got), "secret") {
					t.Errorf("it tells what was sent: %+v", got)
				}
			}
			at := func(host, addr string, port int, reason string) func(driver.Denial) bool {
				return func(d driver.Denial) bool {
					return d.Host == host && (addr == "" || d.Addr.String() == addr) && d.Port == uint16(port) && d.Reason == reason && d.Count > 0
				}
			}
			named := at("denied.example", "", 0, "host")
			for name, c := range map[string]struct {
				does string
				want func(driver.Denial) bool
			}{
				"a name that no rule has": {`resolve("denied.example")`, named},
				"a name that nobody has":  {`resolve("nowhere.example")`, at("nowhere.example", "", 0, "unresolved")},
				"another host":            {`http("` + worldDenied + `", 80, "denied.example", "/secret-path")`, at("denied.example", worldDenied, 80, "host")},
				"a packet, not waited on": {`socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"secret", ("` + worldAllowed + `", 9998)) and None`, at("", worldAllowed, 9998, "not-tcp")},
				"a connection":            {`tcp("` + worldPrivate + `", 7000)`, at("", worldPrivate, 7000, "protected")},
			} {
				t.Run(name, func(t *testing.T) {
					if open, what := attempt(t, sb, c.does); open {
						t.Fatal(what)
					}
					tells(sb, c.want)
					tells(joined, c.want)
				})
			}
			for i := range 10 {
				host := fmt.Sprintf("again-%d.example", i)
				attempt(t, sb, `resolve("`+host+`")`)
				tells(map[bool]driver.Sandbox{false: sb, true: joined}[i%2 == 1], at(host, "", 0, "host"))
			}
			attempt(t, sb, `resolve("last.example")`)
			if err := sb.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			tells(sb, at("last.example", "", 0, "host"))
			tells(sb, named)
			tells(joined, named) // as it was told before
		})
	}
}

// TestAGatewayThatDoesNotAnswerIsSaid, and keeps nothing from being removed.
func TestAGatewayThatDoesNotAnswerIsSaid(t *testing.T) {
	b, sb := gated(t, "allowed.example")
	cli := raw(t, b)
	gate := gatewayOf(t, b, sb)
	if _, err := cli.ContainerPause(t.Context(), gate, client.ContainerPauseOptions{}); err != nil {
		t.Fatal(err)
	}
	d, _ := driver.As[driver.Denier](sb)
	if got, err := d.Denied(t.Context()); driver.CodeOf(err) != driver.CodeUnavailable || len(got.Told) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	joined, err := b.Attach(t.Context(), sb.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	if d, _ := driver.As[driver.Denier](joined); true {
		if got, err := d.Denied(t.Context()); driver.CodeOf(err) != driver.CodeUnavailable || len(got.Told) > 0 {
			t.Errorf("who attached: %+v, %v", got, err)
		}
	}
	if _, err := cli.ContainerUnpause(t.Context(), gate, client.ContainerUnpauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Denied(t.Context()); err != nil {
		t.Errorf("it goes on: %v", err)
	}
	if _, err := cli.ContainerPause(t.Context(), gate, client.ContainerPauseOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := sb.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if l := ofInstance(t, b, sb.Status().Facts.Instance); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
}

// TestAGatewayThatIsKilledTellsNoZero: to who heard it, what that was; to who
// never did, that it is not known.
func TestAGatewayThatIsKilledTellsNoZero(t *testing.T) {
	b, sb := gated(t, "allowed.example")
	var handles []driver.Denier
	for range 2 {
		joined, err := b.Attach(t.Context(), sb.Status().ID)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := driver.As[driver.Denier](joined)
		handles = append(handles, d)
	}
	attempt(t, sb, `resolve("denied.example")`)
	if got, err := handles[0].Denied(t.Context()); err != nil || len(got.Told) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	gate := gatewayOf(t, b, sb)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = raw(t, b).ContainerKill(t.Context(), gate, client.ContainerKillOptions{Signal: "SIGKILL"})
	}()
	eventually(t, 60*time.Second, "it has ended", func() bool { // and is asked meanwhile
		if got, err := handles[0].Denied(t.Context()); err == nil && len(got.Told) != 1 {
			t.Errorf("who heard it: %+v", got)
		}
		got, err := handles[1].Denied(t.Context())
		if err == nil && !got.Unknown && len(got.Told) != 1 {
			t.Errorf("who never did: %+v", got)
		}
		_, err = raw(t, b).ContainerInspect(t.Context(), gate, client.ContainerInspectOptions{})
		return absent(err)
	})
	<-over
	own, _ := driver.As[driver.Denier](sb)
	for name, d := range map[string]driver.Denier{"who attached": handles[0], "its owner": own} {
		if got, err := d.Denied(t.Context()); err != nil || got.Unknown == (len(got.Told) == 1) {
			t.Errorf("%s, afterwards: %+v, %v", name, got, err)
		}
	}
}
