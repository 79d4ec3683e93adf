package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// quiet is how long a beat is watched for its end: eight of them.
const quiet = 400 * time.Millisecond

// brief is a lifetime or a timeout that a check waits out. On a busy machine it
// is time enough for a sandbox or an interpreter to come up, and for what is
// asked before it ends.
const brief = 6 * time.Second

// soon is how long a check waits for what should happen at once.
const soon = 10 * time.Second

// label is one that every sandbox of a check has; its value is the order's.
const label = "drivertest"

// trial is one check under way: the backend, and what was made on it.
type trial struct {
	context.Context
	b    driver.Backend
	h    Harness
	mu   sync.Mutex
	ends []func(context.Context) error // of what was made
}

// with makes a Check's function of one that gets a trial, and ends every
// sandbox that was made, whatever became of the check.
func with(f func(t *trial) error) func(context.Context, driver.Backend, Harness) error {
	return func(ctx context.Context, b driver.Backend, h Harness) error {
		t := &trial{Context: ctx, b: b, h: h}
		err := f(t)
		for _, end := range t.ends {
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), soon)
			// Whether killing what is gone succeeds is asked once, elsewhere.
			if eerr := end(cleanup); eerr != nil && !errors.Is(eerr, driver.CodeGone) {
				err = errors.Join(err, fmt.Errorf("clean up: %w", eerr))
			}
			cancel()
		}
		return err
	}
}

// spec is an order that every backend accepts.
func (t *trial) spec() driver.Spec {
	var id [6]byte
	_, _ = rand.Read(id[:])
	token := "dt" + hex.EncodeToString(id[:])
	info := t.b.Info()
	spec := driver.Spec{
		Token: token, Image: t.h.Image, Lifetime: 2 * time.Minute,
		Resources: driver.Resources{CPUMillis: 1000, MemoryMiB: 128, DiskMiB: 32, PIDs: 128},
		Labels:    map[string]string{label: token},
		Facts:     driver.Facts{Owner: cmp.Or(t.h.Owner, "drivertest"), Instance: token},
	}
	if spec.Image == "" {
		spec.Image = info.DefaultImage
	}
	if !info.Can(driver.CanStrict) {
		spec.Profile = driver.Compat
	}
	return spec
}

func (t *trial) createFrom(spec driver.Spec) (driver.Sandbox, error) {
	s, err := t.b.Create(t, spec)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	t.keep(s)
	return s, nil
}

func (t *trial) keep(s driver.Sandbox) { t.finally(s.Kill) }

// finally has something done at the end of the check.
func (t *trial) finally(end func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = append(t.ends, end)
}

func (t *trial) create() (driver.Sandbox, error) { return t.createFrom(t.spec()) }

// output is what a program wrote and how it ended.
type output struct {
	stdout, stderr []byte
	exit           driver.Exit
}

func (o output) String() string {
	return fmt.Sprintf("exit %+v, stdout %.200q, stderr %.200q", o.exit, o.stdout, o.stderr)
}

// cmd says a probe as a command.
func (t *trial) cmd(p Probe, args ...string) driver.Cmd {
	return driver.Cmd{Args: t.h.Programs.Argv(p, args...), Timeout: time.Minute}
}

// run runs a command to its end.
func (t *trial) run(s driver.Sandbox, cmd driver.Cmd) (output, error) {
	var out output
	p, err := s.Start(t, cmd)
	if err != nil {
		return out, fmt.Errorf("start: %w", err)
	}
	return t.drain(p)
}

// drain reads a process to its end.
func (t *trial) drain(p driver.Process) (output, error) {
	var out output
	for {
		c, err := p.Recv(t)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, fmt.Errorf("recv: %w", err)
		}
		switch c.Stream {
		case driver.Stdout:
			out.stdout = append(out.stdout, c.Data...)
		case driver.Stderr:
			out.stderr = append(out.stderr, c.Data...)
		default:
			return out, fmt.Errorf("a chunk of %v", c.Stream)
		}
	}
	var err error
	if out.exit, err = p.Wait(t); err != nil {
		return out, fmt.Errorf("wait: %w", err)
	}
	return out, nil
}

// say runs a probe that must succeed and gives its stdout.
func (t *trial) say(s driver.Sandbox, p Probe, args ...string) (string, error) {
	out, err := t.run(s, t.cmd(p, args...))
	if err == nil && (out.exit.Code != 0 || out.exit.Signal != "") {
		err = fmt.Errorf("%s %.80q: %v", p, args, out)
	}
	return string(out.stdout), err
}

