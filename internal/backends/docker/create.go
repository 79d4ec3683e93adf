package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	// greetLimit bounds the time from start to attestation.
	greetLimit = 30 * time.Second

	// routedLimit bounds a creation with a gateway until the sandbox is started.
	// Its creator keeps to it, and sweeps leave alone what it has made until
	// startMargin later, in which it removes the same itself.
	routedLimit = wayLimit + greetLimit
	startMargin = 10 * time.Second

	// lastWords is how long an ended container's stream is still read, should
	// it not end by itself.
	lastWords = 500 * time.Millisecond
)

// Create makes a sandbox that has everything spec asks for, or nothing.
func (b *Backend) Create(ctx context.Context, spec driver.Spec) (driver.Sandbox, error) {
	if _, err := b.Check(spec); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec.Env, spec.Labels = maps.Clone(spec.Env), maps.Clone(spec.Labels) // the caller's may change
	cli, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	o, err := b.prepare(ctx, cli, spec)
	if err != nil {
		return nil, fail(ctx, "create", "", err)
	}
	if routed(spec.Network) {
		return b.createRouted(ctx, cli, o)
	}
	sb, err := b.createOn(ctx, cli, o)
	if err != nil {
		return nil, err
	}
	return sb, nil
}

// createRouted makes what leads out, and then the sandbox.
func (b *Backend) createRouted(ctx context.Context, cli *client.Client, o order) (driver.Sandbox, error) {
	making, cancel := context.WithTimeoutCause(ctx, b.routedLimit, errLate)
	defer cancel()
	o.startBy = o.created.Add(b.routedLimit + startMargin)
	var err error
	if o.way, err = b.openWay(ctx, cli, o); err != nil {
		return nil, err
	}
	sb, err := b.createOn(making, cli, o)
	if err == nil {
		return sb, nil
	}
	switch {
	case errors.Is(err, driver.CodeLeaked):
	case ctx.Err() == nil && making.Err() != nil:
		err = &driver.Error{Code: driver.CodeUnavailable, Hint: hintDoctor, Err: errLate}
	default:
		err = b.sweptWay(ctx, cli, o.way, err)
	}
	return nil, b.closeAfter(ctx, cli, o.way, "create", err)
}

// errLate is why a creation that takes too long is given up.
var errLate = fmt.Errorf("the sandbox and its gateway did not come up within %v", routedLimit)

// createOn makes the container of an order whose way out stands already, if it
// has one.
func (b *Backend) createOn(ctx context.Context, cli *client.Client, o order) (*sandbox, error) {
	id, warnings, err := b.createContainer(ctx, cli, "create", o.options())
	if absent(err) && !errors.Is(err, driver.CodeLeaked) {
		if swept := b.sweptWay(ctx, cli, o.way, err); swept != err { //nolint:errorlint // the very same
			return nil, swept
		}
		// The image went away since it was looked at.
		b.images.drop(o.spec.Image)
		parsed, _ := driver.ParseImage(o.spec.Image)
		return nil, fail(ctx, "create", "", noImage(o.spec.Image, parsed))
	}
	if err != nil {
		return nil, err
	}
	var sb *sandbox
	if err = refuseWarnings(warnings); err == nil {
		sb, err = b.bringUp(ctx, cli, o, id)
	}
	if err != nil {
		return nil, b.undo(ctx, cli, "create", id, err)
	}
	return sb, nil
}

// prepare finds out all that an order needs, making nothing.
func (b *Backend) prepare(ctx context.Context, cli *client.Client, spec driver.Spec) (order, error) {
	o := order{spec: spec, runtime: b.opts.Runtime, uid: newUID()}
	h, err := b.able(ctx, cli)
	if err != nil {
		return o, err
	}
	if o.image, err = b.inspectImage(ctx, cli, spec.Image); err != nil {
		return o, err
	}
	if o.helper, err = b.findHelper(ctx, cli); err != nil {
		return o, err
	}
	if o.disk, err = divide(spec.Resources.DiskMiB, spec.Profile, o.image.volumes); err != nil {
		return o, err
	}
	if o.outlet, err = b.openOutlet(spec.Network); err != nil {
		return o, err
	}
	o.created = time.Now().Add(h.skew)
	// Names hold whole seconds; never below what was asked for.
	o.deadline = o.created.Add(spec.Lifetime + time.Second - 1).Truncate(time.Second)
	o.expires = o.deadline.Add(spec.LongestLife() - spec.Lifetime)
	return o, nil
}

// refuseWarnings stops where an engine creates a container without a cap and
// only says so.
func refuseWarnings(warnings []string) error {
	for _, w := range warnings {
		if strings.Contains(w, "discarded") || strings.Contains(w, "does not support") || strings.Contains(w, "Limitation discarded") {
			return &driver.Error{Code: driver.CodeUnsupported, Field: "resources", Hint: hintDoctor, Err: fmt.Errorf("the engine drops a cap: %s", w)}
		}
	}
	return nil
}

