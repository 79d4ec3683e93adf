package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// DefaultGrace is how long teardown may take when neither Options.Grace nor
// the environment says otherwise.
const DefaultGrace = 5 * time.Second

// GraceEnv is the environment variable that an operator sets to give teardown
// more time, or less, than DefaultGrace, as "10s".
const GraceEnv = "SANDBOXIO_TEARDOWN_GRACE"

// Options configure a Runtime. The zero value is refused by Create, since
// nothing judges its requests: give a Guard, or the reason for having none.
type Options struct {
	Guard     Guard
	Unguarded string        // why no policy judges; recorded with every sandbox
	Sinks     []Sink        // where Records go; none keeps none
	Grace     time.Duration // bound of teardown, which outlives the caller's context; zero = the environment's SANDBOXIO_TEARDOWN_GRACE, as "10s", or 5 s
	Owner     string        // who answers for this Runtime's sandboxes; zero = a random name
}

// Runtime makes sandboxes on one backend. It is safe for concurrent use and
// holds nothing that needs closing; the backend is closed by who opened it.
type Runtime struct {
	b     driver.Backend
	info  driver.Info
	opts  Options
	bad   error // what was wrong with the options; Create says it
	sweep sync.Once
}

// New makes a Runtime. It does no I/O. What is wrong with the options is
// said by Create and Attach.
func New(b driver.Backend, opts Options) *Runtime {
	var bad error
	opts.Grace, bad = grace(opts.Grace)
	if opts.Owner == "" {
		opts.Owner = "rt-" + rand.Text()[:16]
	}
	return &Runtime{b: b, info: b.Info(), opts: opts, bad: bad}
}

// grace is the first of: what the program says, what the operator says, the
// default. What makes no sense is an error and the default.
func grace(d time.Duration) (time.Duration, error) {
	if d > 0 {
		return d, nil
	}
	if d < 0 {
		return DefaultGrace, driver.Invalid("options.grace", d.String()+" is negative", "leave it out for 5 s")
	}
	v := os.Getenv(GraceEnv)
	if v == "" {
		return DefaultGrace, nil
	}
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		return d, nil
	}
	return DefaultGrace, driver.Invalid(GraceEnv, fmt.Sprintf("%q is not a positive duration", v), `set it as "10s", or unset it`)
}

// Info tells what the backend is and can do.
func (r *Runtime) Info() driver.Info { return r.info }

// Create makes a sandbox that has everything spec asks for, or nothing.
//
// In this order: the wish is resolved, the backend says how it would enforce
// it, the Guard judges, the backend creates, the measured isolation is
// checked, the Record is kept. A failure after the backend has created
// destroys the sandbox before Create returns.
//
// Codes: invalid, unsupported, denied, and what the backend reports.
func (r *Runtime) Create(ctx context.Context, spec Spec) (*Sandbox, error) {
	op := r.begin("create")
	sb, err := r.create(ctx, spec, op)
	var undo func() error
	if sb != nil {
		undo = sb.destroy
	}
	if err := op.end(ctx, err, undo); err != nil {
		return nil, err
	}
	return sb, nil
}

func (r *Runtime) create(ctx context.Context, spec Spec, op *operation) (*Sandbox, error) {
	order, plan, err := r.plan(ctx, spec, op)
	if err != nil {
		return nil, err
	}
	r.sweep.Do(func() { r.sweepLeftovers(ctx) })
	raw, err := r.b.Create(ctx, order)
	if err != nil {
		return nil, err
	}
	st := raw.Status()
	op.record.Sandbox, op.record.Isolation, op.record.Evidence, op.record.Deadline = st.ID, st.Isolation, st.Evidence.Detail, st.Deadline
	sb := &Sandbox{rt: r, sb: raw, id: st.ID, detached: st.Detached, fixed: order.LongestLife() == order.Lifetime, plan: plan, base: op.record, known: new(known)}
	if spec.Template != nil {
		declared := slices.Clone(spec.Template.Secrets)
		sb.secrets = &declared
	}
	if !st.Isolation.Satisfies(order.Isolation) {
		return nil, driver.Join(&Error{
			Code: CodeUnsupported, Field: "isolation",
			Err:  fmt.Errorf("measured %s, %s was asked for", st.Isolation, order.Isolation),
			Hint: "the sandbox was destroyed; use a backend or runtime of that tier",
		}, sb.destroy())
	}
	if err := ctx.Err(); err != nil {
		return nil, driver.Join(err, sb.destroy())
	}
	return sb, nil
}

