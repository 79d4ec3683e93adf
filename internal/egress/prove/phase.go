package prove

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// inside is where the program of a sandbox is put.
const inside = "/work/sandboxio-probe"

func (w *world) subnet() netip.Prefix {
	p, _ := w.env.World.Prefix(24) // never fails: it is IPv4
	return p
}

// bare is a container that nothing is taken from, and modest is one without
// privileges.
func bare() container.HostConfig {
	return container.HostConfig{CapAdd: []string{"NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE"}, SecurityOpt: []string{"seccomp=unconfined", "apparmor=unconfined"}}
}

func modest() container.HostConfig {
	return container.HostConfig{CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges:true"}}
}

// unprotected makes every attempt from a container on the canaries' own networks,
// and looks whether the canaries hear.
func (p *prover) unprotected(ctx context.Context, m Mode, canaries, all []*trial, h container.HostConfig) error {
	h.NetworkMode, h.Runtime = container.NetworkMode(p.name), p.Runtime
	t, err := p.container(ctx, []string{"agent"}, h, map[string]*network.EndpointSettings{p.name: {}}, p.near)
	if err != nil {
		return err
	}
	direct := func(e probe.Env) probe.Env {
		e.Server = p.env.Names
		return e
	}
	set := direct
	if m == Proxy {
		set = func(e probe.Env) probe.Env {
			e = direct(e)
			e.Proxy = netip.AddrPortFrom(p.env.World, proxyPort).String()
			return e
		}
	}
	said, err := p.attempt(ctx, all, t.conn.Conn, t.lines, set)
	if err == nil {
		err = p.came(ctx, all, said)
	}
	if err == nil { // its IPv6 addresses are settled by now
		said, err = p.attempt(ctx, canaries, t.conn.Conn, t.lines, direct)
	}
	// What it sent last is counted, and nothing of it later.
	if err = errors.Join(err, t.end(ctx, p)); err != nil {
		return err
	}
	return p.came(ctx, canaries, said)
}

// came notes what came of each where nothing is enforced.
func (p *prover) came(ctx context.Context, all []*trial, said map[string]probe.Result) error {
	if err := p.mark(ctx); err != nil {
		return err
	}
	seen, _ := sort(p.witness.take(), all)
	for _, t := range all {
		switch {
		case len(seen[t]) > 0:
			t.Control = Open
		case said[t.attempt.Name].Unfinished:
			t.Control = NotTried
		default:
			t.Control = NotApplicable
		}
	}
	return nil
}

func (t *talker) end(ctx context.Context, p *prover) error {
	t.close()
	return removeContainer(ctx, p.cli, t.id)
}

// protected makes every attempt in a sandbox.
func (p *prover) protected(ctx context.Context, m Mode, n driver.Network, ts trials, r *Section) (err error) {
	at := Site{}
	if m == Transparent {
		at = Site{Uplink: p.name, DNS: p.env.Names.String()}
	}
	b, err := p.Open(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	set := func(e probe.Env) probe.Env { return e }
	if m == Proxy {
		o := &owner{world: &p.world}
		if err := o.into(b); err != nil {
			return err
		}
		defer o.wait()
		set = func(e probe.Env) probe.Env {
			e.Proxy = fmt.Sprintf("127.0.0.1:%d", guest.ProxyPort)
			return e
		}
	}
	spec := driver.Spec{Token: "prove-" + token(6), Image: p.Image, Lifetime: 5 * time.Minute, Network: n}
	spec.Facts = driver.Facts{Owner: owns(p.id), Instance: spec.Token}
	if spec.Resources, err = (driver.Resources{}).Resolve(); err != nil {
		return err
	}
	plan, err := b.Check(spec)
	if err != nil {
		return err
	}
	r.Network = plan.Network
	sb, err := b.Create(ctx, spec)
	if err != nil {
		return err
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, sb.Kill(clean))
	}()
	st := sb.Status()
	r.Isolation, r.Evidence = st.Isolation.String(), st.Evidence.Detail
	said, again, err := p.within(ctx, sb, ts, set)
	if err != nil {
		return err
	}
	if err := p.mark(ctx); err != nil {
		return err
	}
	seen, rest := sort(p.witness.take(), slices.Concat(ts.all, ts.again))
	for _, t := range ts.all {
		t.note(said, seen)
	}
	for _, t := range ts.again {
		t.note(again, seen)
	}
	r.Stray = []string{}
	for _, e := range rest {
		if !p.allowed(m, e) {
			r.Stray = append(r.Stray, describe(e))
		}
	}
	return nil
}

func (t *trial) note(said map[string]probe.Result, seen map[*trial][]string) {
	t.Said, t.unfinished, t.Seen = said[t.attempt.Name].Said, said[t.attempt.Name].Unfinished, seen[t]
}

// within runs the probe as the sandbox's workload, and tells what it says of all
// attempts, and then of the controls again.
func (p *prover) within(ctx context.Context, sb driver.Sandbox, ts trials, set func(probe.Env) probe.Env) (said, again map[string]probe.Result, err error) {
	f, err := sb.Files().Create(ctx, inside, 0o755)
	if err != nil {
		return nil, nil, err
	}
	_, err = f.Write(p.program)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, nil, err
	}
	proc, err := sb.Start(ctx, driver.Cmd{Args: []string{inside, "agent"}, Stdin: true, Timeout: 4 * time.Minute})
	if err != nil {
		return nil, nil, err
	}
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := proc.Recv(ctx)
			if err != nil {
				_ = w.CloseWithError(err)
				return
			}
			if _, err := w.Write(c.Data); err != nil {
				return
			}
		}
	}()
	if said, err = p.attempt(ctx, ts.all, proc.Stdin(), r, set); err == nil {
		again, err = p.attempt(ctx, ts.again, proc.Stdin(), r, set)
	}
	_ = r.Close()
	err = errors.Join(err, proc.Kill(ctx))
	<-done
	return said, again, err
}

