package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// wire cancels the caller's context at the n-th call that the core makes of
// its backend, just before the call or just after it.
type wire struct {
	mu     sync.Mutex
	left   int
	after  bool
	cancel context.CancelFunc
	cut    bool
}

func (w *wire) arm(n int, after bool, cancel context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.after, w.cancel, w.cut = n, after, cancel, false
}

// disarm reports whether the wire was reached.
func (w *wire) disarm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = 0
	return w.cut
}

func (w *wire) step() (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left--; w.left != 0 {
		return func() {}
	}
	w.cut = true
	if w.after {
		return w.cancel
	}
	w.cancel()
	return func() {}
}

type wiredBackend struct {
	driver.Backend
	w *wire
}

func (b wiredBackend) Check(s driver.Spec) (driver.Plan, error) {
	defer b.w.step()()
	return b.Backend.Check(s)
}

func (b wiredBackend) Create(ctx context.Context, s driver.Spec) (driver.Sandbox, error) {
	defer b.w.step()()
	sb, err := b.Backend.Create(ctx, s)
	if err != nil {
		return nil, err
	}
	return wiredSandbox{sb, b.w}, nil
}

func (b wiredBackend) Attach(ctx context.Context, id string) (driver.Sandbox, error) {
	defer b.w.step()()
	sb, err := b.Backend.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	return wiredSandbox{sb, b.w}, nil
}

func (b wiredBackend) List(ctx context.Context, labels map[string]string) iter.Seq2[driver.Status, error] {
	defer b.w.step()()
	return b.Backend.List(ctx, labels)
}

func (b wiredBackend) Now(ctx context.Context) (time.Time, error) {
	defer b.w.step()()
	clock, _ := driver.As[driver.Clock](b.Backend)
	return clock.Now(ctx)
}

func (b wiredBackend) Unwrap() driver.Backend { return b.Backend }

type wiredSandbox struct {
	driver.Sandbox
	w *wire
}

func (s wiredSandbox) Start(ctx context.Context, c driver.Cmd) (driver.Process, error) {
	defer s.w.step()()
	p, err := s.Sandbox.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return wiredProcess{p, s.w}, nil
}

func (s wiredSandbox) Kill(ctx context.Context) error {
	defer s.w.step()()
	return s.Sandbox.Kill(ctx)
}

func (s wiredSandbox) Extend(ctx context.Context, deadline time.Time) error {
	defer s.w.step()()
	e, _ := driver.As[driver.Extender](s.Sandbox)
	return e.Extend(ctx, deadline)
}

func (s wiredSandbox) Files() driver.Files    { return wiredFiles{s.Sandbox.Files(), s.w} }
func (s wiredSandbox) Unwrap() driver.Sandbox { return s.Sandbox }

type wiredProcess struct {
	driver.Process
	w *wire
}

func (p wiredProcess) Recv(ctx context.Context) (driver.Chunk, error) {
	defer p.w.step()()
	return p.Process.Recv(ctx)
}

func (p wiredProcess) Wait(ctx context.Context) (driver.Exit, error) {
	defer p.w.step()()
	return p.Process.Wait(ctx)
}

func (p wiredProcess) Kill(ctx context.Context) error {
	defer p.w.step()()
	return p.Process.Kill(ctx)
}

type wiredFiles struct {
	driver.Files
	w *wire
}

func (f wiredFiles) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	defer f.w.step()()
	r, i, err := f.Files.Open(ctx, name)
	if err != nil {
		return nil, i, err
	}
	return wiredReader{r, f.w}, i, nil
}

func (f wiredFiles) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	defer f.w.step()()
	w, err := f.Files.Create(ctx, name, mode)
	if err != nil {
		return nil, err
	}
	return wiredWriter{w, f.w}, nil
}

func (f wiredFiles) List(ctx context.Context, name string) ([]driver.FileInfo, error) {
	defer f.w.step()()
	return f.Files.List(ctx, name)
}

func (f wiredFiles) Mkdir(ctx context.Context, name string, mode fs.FileMode) error {
	defer f.w.step()()
	return f.Files.Mkdir(ctx, name, mode)
}

type wiredReader struct {
	io.ReadCloser
	w *wire
}

func (r wiredReader) Read(b []byte) (int, error) {
	defer r.w.step()()
	return r.ReadCloser.Read(b)
}

type wiredWriter struct {
	io.WriteCloser
	w *wire
}

func (w wiredWriter) Write(b []byte) (int, error) {
	defer w.w.step()()
	return w.WriteCloser.Write(b)
}

func (w wiredWriter) Close() error {
	defer w.w.step()()
	return w.WriteCloser.Close()
}