// plan is all of Create that does no I/O: it resolves the wish, asks the
// backend how it would enforce the order, and lets the Guard judge.
func (r *Runtime) plan(ctx context.Context, spec Spec, op *operation) (driver.Spec, driver.Plan, error) {
	if err := ctx.Err(); err != nil {
		return driver.Spec{}, driver.Plan{}, err
	}
	if r.bad != nil {
		return driver.Spec{}, driver.Plan{}, r.bad
	}
	order, err := spec.resolve(r.info)
	if err != nil {
		return order, driver.Plan{}, err
	}
	order.Token = rand.Text()[:16]
	order.Facts.Instance = order.Token
	order.Facts.Owner = spec.Owner
	if order.Facts.Owner == "" {
		order.Facts.Owner = r.opts.Owner
	}
	rec := &op.record
	rec.Owner, rec.Tenant, rec.Template = order.Facts.Owner, order.Facts.Tenant, order.Facts.Template
	rec.Trust, rec.TrustReason = order.Trust.String(), order.Trust.Reason()
	rec.Image, rec.Resources = order.Image, order.Resources

	plan, err := r.b.Check(order)
	if err != nil {
		return order, plan, err
	}
	if !plan.Isolation.Satisfies(order.Isolation) {
		return order, plan, driver.Unsupported("isolation",
			fmt.Sprintf("the backend offers %s, %s was asked for", plan.Isolation, order.Isolation), "use a backend or runtime of that tier")
	}
	if !order.Trust.Stated() && plan.Isolation <= Container && !r.info.Simulated {
		plan.Warnings = append(plan.Warnings, "trust is not stated: the container tier does not make untrusted code safe; "+
			"say whether the code is untrusted, or trusted and why")
	}
	rec.Warnings = plan.Warnings
	order.Facts.Policy, err = r.judge(ctx, spec.Template, order, plan, rec)
	return order, plan, err
}

func (r *Runtime) judge(ctx context.Context, t *Template, order driver.Spec, plan driver.Plan, rec *Record) (policy string, err error) {
	named := ""
	req := Request{Backend: r.info, Spec: order, Plan: plan}
	if t != nil {
		named, req.Secrets, req.Template = t.Policy, t.Secrets, t.Name
	}
	if r.opts.Guard == nil {
		if r.opts.Unguarded == "" {
			return "", &Error{Code: CodeDenied, Field: "options.guard", Err: errors.New("nothing judges this request"),
				Hint: "set Options.Guard (package policy makes one), or Options.Unguarded to the reason for having none"}
		}
		if named != "" {
			return "", &Error{Code: CodeDenied, Field: "template.policy", Err: fmt.Errorf("the template was judged by %s, and this Runtime has no Guard", named),
				Hint: "set Options.Guard to the policy that the template names"}
		}
		rec.Unguarded = r.opts.Unguarded
		return "", nil
	}
	v, err := r.opts.Guard.Judge(ctx, req)
	if err != nil {
		if cerr := ctx.Err(); cerr != nil {
			return "", cerr
		}
		return "", &Error{Code: CodeDenied, Err: fmt.Errorf("the policy could not judge: %w", err), Hint: "run sandboxio doctor"}
	}
	rec.Decision, rec.Policy = v.Decision, v.Policy
	for _, f := range v.Findings {
		rec.Findings = append(rec.Findings, f.Rule+" "+f.Path)
		if f.Effect == Warn {
			rec.Warnings = append(rec.Warnings, f.Rule+": "+f.Message)
		} else if f.Effect == Waived {
			rec.Warnings = append(rec.Warnings, f.Rule+": "+f.Message+"; "+f.Waiver.String())
		}
	}
	if named != "" && named != v.Policy {
		return "", &Error{Code: CodeDenied, Field: "template.policy", Err: fmt.Errorf("the template was judged by %s, the policy here is %s", named, v.Policy),
			Hint: "use the policy that the template names, or have the template judged again by terraform apply"}
	}
	if v.Decision != Allow && v.Decision != Warn {
		return "", denied(v)
	}
	return v.Policy, nil
}