// background starts a probe that says "ready" and goes on.
func (t *trial) background(s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
	p, err := s.Start(t, cmd)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	ctx, cancel := context.WithTimeout(t, soon)
	defer cancel()
	var seen []byte
	for !bytes.Contains(seen, []byte("ready")) {
		c, err := p.Recv(ctx)
		if err != nil {
			return nil, fmt.Errorf("waiting for %q to be ready: %w, after %q", cmd.Args[0], err, seen)
		}
		seen = append(seen, c.Data...)
	}
	return p, nil
}

// running fails unless the process goes on.
func (t *trial) running(p driver.Process) error {
	ctx, cancel := context.WithTimeout(t, 200*time.Millisecond)
	defer cancel()
	if exit, err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it ended: %+v, %v", exit, err)
	}
	return nil
}

// stops waits until a file that a beat appends to grows no more.
func (t *trial) stops(s driver.Sandbox, file string) error {
	size := func() (int, error) {
		text, err := t.say(s, Copy, file)
		return len(text), err
	}
	before, err := size()
	if err == nil && before == 0 {
		err = errors.New("it never beat")
	}
	for deadline := time.Now().Add(soon / 2); err == nil; {
		if err = t.pause(quiet); err != nil {
			break
		}
		var after int
		if after, err = size(); err == nil && after == before {
			return nil
		}
		if before = after; time.Now().After(deadline) {
			return errors.New("a descendant goes on")
		}
	}
	return err
}

// beats fails unless the file grows.
func (t *trial) beats(s driver.Sandbox, file string) error {
	first := -1
	return t.eventually(soon, "nothing beats in "+file, func() (bool, error) {
		out, err := t.run(s, t.cmd(Copy, file)) // which may not exist yet
		if first < 0 {
			first = len(out.stdout)
		}
		return len(out.stdout) > first, err
	})
}

func (t *trial) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.Done():
		return t.Err()
	}
}

// eventually asks until the answer is yes.
func (t *trial) eventually(within time.Duration, otherwise string, f func() (bool, error)) error {
	for deadline := time.Now().Add(within); ; {
		ok, err := f()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after %v", otherwise, within)
		}
		if err := t.pause(50 * time.Millisecond); err != nil {
			return err
		}
	}
}

// wantCode fails unless err has one of the codes.
func wantCode(what string, err error, codes ...driver.Code) error {
	for _, c := range codes {
		if driver.CodeOf(err) == c {
			return nil
		}
	}
	return fmt.Errorf("%s: %v (code %q), want code %q", what, err, driver.CodeOf(err), codes)
}

// gone fails unless the sandbox answers that it has ended.
func (t *trial) gone(s driver.Sandbox) error {
	_, err := s.Start(t, t.cmd(Exit, "0"))
	return wantCode("starting a program in a sandbox that has ended", err, driver.CodeGone)
}

// listed tells whether a sandbox made from the order is in the backend's list.
// The order's own label is looked for, which nobody else's has.
func (t *trial) listed(b driver.Backend, token string) (bool, error) {
	for s, err := range b.List(t, map[string]string{label: token}) {
		if err != nil {
			return false, fmt.Errorf("list: %w", err)
		}
		if s.Labels[label] == token {
			return true, nil
		}
	}
	return false, nil
}

// vanishes waits until nothing of the order is found any more.
func (t *trial) vanishes(token string) error {
	if !t.b.Info().Can(driver.CanList) {
		return nil
	}
	return t.eventually(soon, "the sandbox is still listed", func() (bool, error) {
		there, err := t.listed(t.b, token)
		return !there, err
	})
}

// plain fails unless err is the context's own error, unwrapped by anybody.
func plain(what string, err, want error) error {
	if !errors.Is(err, want) || driver.CodeOf(err) != "" {
		return fmt.Errorf("%s: %v (code %q), want the context's own error", what, err, driver.CodeOf(err))
	}
	return nil
}

// bounded gives what f answers, or an error if it does not in time: what may
// hang for ever must not take the check with it.
func (t *trial) bounded(what string, f func() error) error {
	answer := make(chan error, 1)
	go func() { answer <- f() }()
	timer := time.NewTimer(soon)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-timer.C:
		return fmt.Errorf("%s: no answer within %v", what, soon)
	}
}

func lines(ss []string) string { return strings.Join(ss, "; ") }
