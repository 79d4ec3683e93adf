//go:build dockertest

package docker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// internet is all that gateways can reach in the tests: a network whose router is
// a container that has every address there is, answers on all of them and
// writes down whatever comes.
type internet struct {
	name string
	id   string // of the container
}

const (
	worldAllowed  = "198.51.100.10" // allowed.example
	worldDenied   = "198.51.100.20" // denied.example
	worldCIDR     = "198.51.100.30" // opened by a rule for CIDRs
	worldResolver = "198.51.100.53"
	worldMetadata = "169.254.169.254"
	worldPrivate  = "10.1.2.3" // where a rule opens nothing
)

const worldProgram = `
import fcntl, os, socket, socketserver, ssl, struct, sys, threading, time
def alias(n, addr, mask):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for what, value in ((0x8916, addr), (0x891c, mask)):
        name = b"eth0:%d" % n
        fcntl.ioctl(s, what, struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(value)))
for n, a in enumerate(["198.51.100.1", "198.51.100.20", "198.51.100.30", "198.51.100.53"]): alias(n, a, "255.255.255.0")
for n, a in enumerate(["169.254.169.254", "10.1.2.3"]): alias(10 + n, a, "255.255.255.255")
lock = threading.Lock()
def say(*words):
    with lock: print(*words, flush=True)
names = {"allowed.example": ["198.51.100.10"], "also.example": ["198.51.100.10"], "denied.example": ["198.51.100.20"], "rebind.example": ["169.254.169.254"], "mixed.example": ["198.51.100.10", "10.1.2.3"]}
def dns(q):
    labels, at = [], 12
    while q[at]:
        labels.append(q[at + 1:at + 1 + q[at]].decode("latin1")); at += 1 + q[at]
    name, (kind,) = ".".join(labels), struct.unpack("!H", q[at + 1:at + 3])
    say("dns", name, kind)
    addrs = names.get(name.lower(), []) if kind == 1 else []
    code = 0 if name.lower() in names else 3
    out = q[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(addrs), 0, 0) + q[12:at + 5]
    for a in addrs: out += b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(a)
    return out
def udp(port, answer):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 8, 1)
    s.bind(("", port))
    def loop():
        while True:
            data, anc, _, peer = s.recvmsg(4096, 1024)
            to = socket.inet_ntoa(anc[0][2][4:8])
            if port != 53: say("udp", port, to)
            reply = answer(data)
            s.sendmsg([reply], [(socket.IPPROTO_IP, 8, struct.pack("I4s4s", 0, socket.inet_aton(to), b"\0" * 4))], 0, peer)
    threading.Thread(target=loop, daemon=True).start()
ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
ctx.load_cert_chain("/dev/shm/pem")
def tcp(port, serve):
    class H(socketserver.BaseRequestHandler):
        def handle(self):
            say("tcp", port, self.request.getsockname()[0])
            try: serve(self.request)
            except OSError: pass
    class S(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads, request_queue_size = True, True, 1024
    server = S(("", port), H)
    # As fast as the way allows: a congestion control that paces would be what is measured.
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    threading.Thread(target=server.serve_forever, daemon=True).start()
def http(c):
    f = c.makefile("rb")
    while True:
        line = f.readline()
        if not line: return
        n = 0
        while True:
            h = f.readline()
            if h in (b"\r\n", b"\n", b""): break
            if h.lower().startswith(b"content-length:"): n = int(h.split(b":")[1])
        f.read(n)
        path = line.split()[1].decode()
        if path.startswith("/zeros/"):
            left = int(path[7:]); c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
            block = bytes(1 << 20)
            while left: c.sendall(block[:min(left, len(block))]); left -= min(left, len(block))
            continue
        if path == "/for-ever":
            c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True: c.sendall(bytes(1 << 16)); time.sleep(0.002) # some 30 MB a second, which leaves others the machine
        body = ("alive at %s\n" % c.getsockname()[0]).encode()
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
def tls(c):
    with ctx.wrap_socket(c, server_side=True) as t: http(t)
def line(c): c.sendall(b"alive\n")
for p in (80, 8080): tcp(p, http)
for p in (443, 8443): tcp(p, tls)
for p in (22, 7000): tcp(p, line)
tcp(853, line)
def hold():
    import resource, selectors
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    s, ready, held = socket.create_server(("", 8081), backlog=4096), selectors.DefaultSelector(), []
    ready.register(s, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is s:
                c, _ = s.accept(); held.append(c); ready.register(c, selectors.EVENT_READ)
            elif key.fileobj.recv(4096): key.fileobj.sendall(b"HTTP/1.1 200 OK\r\n\r\nheld\n")
            else: ready.unregister(key.fileobj); key.fileobj.close()
threading.Thread(target=hold, daemon=True).start()
def dns_stream(c):
    f = c.makefile("rb")
    while True:
        n = f.read(2)
        if not n: return
        r = dns(f.read(struct.unpack("!H", n)[0])); c.sendall(struct.pack("!H", len(r)) + r)
tcp(53, dns_stream)
udp(53, dns)
for p in (443, 123, 9999): udp(p, lambda d: b"alive")
say("ready")
threading.Event().wait()
`

