package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// held counts what the core has taken from a backend and not given back.
type held struct {
	driver.Backend
	processes, readers, writers atomic.Int32
}

func (h *held) Create(ctx context.Context, s driver.Spec) (driver.Sandbox, error) {
	sb, err := h.Backend.Create(ctx, s)
	return heldSandbox{sb, h}, err
}

func (h *held) Attach(ctx context.Context, id string) (driver.Sandbox, error) {
	sb, err := h.Backend.Attach(ctx, id)
	return heldSandbox{sb, h}, err
}

func (h *held) Unwrap() driver.Backend { return h.Backend }

type heldSandbox struct {
	driver.Sandbox
	h *held
}

func (s heldSandbox) Unwrap() driver.Sandbox { return s.Sandbox }
func (s heldSandbox) Files() driver.Files    { return heldFiles{s.Sandbox.Files(), s.h} }

func (s heldSandbox) Start(ctx context.Context, c driver.Cmd) (driver.Process, error) {
	p, err := s.Sandbox.Start(ctx, c)
	if err == nil {
		s.h.processes.Add(1)
		p = &heldProcess{Process: p, h: s.h}
	}
	return p, err
}

type heldProcess struct {
	driver.Process
	h    *held
	over atomic.Bool
}

func (p *heldProcess) end() {
	if p.over.CompareAndSwap(false, true) {
		p.h.processes.Add(-1)
	}
}

func (p *heldProcess) Wait(ctx context.Context) (driver.Exit, error) {
	defer p.end()
	return p.Process.Wait(ctx)
}

func (p *heldProcess) Kill(ctx context.Context) error {
	defer p.end()
	return p.Process.Kill(ctx)
}

type heldFiles struct {
	driver.Files
	h *held
}

func (f heldFiles) Open(ctx context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	r, fi, err := f.Files.Open(ctx, name)
	if err == nil {
		f.h.readers.Add(1)
		r = heldReader{r, f.h}
	}
	return r, fi, err
}

func (f heldFiles) Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error) {
	w, err := f.Files.Create(ctx, name, mode)
	if err == nil {
		f.h.writers.Add(1)
		w = heldWriter{w, f.h}
	}
	return w, err
}

type heldReader struct {
	io.ReadCloser
	h *held
}

func (r heldReader) Close() error { r.h.readers.Add(-1); return r.ReadCloser.Close() }

type heldWriter struct {
	io.WriteCloser
	h *held
}

func (w heldWriter) Close() error { w.h.writers.Add(-1); return w.WriteCloser.Close() }

// call is one call of the public API and what it must be recorded as.
type call struct {
	op string
	do func(context.Context, *testing.T, *sandbox.Runtime, *sandbox.Sandbox) error
}

