package prove

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// edit takes a protection away: a text of a file, which stands there once, for
// another.
type edit struct{ file, old, new string }

// mutant is a build without one protection. It is never shipped: the file in
// the tree stays as it is, and the compiler is given another.
type mutant struct {
	lacks Protection
	edits []edit
	adds  map[string]string // files more
}

const (
	gateway = "../gateway/"
)

var (
	anyLater = edit{gateway + "tunnel.go", "case !next.to.same(first, port):", "case false && !next.to.same(first, port):"}
	anyHosts = edit{gateway + "head.go", "if len(hosts) > 1 || len(hosts) == 0 && h.method != methodTunnel {", "if len(hosts) == 0 && h.method != methodTunnel {"}
	upgrades = []edit{
		{gateway + "head.go", `if len(h.values("Upgrade")) > 0 || len(h.values("HTTP2-Settings")) > 0 {`, "if false {"},
		{gateway + "head.go", `case "close", "keep-alive", "te", "proxy-connection":`, `case "close", "keep-alive", "te", "proxy-connection", "http2-settings":`},
		{gateway + "head.go", "			case \"upgrade\":\n				return refuse(egress.Upgrade, \"\")\n", "			case \"upgrade\":\n"},
	}
	anyAgain  = edit{gateway + "handshake.go", "if hello.ServerName != h.name {", "if false {"}
	anyHidden = edit{gateway + "hello.go", "case covered:", "case false:"}
	noName    = edit{gateway + "hello.go", "		return \"\", refuse(egress.NoServerName, \"\")\n	}", "	}"}
	twice     = edit{gateway + "hello.go", "if seen[kind] {", "if false {"}
)

// gateways are mutants of the gateway, the finest first.
var gateways = []mutant{
	{lacks: "each request's host", edits: []edit{anyLater}},
	{lacks: "each ClientHello's host", edits: []edit{anyAgain}},
	{lacks: "one host field", edits: []edit{anyHosts}},
	{lacks: "no upgrades", edits: upgrades},
	{lacks: "no hidden names", edits: []edit{anyHidden}},
	{lacks: "pins", edits: []edit{{gateway + "router.go", `case named.host != "" && !r.pins.Has(named.host, to.Addr(), time.Now()):`, "case false:"}, {gateway + "router.go", `	"time"` + "\n", ""}}},
	{lacks: "resolver's names", edits: []edit{{gateway + "resolver.go", "if d := r.opts.Policy.Resolve(host); !d.Allowed {", "if d := r.opts.Policy.Resolve(host); false {"}}},
	{lacks: "router's rules", edits: []edit{{gateway + "router.go", "		err = r.allow(o.to, to)\n", "		err = nil\n"}}},
	{lacks: "names in TLS", edits: []edit{noName, twice, {gateway + "router.go", "		err = r.allow(o.to, to)\n", "		err = nil\n"}}},
	{lacks: "questions made anew", edits: []edit{{gateway + "resolver.go", "	a, code, ok := readQuestion(packet)\n	switch {\n", "	a, code, ok := readQuestion(packet)\n	if len(packet) > 12 {\n		return nil, &Query{Packet: packet, asked: a}\n	}\n	switch {\n"}}},
	{lacks: "packet filter", edits: []edit{
		{gateway + "kernel/nft_linux.go", "gateway.Drop: nftables.ChainPolicyDrop}", "gateway.Drop: nftables.ChainPolicyAccept}"},
		{gateway + "kernel/expressions_linux.go", "&expr.Verdict{Kind: expr.VerdictDrop}", "&expr.Verdict{Kind: expr.VerdictAccept}"},
	}},
	{lacks: "a look at connections", edits: []edit{{gateway + "router.go", "	var o opening\n", `	if server, err := r.connect(ctx, to); err == nil {
		defer server.Close()
		_ = relay(ctx, client, server, func() error { _, err := bufio.NewReader(client).WriteTo(server); return err })
		return nil, authority{}, false
	}
	var o opening
`}}},
}

var (
	anyTarget = []edit{
		{gateway + "proxy.go", "	if !d.Allowed {\n		return nil, to.addr, d.Reason\n	}\n	addrs :=", "	addrs :="},
		{gateway + "proxy.go", "d := p.policy.Decide(egress.Request{Host: to.host, Addr: to.addr, Port: to.port})\n", ""},
		{gateway + "proxy.go", "if d := p.policy.Decide(egress.Request{Host: to.host, Addr: a, Port: to.port}); !d.Allowed {", "if d := p.policy.Decide(egress.Request{Host: to.host, Addr: a, Port: to.port}); false {"},
	}
	// Where an address has become the machine's own is looked at again.
	anyDial   = edit{"../outlet/outlet.go", "case !now.Reach(to):", "case false && now == nil:"}
	anyInside = edit{gateway + "proxy.go", "if err == nil && !o.to.same(h.to, h.to.port) {", "if false {"}
)