// TestCancelledAtEveryStep cancels each call of the API at each step that it
// makes (M176). What is left must be nothing, and the error the context's own.
func TestCancelledAtEveryStep(t *testing.T) {
	t.Parallel()
	ofRuntime := map[string]func(ctx context.Context, rt *sandbox.Runtime) error{
		"Create": func(ctx context.Context, rt *sandbox.Runtime) error {
			sb, err := rt.Create(ctx, sandbox.Spec{})
			if err == nil {
				err = sb.Close()
			}
			return err
		},
		"Run": func(ctx context.Context, rt *sandbox.Runtime) error {
			_, err := rt.Run(ctx, sandbox.Spec{}, sandbox.Cmd{Args: []string{"both", "out", "err"}})
			return err
		},
		"Run of a program that hangs": func(ctx context.Context, rt *sandbox.Runtime) error {
			_, err := rt.Run(ctx, sandbox.Spec{Lifetime: time.Hour}, sandbox.Cmd{Args: []string{"spawn-daemon", "/tmp/beat"}})
			if sandbox.CodeOf(err) == sandbox.CodeTimeout {
				err = nil // the wire was never reached
			}
			return err
		},
	}
	ofSandbox := map[string]func(ctx context.Context, sb *sandbox.Sandbox) error{
		"Run": func(ctx context.Context, sb *sandbox.Sandbox) error {
			_, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"cat"}, Stdin: bytes.NewReader(make([]byte, 1<<20))})
			return err
		},
		"Run of a program that leaves something": func(ctx context.Context, sb *sandbox.Sandbox) error {
			_, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"spawn-daemon", "/tmp/beat"}, Timeout: time.Second})
			if sandbox.CodeOf(err) == sandbox.CodeTimeout {
				err = nil
			}
			return err
		},
		"Start, Output and Wait": func(ctx context.Context, sb *sandbox.Sandbox) error {
			p, err := sb.Start(ctx, sandbox.Cmd{Args: []string{"flood", "300000"}})
			if err != nil {
				return err
			}
			for _, err := range p.Output() {
				if err != nil {
					break // Wait says it again
				}
			}
			_, err = p.Wait()
			return err
		},
		"RunCode": func(ctx context.Context, sb *sandbox.Sandbox) error {
			_, err := sb.RunCode(ctx, sandbox.Source{Language: "sh", Text: "echo a\necho b"})
			return err
		},
		"Write": func(ctx context.Context, sb *sandbox.Sandbox) error {
			return sb.Files().Write(ctx, "/work/new", make([]byte, 200_000), 0o600)
		},
		"Create a file": func(ctx context.Context, sb *sandbox.Sandbox) error {
			w, err := sb.Files().Create(ctx, "/work/new", 0o600)
			if err != nil {
				return err
			}
			_, err = io.Copy(w, bytes.NewReader(make([]byte, 200_000)))
			if cerr := w.Close(); err == nil {
				err = cerr
			}
			return err
		},
		"Read": func(ctx context.Context, sb *sandbox.Sandbox) error {
			_, err := sb.Files().Read(ctx, "/tmp/there")
			return err
		},
		"List": func(ctx context.Context, sb *sandbox.Sandbox) error {
			_, err := sb.Files().List(ctx, "/tmp")
			return err
		},
		"Extend": func(ctx context.Context, sb *sandbox.Sandbox) error { return sb.Extend(ctx, time.Hour) },
	}
	// every tries f with the wire at each step until it is not reached.
	every := func(t *testing.T, f func(t *testing.T, try attempt) (cut bool)) {
		t.Helper()
		for _, after := range []bool{false, true} {
			n, reached := 0, true
			for reached {
				n++
				synctest.Test(t, func(t *testing.T) { reached = f(t, attempt{n, after}) })
			}
			if n < 2 {
				t.Error("no step was cut")
			}
		}
	}
	for name, f := range ofRuntime {
		t.Run("Runtime: "+name, func(t *testing.T) {
			every(t, func(t *testing.T, try attempt) bool {
				t.Helper()
				world, w := memory.NewWorld(), &wire{}
				defer func() { _ = world.Close() }()
				rt := sandbox.New(wiredBackend{memory.Open(memory.Options{World: world}), w}, unguarded)
				cut := try.run(t, w, func(ctx context.Context) error { return f(ctx, rt) })
				if left := world.Leftovers(); len(left) > 0 {
					t.Errorf("%v: left %v", try, left)
				}
				return cut
			})
		})
	}
	for name, f := range ofSandbox {
		t.Run("Sandbox: "+name, func(t *testing.T) {
			every(t, func(t *testing.T, try attempt) bool {
				t.Helper()
				world, w := memory.NewWorld(), &wire{}
				defer func() { _ = world.Close() }()
				rt := sandbox.New(wiredBackend{memory.Open(memory.Options{World: world}), w}, unguarded)
				sb, err := rt.Create(t.Context(), sandbox.Spec{MaxLifetime: 2 * time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				if err := sb.Files().Write(t.Context(), "/tmp/there", []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
				var failed error
				cut := try.run(t, w, func(ctx context.Context) error { failed = f(ctx, sb); return failed })
				synctest.Wait()
				if running := world.Running(); running > 0 {
					t.Errorf("%v: %d programs run on", try, running)
				}
				left, err := sb.Files().List(t.Context(), "/work")
				if err != nil || failed != nil && len(left) > 0 {
					t.Errorf("%v: files are left: %v, %v", try, left, err)
				}
				if err := sb.Close(); err != nil {
					t.Error(err)
				}
				return cut
			})
		})
	}
}

// attempt is one try with the wire at a step.
type attempt struct {
	n     int
	after bool
}

func (a attempt) String() string {
	return fmt.Sprintf("cancelled at step %d, after it %v", a.n, a.after)
}

func (a attempt) run(t *testing.T, w *wire, f func(context.Context) error) (cut bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.arm(a.n, a.after, cancel)
	if err := f(ctx); err != nil && err != context.Canceled { //nolint:errorlint // unwrapped is what is promised
		t.Errorf("%v: %v", a, err)
	}
	return w.disarm()
}