// bringUp starts a created container, joins its guest and hands over a
// sandbox whose controls were seen from inside.
func (b *Backend) bringUp(ctx context.Context, cli *client.Client, o order, id string) (*sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := b.verifyHelper(ctx, cli, o.helper, id); err != nil {
		return nil, b.swept(ctx, cli, id, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, greetLimit, errSlow)
	defer cancel()
	s := &sandbox{b: b, cli: cli, id: id, joining: make(chan struct{}, 1), status: o.status(id), creator: !o.spec.Detached, outlet: o.outlet}
	if o.way != nil {
		s.set, s.router, s.heard = o.way.set, o.way.gateway, o.way.heard
	}
	var conn *stream
	var err error
	if s.creator {
		if conn, err = attach(ctx, cli, id); err != nil {
			return nil, b.swept(ctx, cli, id, err)
		}
	}
	if _, err := cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return nil, b.swept(ctx, cli, id, slow(ctx, err))
	}
	if conn == nil {
		if conn, err = bridge(ctx, cli, id); err != nil {
			return nil, slow(ctx, err)
		}
	}
	c, err := greet(ctx, cli, id, conn, guest.Options{Backend: Name, Sandbox: id, Env: o.env(), Configure: true})
	if err != nil && time.Since(began) > driver.StartGrace { // before that it went by itself
		err = b.swept(ctx, cli, id, err)
	}
	if err != nil {
		return nil, slow(ctx, err)
	}
	listening := make(chan error, 1)
	go func() { listening <- o.listen(ctx, c) }() // beside, since each is a round trip
	rep, err := c.Attest(ctx)
	if err == nil {
		s.status.Isolation, s.status.Evidence = measured(rep, b.host.Load().kernel, time.Now())
		err = driver.Join(b.opts.reached(s.status.Isolation, s.status.Evidence), o.compare(rep, s.status.Isolation))
	}
	if lerr := <-listening; err == nil {
		err = lerr
	}
	if err != nil {
		_ = c.Close()
		return nil, slow(ctx, err)
	}
	s.guest = c
	return s, nil
}

// errSlow is why a bring-up that takes too long is given up.
var errSlow = fmt.Errorf("the sandbox did not come up within %v", greetLimit)

// slow tells our own bound from the caller's.
func slow(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		return &driver.Error{Code: driver.CodeUnavailable, Hint: hintDoctor, Err: errSlow}
	}
	return err
}

// status is what is known at creation.
func (o order) status(id string) driver.Status {
	facts := o.spec.Facts
	facts.Instance = o.spec.Token
	return driver.Status{ID: id, Name: o.name(), Backend: Name, State: driver.StateRunning, Image: o.spec.Image, Created: o.created,
		Deadline: o.deadline, Detached: o.spec.Detached, Facts: facts, Labels: o.spec.Labels}
}

// attach joins the container's stdin and stdout. Once per sandbox, and before
// its start: a second attach would corrupt the first.
func attach(ctx context.Context, cli *client.Client, id string) (*stream, error) {
	res, err := cli.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	return newStream(res.Conn), nil
}

// bridge joins the guest through a process of its own inside, as uid 0.
func bridge(ctx context.Context, cli *client.Client, id string) (*stream, error) {
	res, err := cli.ExecCreate(ctx, id, client.ExecCreateOptions{User: "0:0", AttachStdin: true, AttachStdout: true, AttachStderr: true, WorkingDir: "/", Cmd: guest.BridgeArgs()})
	if err != nil {
		return nil, err
	}
	att, err := cli.ExecAttach(ctx, res.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	return newStream(att.Conn), nil
}

// greet says hello to the guest, racing the container's end: attaching to one
// that has ended hangs without an error. It closes conn on error.
func greet(ctx context.Context, cli *client.Client, id string, conn *stream, opts guest.Options) (*guest.Client, error) {
	waiting, stop := context.WithCancel(ctx)
	ended := make(chan string, 1) // closed empty when the wait itself failed
	go func() {
		defer close(ended)
		w := cli.ContainerWait(waiting, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
		select {
		case res := <-w.Result:
			ended <- fmt.Sprintf("it exited with %d", res.StatusCode)
			// Its last words may still be on their way.
			select {
			case <-waiting.Done():
			case <-time.After(lastWords):
			}
			_ = conn.Close()
		case err := <-w.Error:
			if absent(err) {
				ended <- "it is gone"
				_ = conn.Close()
			}
		}
	}()
	opts.Over = func(ctx context.Context) bool {
		res, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		return absent(err) || err == nil && res.Container.State != nil && !res.Container.State.Running
	}
	c, err := guest.Connect(ctx, conn, opts)
	if err != nil && ctx.Err() == nil {
		err = explain(err, ended, conn)
	}
	stop()
	for range ended { // until the goroutine is done
	}
	return c, err
}

// explain adds to a failed greeting why the container ended, if it did.
func explain(err error, ended <-chan string, conn *stream) error {
	var e *driver.Error
	if errors.As(err, &e) && e.Code != driver.CodeGone && e.Code != driver.CodeUnavailable {
		return err // the guest answered, and said no
	}
	how := "the connection ended"
	select {
	case s, ok := <-ended:
		if ok {
			how = s
		}
	case <-time.After(time.Second):
	}
	if said := conn.said(); said != "" {
		how += "; it said: " + said
	}
	return &driver.Error{Code: driver.CodeInternal, Hint: hintDoctor, Err: fmt.Errorf("the guest did not answer (%s): %w", how, err)}
}
