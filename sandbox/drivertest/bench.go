package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// payload is what the benchmarks of streams and files move at once.
const payload = 10_000_000

// Bench measures what programs pay on the backend that h opens: create to the
// first byte, kill, exec, 10 MB through stdin and stdout, 10 MB written to a
// file and read back, one sandbox found in a list, and cancel-to-dead: from
// the end of a caller's context to the answer that a program, with a
// descendant in another session, is gone.
//
// Beside the mean, each reports its 50th and 99th percentile in milliseconds.
// What the backend does not declare is left out.
func Bench(b *testing.B, h Harness) {
	b.Helper()
	backend, err := h.Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := backend.Close(); err != nil {
			b.Error(err)
		}
	}()
	for _, c := range []struct {
		name  string
		needs driver.Capability
		bytes int64
		run   func(t *trial, m *meter) error
	}{
		{"create-to-first-byte", "", 0, benchCreate},
		{"kill", "", 0, benchKill},
		{"exec", "", 0, inOne(benchExec)},
		{"stdin-10MB", "", payload, inOne(benchStdin)},
		{"stdout-10MB", "", payload, inOne(benchStdout)},
		{"file-write-10MB", driver.CanFiles, payload, inOne(benchWrite)},
		{"file-read-10MB", driver.CanFiles, payload, inOne(benchRead)},
		{"list", driver.CanList, 0, inOne(benchList)},
		{"cancel-to-dead", "", 0, benchCancel},
	} {
		if c.needs != "" && !backend.Info().Can(c.needs) {
			continue
		}
		b.Run(c.name, func(b *testing.B) {
			if c.bytes > 0 {
				b.SetBytes(c.bytes)
			}
			m := &meter{b: b}
			if err := with(func(t *trial) error { return c.run(t, m) })(b.Context(), backend, h); err != nil {
				b.Fatal(err)
			}
			m.report()
		})
	}
}

// meter takes the time of each turn of a benchmark.
type meter struct {
	b     *testing.B
	turns []time.Duration
}

// loop times f as often as the benchmark asks; prepare and clear are not
// timed, and may be nil.
func (m *meter) loop(prepare, f, clear func() error) error {
	untimed := func(f func() error) error {
		if f == nil {
			return nil
		}
		m.b.StopTimer()
		defer m.b.StartTimer()
		return f()
	}
	for m.b.Loop() {
		if err := untimed(prepare); err != nil {
			return err
		}
		begun := time.Now()
		err := f()
		m.turns = append(m.turns, time.Since(begun))
		if err := errors.Join(err, untimed(clear)); err != nil {
			return err
		}
	}
	return nil
}

func (m *meter) report() {
	slices.Sort(m.turns)
	for name, share := range map[string]int{"p50-ms": 50, "p99-ms": 99} {
		if n := len(m.turns); n > 0 {
			m.b.ReportMetric(float64(m.turns[(n-1)*share/100])/float64(time.Millisecond), name)
		}
	}
}

// inOne makes a benchmark of what happens in one sandbox.
func inOne(f func(t *trial, m *meter, s driver.Sandbox) error) func(t *trial, m *meter) error {
	return func(t *trial, m *meter) error {
		s, err := t.create()
		if err != nil {
			return err
		}
		return f(t, m, s)
	}
}

func benchCreate(t *trial, m *meter) error {
	var s driver.Sandbox
	return m.loop(nil, func() (err error) {
		if s, err = t.createFrom(t.spec()); err != nil {
			return err
		}
		p, err := s.Start(t, t.cmd(Args, "x"))
		if err == nil {
			_, err = p.Recv(t)
		}
		return err
	}, func() error { return s.Kill(t) })
}

func benchKill(t *trial, m *meter) error {
	var s driver.Sandbox
	return m.loop(func() (err error) { s, err = t.create(); return err }, func() error { return s.Kill(t) }, nil)
}

func benchExec(t *trial, m *meter, s driver.Sandbox) error {
	return m.loop(nil, func() error {
		_, err := t.run(s, driver.Cmd{Args: t.h.Programs.Argv("true"), Timeout: driver.DefaultTimeout})
		return err
	}, nil)
}

func benchStdin(t *trial, m *meter, s driver.Sandbox) error {
	data := make([]byte, payload)
	return m.loop(nil, func() error {
		cmd := t.cmd(Swallow)
		cmd.Stdin = true
		p, err := s.Start(t, cmd)
		if err != nil {
			return err
		}
		_, err = p.Stdin().Write(data)
		if err = errors.Join(err, p.Stdin().Close()); err != nil {
			return err
		}
		out, err := t.drain(p)
		if err == nil && out.exit.Code != 0 {
			err = fmt.Errorf("%v", out)
		}
		return err
	}, nil)
}

func benchStdout(t *trial, m *meter, s driver.Sandbox) error {
	return m.loop(nil, func() error { return t.flood(s, payload) }, nil)
}

func benchWrite(t *trial, m *meter, s driver.Sandbox) error {
	data := make([]byte, payload)
	return m.loop(nil, func() error { return t.writeFile(s.Files(), "file", data, 0o644) },
		func() error { return s.Files().Remove(t, "file", false) })
}

func benchRead(t *trial, m *meter, s driver.Sandbox) error {
	if err := t.writeFile(s.Files(), "file", bytes.Repeat([]byte("x"), payload), 0o644); err != nil {
		return err
	}
	return m.loop(nil, func() error {
		r, _, err := s.Files().Open(t, "file")
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, r)
		if err = errors.Join(err, r.Close()); err == nil && n != payload {
			err = fmt.Errorf("%d of %d bytes", n, payload)
		}
		return err
	}, nil)
}

func benchList(t *trial, m *meter, s driver.Sandbox) error {
	return m.loop(nil, func() error {
		there, err := t.listed(t.b, s.Status().Labels[label])
		if err == nil && !there {
			err = errors.New("it is not listed")
		}
		return err
	}, nil)
}

func benchCancel(t *trial, m *meter) error {
	spec, _ := t.wish()
	s, err := t.runtime().Create(t, spec)
	if err != nil {
		return err
	}
	t.finally(func(context.Context) error { return s.Close() })
	var p *sandbox.Process
	cancel := func() {}
	defer func() { cancel() }()
	return m.loop(func() (err error) {
		var ctx context.Context
		ctx, cancel = context.WithCancel(t)
		p, err = t.daemon(ctx, s, "/tmp/beat")
		return err
	}, func() error {
		cancel()
		_, err := p.Wait()
		return truly("wait", err, context.Canceled)
	}, nil)
}
