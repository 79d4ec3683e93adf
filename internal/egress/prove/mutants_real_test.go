//go:build dockertest

package prove

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
)

var update = flag.Bool("update", false, "write shown.json")

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
	anyHidden = edit{gateway + "hello.go", "case covered:", "case false:"}
	noName    = edit{gateway + "hello.go", "		return \"\", refuse(egress.NoServerName, \"\")\n	}", "	}"}
	twice     = edit{gateway + "hello.go", "if seen[kind] {", "if false {"}
)

// gateways are mutants of the gateway, the finest first.
var gateways = []mutant{
	{lacks: "each request's host", edits: []edit{anyLater}},
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
		{gateway + "proxy.go", "	if !d.Allowed {\n		return nil, d.Reason\n	}\n	addrs :=", "	addrs :="},
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

// study is one protection that is taken away in a mode.
type study struct {
	mode  Mode
	lacks Protection
	open  func(t testing.TB, only []string) []string // lists what came through
}

// studies are all of them, the finest of a mode first.
func (s *site) studies() []study {
	var out []study
	for _, g := range gateways {
		out = append(out, study{Transparent, g.lacks, func(t testing.TB, only []string) []string {
			t.Helper()
			at := filepath.Join(t.TempDir(), "gateway")
			build(t, at, "../../../cmd/sandboxio-gateway", g.overlay(t, t.TempDir()))
			return came(s.elsewhere(t, os.Args[0], at, Transparent, only))
		}})
	}
	for _, p := range proxies {
		out = append(out, study{Proxy, p.lacks, func(t testing.TB, only []string) []string {
			t.Helper()
			at := filepath.Join(t.TempDir(), "owner")
			build(t, at, ".", p.overlay(t, t.TempDir()))
			return came(s.elsewhere(t, at, "", Proxy, only))
		}})
	}
	for _, m := range Modes() {
		out = append(out,
			study{m, "no other way", s.without(m, modest())},
			study{m, "no privileges, no other way", s.without(m, bare())})
	}
	return out
}

// rooms is how many runs there are at a time: an engine has room for three.
const rooms = 2

// TestMutants takes one protection after the other away and sees what comes
// through. This is what an attempt counts by: one that no mutant lets through
// shows nothing when it is closed. What has to come through is what the table
// says, and what may not is all that the table does not know; the rest was seen
// with a finer mutant. With -update everything is tried with each.
func TestMutants(t *testing.T) {
	s := newSite(t, "")
	table, err := readShown()
	if err != nil {
		t.Fatal(err)
	}
	all := s.studies()
	open := make([][]string, len(all))
	room := make(chan struct{}, rooms)
	t.Run("without", func(t *testing.T) {
		for i, study := range all {
			t.Run(fmt.Sprintf("%s in %s", study.lacks, study.mode), func(t *testing.T) {
				t.Parallel()
				room <- struct{}{}
				defer func() { <-room }()
				open[i] = study.see(t, table)
			})
		}
	})
	found := shown{}
	for i, study := range all {
		if found[study.mode] == nil {
			found[study.mode] = map[string]Protection{}
		}
		for _, name := range open[i] {
			if found[study.mode][name] == "" {
				found[study.mode][name] = study.lacks
			}
			if table[study.mode][name] == "" && !*update {
				t.Errorf("%s: %s comes through without %q, which the table does not say; to update it: go test -tags dockertest -run TestMutants -update ./internal/egress/prove", study.mode, name, study.lacks)
			}
		}
	}
	if *update {
		text, err := json.MarshalIndent(found, "", "  ")
		if err == nil {
			err = os.WriteFile("shown.json", append(text, '\n'), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// see gives what comes through. What the table says of it has to: once more
// tried, or twice, if a busy machine lost it before.
func (s study) see(t testing.TB, table shown) []string {
	t.Helper()
	var missing, only, open []string
	for _, a := range Catalogue() {
		switch by := table[s.mode][a.Name]; {
		case *update || !a.In(s.mode):
		case by == s.lacks:
			missing, only = append(missing, a.Name), append(only, a.Name)
		case by == "":
			only = append(only, a.Name)
		}
	}
	if len(missing) == 0 && !*update {
		t.Errorf("nothing in the table counts by it")
	}
	const tries = 3
	for try := range tries {
		came := s.open(t, only)
		t.Logf("%d of %d open: %s", len(came), len(only), strings.Join(came, " "))
		if try == 0 && len(came) == 0 {
			t.Error("it is as closed as with it")
		}
		open = append(open, came...)
		missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(came, name) })
		if only = missing; len(only) == 0 {
			break
		}
	}
	if len(missing) > 0 {
		t.Errorf("the table says that these come through: %q", missing)
	}
	return open
}

// came lists what came through.
func came(e Evidence) []string {
	var out []string
	for _, r := range e.Modes {
		for _, f := range r.Attempts {
			if f.Outcome == Open {
				out = append(out, f.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// build makes a prover's world, until what it gives is called.
func (s *site) build(t testing.TB, p *prover) (unbuild func()) {
	t.Helper()
	b, err := s.Open(t.Context(), Site{})
	if err == nil {
		p.program, err = os.ReadFile(s.Probe)
	}
	if err == nil {
		_, err = p.engine(t.Context(), b)
	}
	if err != nil {
		t.Fatal(err)
	}
	unbuild = func() {
		if err := errors.Join(p.close(context.Background()), b.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := p.world.build(t.Context(), p.program); err != nil {
		unbuild()
		t.Fatal(err)
	}
	return unbuild
}

// without lists what comes through from a container on the canaries' network.
func (s *site) without(m Mode, h container.HostConfig) func(t testing.TB, only []string) []string {
	return func(t testing.TB, only []string) []string {
		t.Helper()
		return s.loose(t, m, h, only)
	}
}

func (s *site) loose(t testing.TB, m Mode, h container.HostConfig, only []string) []string {
	t.Helper()
	p := &prover{Options: s.Options}
	p.Only = only
	defer s.build(t, p)()
	ts, err := p.trials(m)
	if err != nil {
		t.Fatal(err)
	}
	all := ts.all
	if err := p.unprotected(t.Context(), m, ts.canaries, all, h); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, tr := range all {
		if !tr.control && tr.Control == Open {
			out = append(out, tr.Name)
		}
	}
	slices.Sort(out)
	return out
}

// TestProof is the proof itself, by both runtimes.
func TestProof(t *testing.T) {
	s := newSite(t, "")
	for _, runtime := range []string{"", "runsc"} {
		t.Run("on "+runtime, func(t *testing.T) {
			t.Parallel()
			o := s.Options
			o.Open, o.Runtime, o.Progress = open(runtime), runtime, func(said string) { t.Log(said) }
			e, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			e.Text(&b)
			t.Log(b.String())
			for _, p := range e.Problems() {
				t.Error(p)
			}
		})
	}
}