func calls() []call {
	files := func(do func(context.Context, *testing.T, *sandbox.Files) error) func(context.Context, *testing.T, *sandbox.Runtime, *sandbox.Sandbox) error {
		return func(ctx context.Context, t *testing.T, _ *sandbox.Runtime, sb *sandbox.Sandbox) error {
			t.Helper()
			return do(ctx, t, sb.Files())
		}
	}
	return []call{
		{"create", func(ctx context.Context, _ *testing.T, rt *sandbox.Runtime, _ *sandbox.Sandbox) error {
			_, err := rt.Create(ctx, sandbox.Spec{})
			return err
		}},
		{"attach", func(ctx context.Context, _ *testing.T, rt *sandbox.Runtime, sb *sandbox.Sandbox) error {
			_, err := rt.Attach(ctx, sb.ID())
			return err
		}},
		{"run", func(ctx context.Context, _ *testing.T, _ *sandbox.Runtime, sb *sandbox.Sandbox) error {
			_, err := sb.Run(ctx, sandbox.Cmd{Args: []string{"true"}})
			return err
		}},
		{"run-code", func(ctx context.Context, _ *testing.T, _ *sandbox.Runtime, sb *sandbox.Sandbox) error {
			_, err := sb.RunCode(ctx, sandbox.Source{Language: "sh", Text: "true"})
			return err
		}},
		{"start", func(ctx context.Context, _ *testing.T, _ *sandbox.Runtime, sb *sandbox.Sandbox) error {
			_, err := sb.Start(ctx, sandbox.Cmd{Args: []string{"hang"}})
			return err
		}},
		{"extend", func(ctx context.Context, _ *testing.T, _ *sandbox.Runtime, sb *sandbox.Sandbox) error {
			return sb.Extend(ctx, time.Minute)
		}},
		{"close", func(_ context.Context, _ *testing.T, _ *sandbox.Runtime, sb *sandbox.Sandbox) error {
			return sb.Close()
		}},
		{"open", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error {
			_, _, err := f.Open(ctx, "there")
			return err
		})},
		{"create-file", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error {
			_, err := f.Create(ctx, "new", 0o600)
			return err
		})},
		{"read", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error {
			_, err := f.Read(ctx, "there")
			return err
		})},
		{"write", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error {
			return f.Write(ctx, "new", []byte("x"), 0o600)
		})},
		{"stat", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error {
			_, err := f.Stat(ctx, "there")
			return err
		})},
		{"list", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error {
			_, err := f.List(ctx, ".")
			return err
		})},
		{"mkdir", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error { return f.Mkdir(ctx, "d", 0o700) })},
		{"remove", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error { return f.Remove(ctx, "there", false) })},
		{"rename", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error { return f.Rename(ctx, "there", "then") })},
		{"upload", files(func(ctx context.Context, _ *testing.T, f *sandbox.Files) error {
			_, err := f.Upload(ctx, fstest.MapFS{"a": {Data: []byte("x"), Mode: 0o600}}, "up")
			return err
		})},
		{"download", files(func(ctx context.Context, t *testing.T, f *sandbox.Files) error {
			t.Helper()
			_, err := f.Download(ctx, ".", filepath.Join(t.TempDir(), "down"), archive.Limits{})
			return err
		})},
	}
}

// prepared is a sandbox with a file in it, on a backend that counts.
func prepared(t *testing.T, s sandbox.Sink) (*sandbox.Runtime, *sandbox.Sandbox, *held, func() []string) {
	t.Helper()
	b, left := world(t)
	h := &held{Backend: b}
	rt := sandbox.New(h, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}})
	sb, err := rt.Create(t.Context(), sandbox.Spec{MaxLifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	if err := sb.Files().Write(t.Context(), "there", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return rt, sb, h, left
}

func TestEveryCallMakesOneRecord(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			s := &sink{}
			rt, sb, _, _ := prepared(t, s)
			before := len(s.records)
			if err := c.do(t.Context(), t, rt, sb); err != nil {
				t.Fatal(err)
			}
			var ops []string
			for _, r := range s.records[before:] {
				ops = append(ops, r.Op)
				if r.Time.IsZero() || r.Backend != "memory" || r.Sandbox == "" || r.Owner == "" || r.Code != "" || r.Error != "" {
					t.Errorf("incomplete: %+v", r)
				}
			}
			if !slices.Equal(ops, []string{c.op}) {
				t.Errorf("recorded %v", ops)
			}
		})
	}
}

// failing is a sink that does not keep the Records of one operation.
type failing struct {
	op    string
	panic bool
	sink
}

func (f *failing) Record(ctx context.Context, r sandbox.Record) error {
	if r.Op == f.op {
		if f.panic {
			panic("disk full")
		}
		return errors.New("disk full")
	}
	return f.sink.Record(ctx, r)
}

