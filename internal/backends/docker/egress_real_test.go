//go:build dockertest

package docker

import (
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// attempts is what a program inside tries: Python, with these words.
const attempts = `
import socket, ssl, struct, sys
def tcp(addr, port, words=b"", timeout=1.5):
    with socket.create_connection((addr, port), timeout) as c:
        c.sendall(words)
        return c.recv(4096)
def http(addr, port, host, path="/"):
    return tcp(addr, port, ("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, host)).encode())
def tls(addr, port, name):
    ctx = ssl.create_default_context(); ctx.check_hostname = False; ctx.verify_mode = ssl.CERT_NONE
    with ctx.wrap_socket(socket.create_connection((addr, port), 1.5), server_hostname=name) as c:
        c.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % (name or "x").encode())
        return c.recv(4096)
def udp(addr, port, words=b"x"):
    s = socket.socket(socket.AF_INET6 if ":" in addr else socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
    s.sendto(words, (addr, port)); return s.recv(4096)
def ping(addr):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.settimeout(1)
    s.sendto(struct.pack("!BBHHH", 8, 0, 0xf7ff - 1, 0, 1), (addr, 0)); return s.recv(4096)
def resolve(name): return socket.gethostbyname(name)
def dns(server, name, kind=16):
    q = b"\x12\x34" + struct.pack("!HHHHH", 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack("!HH", kind, 1)
    return udp(server, 53, q)
`

// attempt runs one expression inside, and gives what came of it: "open" with
// what was read, or "closed" with why.
func attempt(t testing.TB, sb driver.Sandbox, expression string) (open bool, what string) {
	t.Helper()
	out, exit := run(t, sb, "python3", "-c", attempts+`
try: got = `+expression+`
except Exception as e: print("closed", type(e).__name__, e); sys.exit()
print("open", got) if got and b"X-Sandboxio-Reason" not in (got if isinstance(got, bytes) else b"") else print("closed", got)
`)
	if exit.Code != 0 {
		t.Fatalf("%s: %+v %s", expression, exit, out)
	}
	return strings.HasPrefix(out, "open "), strings.TrimSpace(out)
}

func rules(t testing.TB, texts ...string) []driver.Rule {
	t.Helper()
	var out []driver.Rule
	for _, s := range texts {
		r, err := driver.ParseRule(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	out, err := driver.Canonical(out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAnAllowlistOpensWhatItNamesAndNothingElse is the whole promise, on a real
// engine, from inside.
func TestAnAllowlistOpensWhatItNamesAndNothingElse(t *testing.T) {
	for name, runtime := range map[string]string{"under runc": "", "under gVisor": "runsc"} {
		t.Run(name, func(t *testing.T) { allowlist(t, runtime) })
	}
}

func allowlist(t *testing.T, runtime string) {
	t.Helper()
	plain, image := engineOn(t, runtime)
	w := newInternet(t, plain, image)
	b := w.backend(t, plain)
	spec := realSpec(t, image)
	spec.Lifetime = 300 * time.Second
	spec.Network.Egress = rules(t, "allowed.example", "rebind.example", "mixed.example", worldCIDR+"/32:7000")
	sb := create(t, b, spec)
	for _, c := range []struct {
		name, expression string
		open             bool
	}{
		{"a name that is allowed", `resolve("allowed.example")`, true},
		{"HTTP to it", `http("allowed.example", 80, "allowed.example")`, true},
		{"TLS to it", `tls("allowed.example", 443, "allowed.example")`, true},
		{"a rule for CIDRs", `tcp("` + worldCIDR + `", 7000)`, true},
		{"a name that is not allowed", `resolve("denied.example")`, false},
		{"HTTP to a bare address", `http("` + worldDenied + `", 80, "denied.example")`, false},
		{"HTTP to a bare address, naming the allowed host (M10)", `http("` + worldDenied + `", 80, "allowed.example")`, false},
		{"TLS to a bare address, naming the allowed host (M10)", `tls("` + worldDenied + `", 443, "allowed.example")`, false},
		{"HTTP to the allowed address, naming another host", `http("` + worldAllowed + `", 80, "denied.example")`, false},
		{"TLS to the allowed address, naming another host", `tls("` + worldAllowed + `", 443, "denied.example")`, false},
		// The router has to accept before it can read a name: what counts is what
		// comes to the world, which is looked at below.
		{"a connection to it that looks made (M27)", `bool(socket.create_connection(("` + worldDenied + `", 443), 1.5))`, true},
		{"and carries nothing (M27)", `tcp("` + worldDenied + `", 443, b"hello\r\n\r\n")`, false},
		{"TLS without a name", `tls("` + worldAllowed + `", 443, None)`, false},
		{"another port of the allowed host (M28)", `http("` + worldAllowed + `", 8080, "allowed.example")`, false},
		{"another port of the CIDR (M28)", `http("` + worldCIDR + `", 80, "allowed.example")`, false},
		{"the CIDR's neighbour", `tcp("` + worldDenied + `", 7000)`, false},
		{"a name that leads to metadata", `resolve("rebind.example")`, false},
		{"a name that leads to metadata among others", `resolve("mixed.example")`, false},
		{"metadata", `http("` + worldMetadata + `", 80, "` + worldMetadata + `")`, false},
		{"a private address", `http("` + worldPrivate + `", 80, "` + worldPrivate + `")`, false},
		{"UDP", `udp("` + worldAllowed + `", 9999)`, false},
		{"QUIC", `udp("` + worldAllowed + `", 443)`, false},
		{"ICMP", `ping("` + worldAllowed + `")`, false},
		{"another resolver", `dns("` + worldResolver + `", "secret.denied.example", 1)`, false},
		{"another resolver over TCP", `tcp("` + worldResolver + `", 53, b"\0\x0c" + bytes(12))`, false},
		{"IPv6", `udp("2001:db8::20", 9999)`, false},
		{"the router of the uplink", `tcp("198.51.100.1", 22)`, false},
	} {
		if open, what := attempt(t, sb, c.expression); open != c.open {
			t.Errorf("%s: %s", c.name, what)
		} else {
			t.Logf("%s: %s", c.name, what)
		}
	}
	// It does not exist, rather than that nobody can say: programs would ask
	// another server, or again and again.
	for name, c := range map[string]struct{ program, says string }{
		"the C library (M12)":          {`import socket; socket.gethostbyname("denied.example")`, "Name or service not known"},
		"the C library, of both (M12)": {`import socket; socket.getaddrinfo("denied.example", 80)`, "Name or service not known"},
		"getent (M12)": {`import subprocess, time
def ask():
    at = time.time()
    r = subprocess.run(["getent", "ahosts", "denied.example"])
    return r.returncode, time.time() - at
asked = [ask() for _ in range(3)]  # one of which a busy machine may start late
raise SystemExit("getent says %s, soon: %s" % ({code for code, _ in asked}, sorted(took for _, took in asked)[1] < 4))`, "getent says {2}, soon: True"},
		"the message itself (M12)": {attempts + `
name = [l.split()[1] for l in open("/etc/resolv.conf") if l.startswith("nameserver")]
raise SystemExit("%d servers, code %d" % (len(name), dns(name[0], "denied.example", 1)[3] & 15))`, "1 servers, code 3"},
	} {
		if out, exit := run(t, sb, "sh", "-c", `exec python3 -c "$0" 2>&1`, c.program); exit.Code == 0 || !strings.Contains(out, c.says) {
			t.Errorf("%s: %q, %+v; want %q", name, out, exit, c.says)
		}
	}
	saw := w.saw(t, plain)
	for _, never := range []string{"udp ", "secret", worldDenied, worldMetadata, worldPrivate, "tcp 22", "tcp 8080"} {
		if strings.Contains(saw, never) {
			t.Errorf("%q came to the world:\n%s", never, saw)
		}
	}
}