// DeniedError carries the Verdict of a denial. errors.As finds it in what
// Create and Run return.
type DeniedError struct{ Verdict Verdict }

func (e *DeniedError) Error() string {
	var b strings.Builder
	b.WriteString("policy says " + string(e.Verdict.Decision))
	for _, f := range e.Verdict.Findings {
		if f.counts() {
			fmt.Fprintf(&b, "; %s at %s: %s", f.Rule, f.Path, f.Message)
		}
	}
	return b.String()
}

func denied(v Verdict) error {
	e := &Error{Code: CodeDenied, Err: &DeniedError{v}}
	for _, f := range v.Findings {
		if f.counts() {
			e.Field, e.Hint = f.Path, f.Remediation
			break
		}
	}
	return e
}

// Run is the one call: it creates a sandbox, runs cmd in it and destroys it,
// whatever happens. A command that exits with another status than 0 is a
// Result, not an error; see [Result.Err].
func (r *Runtime) Run(ctx context.Context, spec Spec, cmd Cmd) (_ *Result, err error) {
	sb, err := r.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() { // also when cmd.Stdin panics
		if cerr := sb.closeFor(ctx); cerr != nil {
			err = driver.Join(err, cerr)
		}
	}()
	return sb.Run(ctx, cmd)
}

// Check tells how the backend would enforce spec and what the Guard says of
// it, without creating anything and without I/O.
func (r *Runtime) Check(ctx context.Context, spec Spec) (driver.Plan, error) {
	op := r.begin("check")
	_, plan, err := r.plan(ctx, spec, op)
	plan.Warnings = op.record.Warnings
	return plan, op.name(err)
}

// Attach joins a sandbox that another process made, whether Detached or still
// its creator's. It never creates one, asks no Guard, and owns nothing: the
// sandbox ends as it would have, or by Close. Codes: not-found, gone; backends
// that keep nothing of an ended sandbox, as Docker, say not-found.
func (r *Runtime) Attach(ctx context.Context, id string) (*Sandbox, error) {
	op := r.begin("attach")
	op.record.Sandbox = id
	var raw driver.Sandbox
	err := r.bad
	if err == nil {
		raw, err = r.b.Attach(ctx, id)
	}
	var st Status
	if err == nil {
		st = raw.Status()
		op.record.Template, op.record.Tenant, op.record.Policy = st.Facts.Template, st.Facts.Tenant, st.Facts.Policy
		op.record.Image = st.Image
	}
	if err := op.end(ctx, err, nil); err != nil {
		return nil, err
	}
	return &Sandbox{rt: r, sb: raw, id: st.ID, detached: st.Detached, base: op.record, known: new(known)}, nil
}

// List yields the backend's sandboxes, of every owner, whose native labels
// contain all of labels. It yields at most one error, last.
func (r *Runtime) List(ctx context.Context, labels map[string]string) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		for st, err := range r.b.List(ctx, labels) {
			if err != nil {
				yield(Status{}, r.begin("list").name(err))
				return
			}
			if !yield(st, nil) {
				return
			}
		}
	}
}

// sweepLeftovers removes what an earlier process with this Runtime's owner
// left behind and nobody needs. It is a courtesy to the bill: its failure
// does not stop a creation, and a keeper does the same on its schedule.
func (r *Runtime) sweepLeftovers(ctx context.Context) {
	clock, ok := driver.As[driver.Clock](r.b)
	if !ok || !r.info.Can(driver.CanList) {
		return
	}
	now, err := clock.Now(ctx)
	if err != nil {
		return
	}
	for st, err := range r.b.List(ctx, map[string]string{driver.LabelOwner: r.opts.Owner}) {
		if err != nil {
			return
		}
		if st.Overdue(now) == "" {
			continue
		}
		if sb, err := r.b.Attach(ctx, st.ID); err == nil {
			op := r.begin("sweep")
			op.record.Sandbox, op.record.Tenant, op.record.Template, op.record.Policy = st.ID, st.Facts.Tenant, st.Facts.Template, st.Facts.Policy
			_ = op.end(ctx, sb.Kill(ctx), nil) // found again by the next sweep; a sink that fails fails the creation
		}
	}
}
