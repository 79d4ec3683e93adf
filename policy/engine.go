package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Options say what an engine judges by. The zero value is the built-in rules
// with their own parameters, enforced.
type Options struct {
	Sources []Source       // sets of the customer's, which can only add findings
	Params  map[string]any // by name, as the rules declare them
	Waivers []Waiver       // the configuration's own; a source's stand in its file
	Mode    Mode

	// Now tells the time, by which waivers end; nil = the clock.
	Now func() time.Time
}

// Mode is what becomes of a denial.
type Mode uint8

const (
	// Enforce denies.
	Enforce Mode = iota
	// Advise warns where Enforce denies, and says that it does. Rules that
	// fail still deny.
	Advise
)

func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Advise:
		return "advise"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode reads what String writes; "" is enforce.
func ParseMode(s string) (Mode, error) {
	switch s {
	case "", "enforce":
		return Enforce, nil
	case "advise":
		return Advise, nil
	}
	return 0, driver.Invalid("policy.mode", fmt.Sprintf("%q is no mode", s), `use "enforce" or "advise"`)
}

// budget bounds one evaluation of one set. The built-in rules need less than
// a hundredth of it.
const budget = 250 * time.Millisecond

// perItem is what each resource of a whole plan adds to it, and each rule of an
// allowlist.
const perItem = time.Millisecond

// Engine judges. It is safe for concurrent use.
type Engine struct {
	sets   []*set
	mode   Mode
	weak   []sandbox.Finding // about the engine's own settings
	floor  *BundleInfo
	digest string
	exempt exemptions
	now    func() time.Time
}