func TestWhatCannotBeRecordedIsUndone(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		for _, panics := range []bool{false, true} {
			name := c.op + " with a sink that fails"
			if panics {
				name = c.op + " with a sink that panics"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := &failing{panic: panics}
				rt, sb, h, left := prepared(t, f)
				f.op = c.op
				deadline := sb.Status().Deadline
				err := c.do(t.Context(), t, rt, sb)
				if !errors.Is(err, sandbox.CodeUnavailable) || !strings.Contains(err.Error(), "disk full") {
					t.Errorf("got %v, want unavailable", err)
				}
				if n := h.processes.Load(); n != 0 {
					t.Errorf("%d processes run on", n)
				}
				if r, w := h.readers.Load(), h.writers.Load(); r != 0 || w != 0 {
					t.Errorf("%d readers and %d writers are left open", r, w)
				}
				if d := sb.Status().Deadline; !d.Equal(deadline) {
					t.Errorf("its deadline was %v and is %v", deadline, d)
				}
				if c.op == "create-file" { // given up, not finished
					if _, err := sb.Files().Stat(t.Context(), "new"); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("the file is there: %v", err)
					}
				}
				f.op = ""
				if c.op != "close" { // killed first, recorded second
					if err := sb.Close(); err != nil {
						t.Error(err)
					}
				}
				if l := left(); len(l) > 0 {
					t.Errorf("left: %v", l)
				}
			})
		}
	}
}

// Run is three operations; whichever cannot be recorded, nothing stays.
func TestARunThatCannotBeRecordedLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "run", "close"} {
		b, left := world(t)
		f := &failing{op: op}
		_, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{f}}).Run(t.Context(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"true"}})
		if !errors.Is(err, sandbox.CodeUnavailable) || len(left()) > 0 {
			t.Errorf("%s: %v, left %v", op, err, left())
		}
	}
}

func TestWaitIsRecordedOnceHoweverOftenItIsCalled(t *testing.T) {
	t.Parallel()
	s := &sink{}
	_, sb, _, _ := prepared(t, s)
	p, err := sb.Start(t.Context(), sandbox.Cmd{Args: []string{"exit", "3"}})
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.records)
	for range 3 {
		if exit, err := p.Wait(); err != nil || exit.Code != 3 {
			t.Errorf("%+v, %v", exit, err)
		}
	}
	if got := s.records[before:]; len(got) != 1 || got[0].Op != "wait" || got[0].Program != "exit" || got[0].Args != 2 || got[0].Exit.Code != 3 {
		t.Errorf("%+v", got)
	}
}

// What an owner's earlier process left behind is killed by the first creation;
// that is an operation too.
func TestASweepIsRecorded(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	s := &sink{}
	st := driver.Status{ID: "old", Facts: driver.Facts{Owner: "me", Tenant: "t1"}, State: driver.StateRunning, Created: time.Unix(1, 0), Deadline: time.Unix(2, 0)}
	rt := sandbox.New(leftover{b, st}, sandbox.Options{Unguarded: "a test", Owner: "me", Sinks: []sandbox.Sink{s}})
	sb, err := rt.Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	if len(s.records) != 2 || s.records[0].Op != "sweep" || s.records[0].Sandbox != "old" || s.records[0].Tenant != "t1" || s.records[1].Op != "create" {
		t.Errorf("%+v", s.records)
	}
}

// leftover is a backend with one sandbox whose time has passed.
type leftover struct {
	driver.Backend
	st driver.Status
}

func (l leftover) Now(context.Context) (time.Time, error) { return time.Unix(3, 0), nil }

func (l leftover) List(context.Context, map[string]string) iter.Seq2[driver.Status, error] {
	return func(yield func(driver.Status, error) bool) { yield(l.st, nil) }
}

func (l leftover) Attach(context.Context, string) (driver.Sandbox, error) { return dead{l.st}, nil }

type dead struct{ st driver.Status }

func (d dead) Status() driver.Status { return d.st }
func (d dead) Start(context.Context, driver.Cmd) (driver.Process, error) {
	return nil, driver.CodeGone
}
func (d dead) Files() driver.Files        { return nil }
func (d dead) Kill(context.Context) error { return nil }