// attempt gives an agent all orders, and reads what it says of them.
func (p *prover) attempt(ctx context.Context, all []*trial, to io.Writer, from io.ReadCloser, set func(probe.Env) probe.Env) (map[string]probe.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = from.Close() })()
	wrote := make(chan error, 1)
	go func() {
		e := json.NewEncoder(to)
		for _, t := range all {
			if err := e.Encode(probe.Order{Attempt: t.attempt.Name, Env: set(t.env)}); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	out := map[string]probe.Result{}
	s := bufio.NewScanner(from)
	for len(out) < len(all) {
		if !s.Scan() {
			return out, fmt.Errorf("the probe ended after %d of %d attempts: %w", len(out), len(all), errors.Join(s.Err(), ctx.Err(), io.ErrUnexpectedEOF))
		}
		var r probe.Result
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			return out, fmt.Errorf("the probe says %q", s.Text())
		}
		out[r.Attempt] = r
	}
	return out, <-wrote
}

// sort gives each attempt what is its own of what came, and the rest.
func sort(events []probe.Event, all []*trial) (seen map[*trial][]string, rest []probe.Event) {
	seen = map[*trial][]string{}
	for _, e := range events {
		folded := bytes.ToLower(e.Payload)
		mine := false
		for _, t := range all {
			if t.hit(e, folded) {
				mine = true
				if len(seen[t]) < 4 {
					seen[t] = append(seen[t], describe(e))
				}
			}
		}
		if !mine {
			rest = append(rest, e)
		}
	}
	return seen, rest
}

// hit reports whether what came is the attempt's: by its sign, in any case
// unless the case is the sign, or by its address.
func (t *trial) hit(e probe.Event, folded []byte) bool {
	switch {
	case t.attempt.Sign != "":
		return bytes.Contains(e.Payload, []byte(t.sign))
	case e.To == t.env.Denied, e.To == t.env.Denied6, bytes.Contains(folded, []byte(t.sign)):
		return true
	case t.attempt.Name == "engine-host":
		return e.Proto == "tcp" && e.Port == t.env.HostPort
	}
	return false
}

// allowed reports whether a sandbox may have caused what came, or nobody did:
// neighbours on a link find each other.
func (p *prover) allowed(m Mode, e probe.Event) bool {
	switch {
	case e.Proto == "ip-2", e.To.Is6() && e.To.IsMulticast() && (e.Proto == "icmp6" || e.Proto == "ip-0"): // memberships, in ip-0 behind an option
		return true
	case m == Deny:
		return false
	case e.Proto == "lookup":
		return strings.HasSuffix(string(e.Payload), "."+probe.Wild+".") || string(e.Payload) == probe.Host+"."
	case e.To == p.env.Names && e.Port == 53:
		return m == Transparent
	case e.Proto != "tcp":
		return false
	}
	return e.To == p.env.Allowed && (e.Port == 80 || e.Port == 443) || e.To == p.env.CIDR && e.Port == probe.OpenPort
}

func describe(e probe.Event) string {
	payload := e.Payload
	if len(payload) > 60 {
		payload = payload[:60]
	}
	from := ""
	if e.From.IsValid() { // what a proxy let through comes from its own process
		from = " from " + e.From.String()
	}
	return fmt.Sprintf("%s%s to %s port %d: %q", e.Proto, from, e.To, e.Port, payload)
}