// proxies are mutants of the proxy, the finest first.
var proxies = []mutant{
	{lacks: "each request's host", edits: []edit{anyLater}},
	{lacks: "each ClientHello's host", edits: []edit{anyAgain}},
	{lacks: "one host field", edits: []edit{anyHosts}},
	{lacks: "no upgrades", edits: upgrades},
	{lacks: "no hidden names", edits: []edit{anyHidden}},
	{lacks: "the addresses of names", edits: []edit{anyTarget[2], anyDial}},
	{lacks: "the same name inside", edits: []edit{anyInside}},
	{lacks: "names in TLS", edits: []edit{noName, twice, anyInside}},
	{lacks: "proxy's rules", edits: append([]edit{anyDial}, anyTarget...)},
	{lacks: "a look at connections", edits: []edit{anyDial, {gateway + "proxy.go", "	r := bufio.NewReader(client)\n	var h *head\n", "	r := bufio.NewReader(client)\n	if naive(ctx, p, client, r) {\n		return\n	}\n	var h *head\n"}},
		adds: map[string]string{gateway + "naive.go": naive}},
}

// naive is a proxy as one writes it who thinks of nothing bad: it takes names
// and addresses in every spelling, and relays.
const naive = `package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

func naive(ctx context.Context, p *Proxy, client net.Conn, r *bufio.Reader) bool {
	line, err := r.ReadString('\n')
	if err != nil {
		return true
	}
	parts := strings.Fields(line)
	if len(parts) < 2 {
		return true
	}
	target, port := parts[1], uint64(80)
	if _, rest, ok := strings.Cut(target, "://"); ok {
		target, _, _ = strings.Cut(rest, "/")
	}
	_, target, _ = strings.Cut("@"+target, "@")
	if at := strings.LastIndexByte(target, '@'); at >= 0 {
		target = target[at+1:]
	}
	target, _, _ = strings.Cut(target, "\x00")
	if at := strings.LastIndexByte(target, ':'); at > strings.LastIndexByte(target, ']') {
		if n, err := strconv.ParseUint(target[at+1:], 10, 16); err == nil {
			port = n
		}
		target = target[:at]
	}
	addr, err := netip.ParseAddr(strings.Trim(target, "[]"))
	if err != nil {
		if a, ok := spelled(target); ok {
			addr = a
		} else if found, err := p.names.find(ctx, strings.ToLower(strings.TrimSuffix(target, "."))); err == nil && len(found) > 0 {
			addr = found[0]
		} else {
			return true
		}
	}
	server, err := p.connect(ctx, netip.AddrPortFrom(addr.Unmap(), uint16(port)))
	if err != nil {
		return true
	}
	defer server.Close()
	if parts[0] == "CONNECT" {
		for line != "\r\n" {
			if line, err = r.ReadString('\n'); err != nil {
				return true
			}
		}
		if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return true
		}
	} else if _, err := io.WriteString(server, line); err != nil {
		return true
	}
	_ = relay(ctx, client, server, func() error { _, err := io.Copy(server, r); return err })
	return true
}

// spelled reads an address as inet_aton does.
func spelled(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var all uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			all += n
			break
		}
		all += n << (24 - 8*i)
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}
`

// overlay writes the mutant's files, and what tells the compiler of them.
func (m mutant) overlay(t testing.TB, dir string) string {
	t.Helper()
	texts := maps.Clone(m.adds)
	if texts == nil {
		texts = map[string]string{}
	}
	for _, e := range m.edits {
		text, ok := texts[e.file]
		if !ok {
			read, err := os.ReadFile(e.file)
			if err != nil {
				t.Fatal(err)
			}
			text = string(read)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("without %q: %s has %d times:\n%s", m.lacks, e.file, n, e.old)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for name, text := range texts {
		at, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[at] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(out, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// Whoever changes what a mutant is made from sees it here, before an engine
// does.
func TestEveryMutantCanBeMade(t *testing.T) {
	t.Parallel()
	for _, m := range slices.Concat(gateways, proxies) {
		t.Run(string(m.lacks), func(t *testing.T) { m.overlay(t, t.TempDir()) })
	}
}
