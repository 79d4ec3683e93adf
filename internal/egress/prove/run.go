package prove

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Site is how a backend's gateways reach the world of a run.
type Site struct {
	Uplink string // name of a network
	DNS    string // address of a name server
}

// Options say what is proved, and with what.
type Options struct {
	// Open opens the backend under test, with its gateways at a site; the zero
	// Site leaves the backend's own. It has to give a moby client by driver.As.
	Open func(ctx context.Context, at Site) (driver.Backend, error)

	// Runtime is the engine's, as the backend uses it; "" is the default one.
	Runtime string

	// Probe is the path of sandboxio-probe, for the engine's architecture.
	Probe string

	// Image of the sandbox; "" is one with nothing in it.
	Image string

	// Modes to prove; nil is all of them.
	Modes []Mode

	// Only attempts of these names; nil is all.
	Only []string

	Version  string
	Progress func(string) // told of each step; may be nil

	mutant bool // a test looks for what comes through: no control is needed
}

// rules of the sandbox in a mode.
func rules(m Mode, env probe.Env) ([]driver.Rule, error) {
	if m == Deny {
		return nil, nil
	}
	cidr, err := env.CIDR.Prefix(32)
	if err != nil {
		return nil, err
	}
	return driver.Canonical([]driver.Rule{{Host: probe.Host}, {Host: "*." + probe.Wild}, {Prefix: cidr, Ports: []uint16{probe.OpenPort}}})
}

// prover is one run.
type prover struct {
	Options
	world
	program []byte
	shown   shown
	info    driver.Info
}

