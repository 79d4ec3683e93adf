package memory

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	name  = "memory"
	image = "memory@sha256:f3fca788c085fdc263dd72c2f6c81e62cedfacb92f45942f5bea5f46954616bd" // pinned, as any image has to be
)

// Options configure a backend.
type Options struct {
	World *World // nil is a new one, known to this backend only
}

// Open gives a backend whose sandboxes live in the options' world.
func Open(opts Options) driver.Backend {
	if opts.World == nil {
		opts.World = NewWorld()
	}
	return &backend{world: opts.World}
}

type backend struct {
	world  *World
	closed atomic.Bool
}

var (
	_ driver.Backend   = (*backend)(nil)
	_ driver.Clock     = (*backend)(nil)
	_ driver.Scheduler = (*backend)(nil)
)

func (b *backend) Info() driver.Info {
	return driver.Info{
		Name: name,
		Capabilities: []driver.Capability{driver.CanAttach, driver.CanCompat, driver.CanDetach, driver.CanEgressCIDR, driver.CanEgressHost,
			driver.CanLearn, driver.CanEgressProxy, driver.CanExtend, driver.CanFiles, driver.CanList, driver.CanReportOOM, driver.CanSchedule, driver.CanStrict},
		Isolation:    driver.Unverified,
		DefaultImage: image,
		Simulated:    true,
	}
}

func (b *backend) Check(spec driver.Spec) (driver.Plan, error) {
	errs := []error{spec.Validate(), b.Info().Supports(spec)}
	if spec.Image != "" {
		_, err := driver.ParseImage(spec.Image)
		errs = append(errs, err)
	}
	if spec.Detached && spec.Network.Mode == driver.Proxy && (len(spec.Network.Egress) > 0 || spec.Network.Learn) {
		errs = append(errs, driver.Unsupported("network.mode", "a detached sandbox has no owner to run the proxy", `set mode to "transparent"`))
	}
	if err := driver.Join(errs...); err != nil {
		return driver.Plan{}, signed(err, "check", "")
	}
	const limits = "simulated: it holds for the probe vocabulary, which is all that can run"
	plan := driver.Plan{Isolation: driver.Unverified, Network: "none (simulated)", Warnings: []string{"the memory backend isolates nothing and runs no real programs"}}
	for _, r := range spec.Network.Egress {
		plan.Rules = append(plan.Rules, driver.Mechanism{Name: r.String(), By: "simulated", Limits: limits})
	}
	r := spec.Resources
	for _, c := range []struct {
		name, unit string
		value      any
	}{{"cpu", "m", r.CPUMillis}, {"memory", "MiB", r.MemoryMiB}, {"disk", "MiB", r.DiskMiB}, {"pids", "", r.PIDs}, {"lifetime", "", spec.Lifetime}} {
		plan.Caps = append(plan.Caps, driver.Mechanism{Name: c.name, By: fmt.Sprintf("simulated %v%s", c.value, c.unit), Limits: limits})
	}
	return plan, nil
}

func (b *backend) Create(ctx context.Context, spec driver.Spec) (driver.Sandbox, error) {
	if _, err := b.Check(spec); err != nil {
		return nil, err
	}
	if err := b.ready(ctx, "create"); err != nil {
		return nil, err
	}
	// The reserved domain is the one place where nothing can ever be found.
	if img, _ := driver.ParseImage(spec.Image); strings.HasSuffix(img.Registry, ".invalid") {
		return nil, signed(&driver.Error{Code: driver.CodeNotFound, Field: "image", Hint: "use " + image, Err: fmt.Errorf("there is no image %q", spec.Image)}, "create", "")
	}
	spec.Env, spec.Labels = maps.Clone(spec.Env), maps.Clone(spec.Labels)
	var id [8]byte
	_, _ = rand.Read(id[:])
	made, err := b.world.add(spec, hex.EncodeToString(id[:]))
	if err != nil {
		return nil, signed(err, "create", "")
	}
	return made.handle(true), nil
}

func (b *backend) Attach(ctx context.Context, id string) (driver.Sandbox, error) {
	if err := b.ready(ctx, "attach"); err != nil {
		return nil, err
	}
	found, existed := b.world.find(id)
	switch {
	case found != nil:
		return found.handle(false), nil
	case existed:
		return nil, signed(&driver.Error{Code: driver.CodeGone}, "attach", id)
	}
	return nil, signed(&driver.Error{Code: driver.CodeNotFound, Hint: "list the sandboxes there are"}, "attach", id)
}

func (b *backend) List(ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
	return func(yield func(driver.Status, error) bool) {
		if err := b.ready(ctx, "list"); err != nil {
			yield(driver.Status{}, err)
			return
		}
		for _, found := range b.world.snapshot() {
			if err := ctx.Err(); err != nil {
				yield(driver.Status{}, err)
				return
			}
			if driver.HasLabels(found.native(), labels) && !yield(found.status(), nil) {
				return
			}
		}
	}
}

// Now is the clock by which deadlines are judged.
func (b *backend) Now(ctx context.Context) (time.Time, error) { return time.Now(), ctx.Err() }

func (b *backend) Close() error {
	b.closed.Store(true)
	return nil
}

func (b *backend) ready(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.closed.Load() {
		return signed(&driver.Error{Code: driver.CodeUnavailable, Err: errors.New("the backend is closed"), Hint: "open another"}, op, "")
	}
	return nil
}

// signed names the backend, the operation and the sandbox in every problem of
// err.
func signed(err error, op, sandbox string) error {
	var out []error
	for _, p := range driver.Problems(err) {
		e := *p
		e.Backend, e.Op = name, op
		if e.Sandbox == "" {
			e.Sandbox = sandbox
		}
		out = append(out, &e)
	}
	return driver.Join(out...)
}
