package prove

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// ReleaseDigest is the digest of the probe of this release, "sha256:…", set when
// a release is linked, as guest.ReleaseDigest is. Another program could try
// nothing in the sandbox, and nothing would come through. "" is a program built
// from source, which takes any probe, and whose evidence says so.
var ReleaseDigest string

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

	unheld time.Duration // a test waits for less than unheldLimit, which zero means
	mutant bool          // a test looks for what comes through: no control is needed
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
	if o.unheld == 0 {
		o.unheld = unheldLimit
	}
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, errLong)
	defer cancel()
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), errLong) {
			err = errors.Join(errLong, err)
		}
	}()
	e.Only = o.Only
	p := &prover{Options: o}
	if p.program, err = os.ReadFile(o.Probe); err != nil {
		return e, driver.Invalid("probe", err.Error(), "make build, or name the sandboxio-probe of this release with --probe")
	}
	sum := sha256.Sum256(p.program)
	e.Probe, e.Pinned = "sha256:"+hex.EncodeToString(sum[:]), ReleaseDigest != ""
	if e.Pinned && e.Probe != ReleaseDigest {
		return e, driver.Invalid("probe", fmt.Sprintf("%s has %s, this release's probe has %s", o.Probe, e.Probe, ReleaseDigest), "use the sandboxio-probe of the same release")
	}
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
	left, err := sweep(ctx, b, true, o.unheld)
	if len(left) > 0 {
		o.Progress(fmt.Sprintf("%d objects of runs that were killed", len(left)))
	}
	if err != nil {
		o.Progress("not all of what runs left that were killed is gone: " + err.Error())
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
	e.settle()
	return e, nil
}

var errLong = fmt.Errorf("no end within %v", runLimit)

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
	if _, ok := res.Info.Runtimes[p.Runtime]; !ok && p.Runtime != "" {
		return Engine{}, driver.Unsupported("backend.runtime", fmt.Sprintf("the engine has no runtime %q", p.Runtime), "register it in the engine's daemon.json, or name one of: "+strings.Join(slices.Sorted(maps.Keys(res.Info.Runtimes)), ", "))
	}
	if p.Image != "" {
		if _, err := p.cli.ImageInspect(ctx, p.Image); err != nil {
			return Engine{}, driver.Invalid("image", err.Error(), "name an image that the engine has: docker image ls")
		}
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
type trials struct {
	canaries []*trial // where nothing is enforced, before all
	all      []*trial // controls and attempts
	again    []*trial // the same controls, after the attempts
	last     []*trial // the same canaries, at the end
}

func (p *prover) trials(m Mode) (trials, error) {
	var ts trials
	next := byte(firstDenied)
	add := func(out *[]*trial, a Attempt, control bool) error {
		if next > lastDenied {
			return errors.New("the catalogue is longer than the world has addresses")
		}
		t := &trial{attempt: a, env: p.env, control: control}
		t.Name, t.Text, t.Expected = a.Name, a.Text, Closed
		if control {
			t.Expected = Open
		}
		t.env.Sign, t.env.Denied, t.env.Denied6 = "sbx"+token(7)[:13], host(p.subnet(), next), host(p.range6, next)
		t.sign = t.env.Sign
		if a.Sign != "" {
			t.sign = a.Sign
		}
		next++
		*out = append(*out, t)
		return nil
	}
	for _, name := range Controls(m) {
		for _, out := range []*[]*trial{&ts.all, &ts.again} {
			if err := add(out, Attempt{Name: name, Text: "what a rule allows"}, true); err != nil {
				return ts, err
			}
		}
	}
	for _, c := range canaries {
		for _, out := range []*[]*trial{&ts.canaries, &ts.last} {
			if err := add(out, Attempt{Name: c.attempt, Text: c.text}, true); err != nil {
				return ts, err
			}
			(*out)[len(*out)-1].Name = c.name
		}
	}
	for _, a := range Catalogue() {
		if !a.In(m) || p.Only != nil && !slices.Contains(p.Only, a.Name) {
			continue
		}
		if err := add(&ts.all, a, false); err != nil {
			return ts, err
		}
	}
	return ts, nil
}

// section begins what is said of a mode, and gives the network of its sandbox.
func section(m Mode, env probe.Env) (Section, driver.Network, error) {
	r, n := Section{Mode: m, Profile: driver.Strict.String(), Policy: []string{}}, driver.Network{}
	var err error
	if n.Egress, err = rules(m, env); err != nil {
		return r, n, err
	}
	if m == Proxy {
		n.Mode = driver.Proxy
	}
	for _, rule := range n.Egress {
		r.Policy = append(r.Policy, rule.String())
	}
	r.Digest = egress.Digest(n)
	return r, n, nil
}

// mode proves one: first where nothing is enforced, then in a sandbox. That the
// canaries hear, and that what is allowed comes through, is seen before the
// attempts and after them: a canary that went meanwhile would have closed all.
func (p *prover) mode(ctx context.Context, m Mode) (Section, error) {
	ts, err := p.trials(m)
	if err != nil {
		return Section{}, err
	}
	r, network, err := section(m, p.env)
	if err != nil {
		return r, err
	}
	if !p.mutant {
		p.Progress(fmt.Sprintf("%s: %d attempts where nothing is enforced", m, len(ts.all)))
		if err := p.unprotected(ctx, m, ts.canaries, ts.all, bare()); err != nil {
			return r, fmt.Errorf("where nothing is enforced: %w", err)
		}
	}
	p.Progress(fmt.Sprintf("%s: %d attempts in a sandbox", m, len(ts.all)))
	if err := p.protected(ctx, m, network, ts, &r); err != nil {
		return r, err
	}
	if !p.mutant {
		p.Progress(fmt.Sprintf("%s: the canaries once more", m))
		if err := p.unprotected(ctx, m, ts.last, nil, bare()); err != nil {
			return r, fmt.Errorf("where nothing is enforced: %w", err)
		}
		for i, t := range ts.canaries {
			t.Outcome, t.After, t.Control = t.Control, ts.last[i].Control, ""
			r.Controls = append(r.Controls, t.Finding)
		}
	}
	for i, t := range ts.all {
		p.judge(m, t)
		if t.control {
			p.judge(m, ts.again[i])
			t.After = ts.again[i].Outcome
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