// Load reads and compiles the rules, or says everything that is wrong with
// them. The built-in rules are compiled once in a process. A floor that the
// environment names holds whatever opts say, see [FloorVariable].
func Load(ctx context.Context, opts Options) (*Engine, error) {
	var sources []*contents
	floor, err := floorOf(ctx, os.Getenv)
	if floor != nil {
		sources = append(sources, floor)
	}
	errs := []error{err}
	for _, src := range opts.Sources {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := src.read(ctx)
		if err == nil && c.settings != nil {
			err = driver.Invalid(sourceField(src.Name), fmt.Sprintf("%s has settings, which only a floor has", c.from),
				"name it in "+FloorVariable+", or take the settings out")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sources = append(sources, c)
	}
	e, err := assemble(sources, floor != nil, opts)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	if floor != nil {
		e.floor = new(floor.info())
	}
	return e, nil
}

// assemble compiles the sources, the first of which may be the floor.
func assemble(sources []*contents, floored bool, opts Options) (*Engine, error) {
	if opts.Mode > Advise {
		return nil, driver.Invalid("policy.mode", opts.Mode.String()+" is no mode", "use Enforce or Advise")
	}
	own, err := builtinRules()
	if err != nil {
		return nil, &driver.Error{Code: driver.CodeInternal, Op: "load policy", Err: err}
	}
	all := []*ruleset{own}
	var errs []error
	var granted []grant
	for i, c := range sources {
		isFloor := floored && i == 0
		rs, err := compile(c.name, c.files)
		if err == nil && len(rs.rules) == 0 && len(c.waivers) == 0 && !isFloor {
			err = fmt.Errorf("the set %q has no rules", c.name)
		}
		if err != nil {
			field := sourceField(c.name)
			if isFloor {
				field = FloorVariable
			}
			errs = append(errs, &driver.Error{Code: driver.CodeInvalid, Op: "load policy", Field: field, Err: fmt.Errorf("%s: %w", c.from, err), Hint: "mend the rules; none of the set is used as it is"})
			continue
		}
		all = append(all, rs)
		origin := c.name
		if isFloor {
			origin = byFloor
		}
		granted = append(granted, grant{origin, c.waivers, c.place, c.lines})
	}
	if err := errors.Join(append(errs, distinct(all))...); err != nil {
		return nil, err
	}
	e := &Engine{mode: opts.Mode, now: opts.Now}
	if e.now == nil {
		e.now = time.Now
	}
	base := foundation{}
	if floored {
		base = foundation{floored: true, settings: sources[0].settings, sets: []string{builtin, sources[0].name}}
	}
	params, err := e.settle(base, all, opts)
	if err != nil {
		return nil, err
	}
	for _, rs := range all {
		e.sets = append(e.sets, newSet(rs, params))
	}
	granted = append(granted, grant{origin: byConfiguration, waivers: opts.Waivers})
	if e.exempt, err = newExemptions(granted, e.Rules(), base); err != nil {
		return nil, err
	}
	e.digest, err = digestOf(all, params, e.mode, granted)
	return e, err
}

// distinct refuses two sets of one name, and ids and parameters that two sets
// declare.
func distinct(all []*ruleset) error {
	var errs []error
	owner := map[string]string{}
	claim := func(what, set string) {
		if prior, ok := owner[what]; ok {
			errs = append(errs, driver.Invalid("policy.sources", fmt.Sprintf("%s is in the set %q and in %q", what, prior, set), "choose another name in one of them"))
		}
		owner[what] = set
	}
	for _, rs := range all {
		claim("the name "+rs.name, rs.name)
		params := map[string]bool{}
		for _, r := range rs.rules {
			claim("the rule "+r.ID, rs.name)
			for _, p := range r.Params {
				params[p.Name] = true
			}
		}
		for _, p := range slices.Sorted(maps.Keys(params)) {
			claim("the parameter "+p, rs.name)
		}
	}
	return errors.Join(errs...)
}

func digestOf(all []*ruleset, params map[string]any, mode Mode, granted []grant) (string, error) {
	h := sha256.New()
	for _, rs := range all {
		for _, file := range slices.Sorted(maps.Keys(rs.sources)) {
			fmt.Fprintf(h, "%q %q %d\n", rs.name, file, len(rs.sources[file]))
			h.Write([]byte(rs.sources[file]))
		}
	}
	raw, err := json.Marshal(params)
	fmt.Fprintf(h, "params %s mode %s", raw, mode)
	for _, g := range granted {
		if len(g.waivers) > 0 {
			raw, werr := json.Marshal(g.waivers)
			err = errors.Join(err, werr)
			fmt.Fprintf(h, "\nwaivers %q %s", g.origin, raw)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}

// Digest names everything that decides: rules, parameters, mode and waivers.
func (e *Engine) Digest() string { return e.digest }

// Floor is the floor in force; nil when the environment names none.
func (e *Engine) Floor() *BundleInfo {
	if e.floor == nil {
		return nil
	}
	return new(*e.floor)
}

// Rules lists every rule, the engine's own included, by id.
func (e *Engine) Rules() []RuleInfo {
	out := slices.Clone(ownRules)
	for _, s := range e.sets {
		for _, r := range s.rules {
			out = append(out, r.RuleInfo)
		}
	}
	slices.SortFunc(out, func(a, b RuleInfo) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Sets names the sets of rules in force, the built-in one and a floor's
// included.
func (e *Engine) Sets() []string {
	var out []string
	for _, s := range e.sets {
		out = append(out, s.name)
	}
	return out
}

// Judge answers for one input. Its error is the context's own, or says that
// the input is malformed; both count as a denial.
func (e *Engine) Judge(ctx context.Context, in Input) (v sandbox.Verdict, err error) {
	defer func() {
		if p := recover(); p != nil { // its text may hold a value
			v = sandbox.Verdict{Decision: sandbox.Failed, Policy: e.digest, Rules: []string{}, Findings: []sandbox.Finding{failure("", "the judge panicked; this is a bug, please report it")}}
			err = nil
		}
	}()
	s, err := newSubject(in)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return sandbox.Verdict{Decision: sandbox.Failed, Policy: e.digest}, err
	}
	v, err = e.judge(ctx, s)
	if err == nil {
		e.exempt.excuse(&v, s, in, e.now())
		e.conclude(&v)
	}
	return v, err
}

// judge gives what the rules say, before waivers.
func (e *Engine) judge(ctx context.Context, s *subject) (sandbox.Verdict, error) {
	v := sandbox.Verdict{Policy: e.digest, Rules: []string{}, Findings: slices.Clone(e.weak)}
	for _, set := range e.sets {
		findings, ran, err := set.judge(ctx, s)
		if err != nil {
			return sandbox.Verdict{Decision: sandbox.Failed, Policy: e.digest}, err
		}
		v.Rules = append(v.Rules, ran...)
		v.Findings = append(v.Findings, findings...)
	}
	if len(v.Rules) == 0 {
		v.Findings = append(v.Findings, failure("", fmt.Sprintf("no rule judges a %s at the stage %s", s.kind, s.stage)))
	}
	return v, nil
}

// Guard is the engine as the runtime asks it.
func (e *Engine) Guard() sandbox.Guard { return guard{e} }

type guard struct{ engine *Engine }

func (g guard) Judge(ctx context.Context, req sandbox.Request) (sandbox.Verdict, error) {
	return g.engine.Judge(ctx, FromRequest(req))
}