// An engine's answer, or what hostile code made it say, must not make a Record
// that no sink takes.
func TestARecordsErrorIsBounded(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	s := &sink{}
	l := lying{b, func(context.Context, driver.Spec, driver.Backend) (driver.Sandbox, error) {
		return nil, &driver.Error{Code: driver.CodeInternal, Err: errors.New(strings.Repeat("é\xff", 1<<20))}
	}}
	if _, err := sandbox.New(l, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}}).Create(t.Context(), sandbox.Spec{}); err == nil {
		t.Fatal("no error")
	}
	if e := s.records[0].Error; len(e) > 9<<10 || !strings.HasSuffix(e, "…") {
		t.Errorf("%d bytes", len(e))
	}
}

// The JSON of a Record is what audit files hold: its fields are never renamed.
// A secret need not be text, and a Record is.
func TestABinarySecretIsTakenOutBeforeTheRecordBecomesText(t *testing.T) {
	t.Parallel()
	const secret = "\xff\xfe\xfd-binary-\x80\x81"
	k := &kept{}
	b, _ := world(t)
	sb, err := sandbox.New(b, sandbox.Options{Unguarded: "our own, by " + secret, Sinks: []sandbox.Sink{k}}).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	cmd := sandbox.Cmd{Args: []string{"true"}, Secrets: map[string]sandbox.Secret{"T": sandbox.NewSecret(secret)}}
	if _, err := sb.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	if got := k.last().Unguarded; got != "our own, by [secret]" {
		t.Errorf("%q", got)
	}
}

func TestARecordReadsBackAsItWas(t *testing.T) {
	t.Parallel()
	oom := true
	r := sandbox.Record{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Duration: time.Second, Op: "run", Backend: "memory", Isolation: sandbox.MicroVM, Decision: sandbox.Warn,
		Findings: []string{"a"}, Warnings: []string{"b"}, Secrets: []string{"T"}, Program: "sh", Args: 2, CodeSHA256: "ab",
		Exit: &sandbox.Exit{Code: 137, Signal: "SIGKILL", OOM: &oom, TimedOut: true}, Stdout: 1, Stderr: 2, Code: sandbox.CodeTimeout, Error: "x",
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"time":"2026-01-02T03:04:05.000000006Z","duration_ns":1000000000,"op":"run","backend":"memory","sandbox":"","owner":"","tenant":"","template":"","policy":"","image":"",` +
		`"decision":"warn","findings":["a"],"unguarded":"","trust":"","trust_reason":"","isolation":"microvm","evidence":"","warnings":["b"],` +
		`"program":"sh","args":2,"code_sha256":"ab","secrets":["T"],"exit":{"code":137,"signal":"SIGKILL","oom":true,"timed_out":true},"stdout":1,"stderr":2,"code":"timeout","error":"x"}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	var back sandbox.Record
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(back); err != nil || string(again) != want {
		t.Errorf("%v: %s", err, again)
	}
}

// An extension that cannot be recorded is taken back; when the earlier deadline
// has passed by then, the sandbox ends rather than live on unrecorded.
func TestAnExtensionThatCannotBeTakenBackEndsTheSandbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, left := world(t)
		slow := &slowFailure{}
		sb, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{slow}}).Create(t.Context(), sandbox.Spec{Lifetime: 2 * time.Second, MaxLifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := sb.Extend(t.Context(), time.Minute); !errors.Is(err, sandbox.CodeUnavailable) {
			t.Errorf("got %v", err)
		}
		if l := left(); len(l) > 0 {
			t.Errorf("left: %v", l)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
}

// slowFailure takes three seconds to say that an extension was not kept.
type slowFailure struct{}

func (*slowFailure) Record(_ context.Context, r sandbox.Record) error {
	if r.Op != "extend" {
		return nil
	}
	time.Sleep(3 * time.Second)
	return errors.New("disk full")
}