// newInternet makes one, which the test's end removes.
func newInternet(t testing.TB, b *Backend, image string) *internet {
	t.Helper()
	cli := raw(t, b)
	w := &internet{name: "world-" + nonce()}
	yes := true
	made, err := cli.NetworkCreate(t.Context(), w.name, client.NetworkCreateOptions{Driver: "bridge", EnableIPv4: &yes,
		Options: map[string]string{"com.docker.network.bridge.inhibit_ipv4": "true", "com.docker.network.bridge.enable_ip_masquerade": "false"},
		Labels:  looseConfig("", "-").Labels,
		IPAM:    &network.IPAM{Config: []network.IPAMConfig{{Subnet: netip.MustParsePrefix("198.51.100.0/24"), Gateway: netip.MustParseAddr("198.51.100.1"), IPRange: netip.MustParsePrefix("198.51.100.128/25")}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.removeNetwork(cleanup(t), cli, made.ID); err != nil {
			t.Error(err)
		}
	})
	c := looseConfig(image, "sh", "-c", `printf '%s' "$PEM" > /dev/shm/pem && exec python3 -c "$PROGRAM"`)
	c.Env = []string{"PEM=" + certificate(t), "PROGRAM=" + worldProgram}
	res, err := cli.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: c,
		HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(w.name), CapAdd: []string{"NET_ADMIN"}},
		NetworkingConfig: &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			w.name: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: netip.MustParseAddr(worldAllowed)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	w.id = res.ID
	t.Cleanup(func() {
		if err := b.remove(cleanup(t), cli, w.id); err != nil {
			t.Error(err)
		}
	})
	if _, err := cli.ContainerStart(t.Context(), w.id, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the world is ready", func() bool { return strings.Contains(w.saw(t, b), "ready") })
	return w
}

// saw is what came to the world so far, a line each.
func (w *internet) saw(t testing.TB, b *Backend) string {
	t.Helper()
	said, err := logs(t.Context(), raw(t, b), w.id, 10000)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// backend is another backend on the same engine, whose gateways have the world
// for an uplink.
func (w *internet) backend(t testing.TB, b *Backend) *Backend {
	t.Helper()
	opts := b.opts
	opts.Uplink, opts.DNS = w.name, worldResolver
	out, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	return out
}

// certificate is one for no name in particular, with its key.
func certificate(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// gated is a sandbox with these rules before an internet of its own, and the
// backend that made it.
func gated(t *testing.T, allowed ...string) (*Backend, driver.Sandbox) {
	t.Helper()
	plain, image := engine(t)
	b := newInternet(t, plain, image).backend(t, plain)
	spec := realSpec(t, image)
	spec.Lifetime = 300 * time.Second
	spec.Network.Egress = rules(t, allowed...)
	return b, create(t, b, spec)
}