// Run proves what can be proved on a live engine. With an error there is no
// evidence; whether the evidence is a proof, Problems tells.
func Run(ctx context.Context, o Options) (_ Evidence, err error) {
	e := Evidence{Schema: Schema, At: time.Now().UTC().Truncate(time.Second), Version: o.Version, Limits: Limits()}
	if o.Modes == nil {
		o.Modes = Modes()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if err := known(o.Only); err != nil {
		return e, err
	}
	e.Only = o.Only
	p := &prover{Options: o}
	if p.program, err = os.ReadFile(o.Probe); err != nil {
		return e, driver.Invalid("probe", err.Error(), "make build, or name the sandboxio-probe of this release with --probe")
	}
	sum := sha256.Sum256(p.program)
	e.Probe = "sha256:" + hex.EncodeToString(sum[:])
	if p.shown, err = readShown(); err != nil {
		return e, err
	}
	b, err := o.Open(ctx, Site{})
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if e.Engine, err = p.engine(ctx, b); err != nil {
		return e, err
	}
	o.Progress("making the canaries' networks")
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	if err = p.build(ctx, p.program); err != nil {
		return e, err
	}
	if p.Image == "" {
		p.Image = p.image
	}
	e.Image = p.Image
	if got, err := p.cli.ImageInspect(ctx, p.Image); err == nil {
		e.Image = got.ID
	}
	for _, m := range o.Modes {
		run, err := p.mode(ctx, m)
		if err != nil {
			return e, fmt.Errorf("mode %s: %w", m, err)
		}
		e.Modes = append(e.Modes, run)
	}
	return e, nil
}

// known refuses names that are no attempt's: what is not tried must not look as
// if it were closed.
func known(only []string) error {
	var all []string
	for _, a := range Catalogue() {
		all = append(all, a.Name)
	}
	for _, name := range only {
		if slices.Contains(all, name) {
			continue
		}
		slices.SortStableFunc(all, func(a, b string) int { return distance(name, a) - distance(name, b) })
		return driver.Invalid("only", fmt.Sprintf("%q is no attempt", name), "the nearest are "+strings.Join(all[:3], ", "))
	}
	return nil
}

// distance is how many letters have to be changed, added or left out.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// engine connects, and says what there is.
func (p *prover) engine(ctx context.Context, b driver.Backend) (Engine, error) {
	p.info = b.Info()
	clock, ok := driver.As[driver.Clock](b)
	if !ok {
		return Engine{}, driver.Unsupported("backend", p.info.Name+" is no engine that canaries can be put on", "write --backend docker://")
	}
	if _, err := clock.Now(ctx); err != nil { // connects
		return Engine{}, err
	}
	if p.cli, ok = driver.As[*client.Client](b); !ok {
		return Engine{}, driver.Unsupported("backend", p.info.Name+" is no engine that canaries can be put on", "write --backend docker://")
	}
	res, err := p.cli.Info(ctx, client.InfoOptions{})
	if err != nil {
		return Engine{}, err
	}
	e := Engine{Version: res.Info.ServerVersion, Kernel: res.Info.KernelVersion, Runtime: p.Runtime}
	if e.Runtime == "" {
		e.Runtime = res.Info.DefaultRuntime
	}
	if e.Runtime == "runc" {
		e.RuntimeVersion = res.Info.RuncCommit.ID
	}
	return e, nil
}

// trial is one attempt or control in a mode.
type trial struct {
	Finding
	attempt Attempt
	sign    string // that is looked for
	env     probe.Env
	control bool

	unfinished bool // in the sandbox
}

// trials of a mode, each with a sign and an address of its own.
func (p *prover) trials(m Mode) ([]*trial, error) {
	var out []*trial
	next := byte(firstDenied)
	add := func(a Attempt, control bool) error {
		if next > lastDenied {
			return errors.New("the catalogue is longer than the world has addresses")
		}
		t := &trial{attempt: a, env: p.env, control: control}
		t.Name, t.Text, t.Expected = a.Name, a.Text, Closed
		if control {
			t.Expected = Open
		}
		t.env.Sign, t.env.Denied, t.env.Denied6 = "sbx"+token(7)[:13], host(p.subnet(), next), host(range6, next)
		t.sign = t.env.Sign
		if a.Sign != "" {
			t.sign = a.Sign
		}
		next++
		out = append(out, t)
		return nil
	}
	for _, name := range Controls(m) {
		if err := add(Attempt{Name: name, Text: "what a rule allows"}, true); err != nil {
			return nil, err
		}
	}
	for _, a := range Catalogue() {
		if !a.In(m) || p.Only != nil && !slices.Contains(p.Only, a.Name) {
			continue
		}
		if err := add(a, false); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mode proves one: first where nothing is enforced, then in a sandbox.
func (p *prover) mode(ctx context.Context, m Mode) (Section, error) {
	all, err := p.trials(m)
	if err != nil {
		return Section{}, err
	}
	r := Section{Mode: m, Profile: driver.Strict.String()}
	network := driver.Network{}
	if network.Egress, err = rules(m, p.env); err != nil {
		return r, err
	}
	if m == Proxy {
		network.Mode = driver.Proxy
	}
	r.Policy = []string{}
	for _, rule := range network.Egress {
		r.Policy = append(r.Policy, rule.String())
	}
	r.Digest = digest(network)

	if !p.mutant {
		p.Progress(fmt.Sprintf("%s: %d attempts where nothing is enforced", m, len(all)))
		if err := p.unprotected(ctx, m, all, bare()); err != nil {
			return r, fmt.Errorf("where nothing is enforced: %w", err)
		}
	}
	p.Progress(fmt.Sprintf("%s: %d attempts in a sandbox", m, len(all)))
	if err := p.protected(ctx, m, network, all, &r); err != nil {
		return r, err
	}
	for _, t := range all {
		p.judge(m, t)
		if t.control {
			r.Controls = append(r.Controls, t.Finding)
		} else {
			r.Attempts = append(r.Attempts, t.Finding)
		}
	}
	return r, nil
}

// judge decides what an attempt counts for.
func (p *prover) judge(m Mode, t *trial) {
	t.Outcome = Closed
	if len(t.Seen) > 0 {
		t.Outcome = Open
	}
	if by := p.shown[m][t.Name]; by != "" && !t.control {
		t.Protection = by
	}
	switch {
	case t.Outcome == Open: // what came through needs no control
	case t.unfinished:
		t.Outcome, t.Why = NotTried, "the probe did not get to finish it"
	case t.control:
	case t.Control == NotTried:
		t.Outcome, t.Why = NotTried, "the probe did not get to finish it where nothing is enforced"
	case t.Control != Open:
		t.Outcome, t.Why = NotApplicable, "it does not come through here where nothing is enforced either"
	case p.shown[m][t.Name] == "":
		t.Outcome, t.Why = NotApplicable, "no test has shown that it comes through without its protection"
	}
}

// digest identifies a network policy by its canonical rules and its mode.
func digest(n driver.Network) string {
	h := sha256.New()
	fmt.Fprintln(h, n.Mode)
	for _, r := range n.Egress {
		fmt.Fprintln(h, r)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
