package sandbox_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// kept keeps Records.
type kept struct {
	mu      sync.Mutex
	records []sandbox.Record
}

func (k *kept) Record(_ context.Context, r sandbox.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = append(k.records, r)
	return nil
}

func (k *kept) last() sandbox.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.records[len(k.records)-1]
}

func TestRunCode(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	var sink kept
	sb, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{&sink}}).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	for _, c := range []struct {
		name  string
		src   sandbox.Source
		out   string
		exit  int
		code  sandbox.Code
		field string
	}{
		{name: "python", src: sandbox.Source{Language: "python", Text: "print(\"hi\")\n"}, out: "hi\n"},
		{name: "a shell script", src: sandbox.Source{Language: "sh", Text: "echo one\necho two\n"}, out: "one\ntwo\n"},
		{name: "nothing at all", src: sandbox.Source{Language: "sh"}},
		{name: "code larger than an argument may be (M71)", src: sandbox.Source{Language: "sh", Text: strings.Repeat("# x\n", 50<<10) + "echo end\n"}, out: "end\n"},
		{name: "code that ends with the status of a missing program", src: sandbox.Source{Language: "sh", Text: "no-such-program"}, exit: 127},
		{name: "in a directory", src: sandbox.Source{Language: "sh", Text: "pwd", Cmd: sandbox.Cmd{Dir: "/tmp"}}, out: "/tmp\n"},
		{name: "a language that nobody knows", src: sandbox.Source{Language: "cobol"}, code: sandbox.CodeInvalid, field: "language"},
		{name: "a language that the image has not (M70)", src: sandbox.Source{Language: "node"}, code: sandbox.CodeUnsupported, field: "language"},
		{name: "a directory that is not there", src: sandbox.Source{Language: "sh", Cmd: sandbox.Cmd{Dir: "/no/such"}}, code: sandbox.CodeNotFound, field: "dir"},
		{name: "a negative timeout", src: sandbox.Source{Language: "sh", Cmd: sandbox.Cmd{Timeout: -1}}, code: sandbox.CodeInvalid, field: "timeout"},
		{name: "detached", src: sandbox.Source{Language: "sh", Cmd: sandbox.Cmd{Detached: true}}, code: sandbox.CodeInvalid, field: "detached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := sb.RunCode(t.Context(), c.src)
			if c.code != "" {
				e, ok := errors.AsType[*sandbox.Error](err)
				if !ok || e.Code != c.code || e.Field != c.field || e.Hint == "" {
					t.Errorf("got %v, want %s at %s with a hint", err, c.code, c.field)
				}
			} else if err != nil || string(res.Stdout) != c.out || res.Exit.Code != c.exit {
				t.Errorf("got %+v, %v", res, err)
			}
			if r := sink.last(); r.Op != "run-code" || len(r.CodeSHA256) != 64 {
				t.Errorf("the record is %+v", r)
			}
			for _, dir := range []string{"/work", "/tmp"} {
				left, err := sb.Files().List(t.Context(), dir)
				if err != nil || len(left) > 0 {
					t.Errorf("left in %s: %v, %v", dir, left, err)
				}
			}
		})
	}
}

func TestCancelledCodeLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := world(t)
		sb, err := sandbox.New(b, unguarded).Create(t.Context(), sandbox.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sb.RunCode(ctx, sandbox.Source{Language: "sh", Text: "hang"}); err != context.DeadlineExceeded { //nolint:errorlint // unwrapped is what is promised
			t.Errorf("got %v", err)
		}
		if left, err := sb.Files().List(t.Context(), "/work"); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
}

// heldUp serves no file before its context ends.
type heldUp struct{ driver.Files }

func (heldUp) Create(ctx context.Context, _ string, _ fs.FileMode) (io.WriteCloser, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (heldUp) Remove(ctx context.Context, _ string, _ bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// A program that was left running may hold up the file that code goes into.
func TestTheTimeoutOfCodeBoundsItsPreparationsToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sb, sink := filled(t, func(f driver.Files) driver.Files { return heldUp{f} })
		start := time.Now()
		res, err := sb.RunCode(t.Context(), sandbox.Source{Language: "sh", Text: "exit 0", Cmd: sandbox.Cmd{Timeout: 10 * time.Second}})
		if !errors.Is(err, sandbox.CodeTimeout) || res == nil {
			t.Errorf("got %v, %v", res, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		if records, _ := sink.since(1); !slices.Equal(records, []string{"run-code timeout"}) {
			t.Errorf("recorded %v", records)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sb.RunCode(ctx, sandbox.Source{Language: "sh", Text: "exit 0"}); err != context.DeadlineExceeded { //nolint:errorlint // unwrapped is what is promised
			t.Errorf("the caller's own end: %v", err)
		}
	})
}

func TestExtend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := world(t)
		rt := sandbox.New(b, unguarded)
		sb, err := rt.Create(t.Context(), sandbox.Spec{Lifetime: time.Minute, MaxLifetime: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		alive := func() error { _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"true"}}); return err }
		time.Sleep(50 * time.Second)
		if err := sb.Extend(t.Context(), 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(sb.Status().Deadline); left < 5*time.Minute || left > 5*time.Minute+time.Second {
			t.Errorf("its deadline is %v away", left)
		}
		time.Sleep(4 * time.Minute)
		if err := alive(); err != nil {
			t.Errorf("after its first deadline: %v", err)
		}
		if err := sb.Extend(t.Context(), 9*time.Minute); !errors.Is(err, sandbox.CodeInvalid) {
			t.Errorf("beyond what was allowed: %v", err)
		}
		joined, err := rt.Attach(t.Context(), sb.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := joined.Extend(t.Context(), 9*time.Minute); !errors.Is(err, sandbox.CodeInvalid) {
			t.Errorf("beyond what was allowed, by another: %v", err)
		}
		for _, d := range []time.Duration{0, -time.Hour, math.MaxInt64, math.MinInt64} {
			if err := sb.Extend(t.Context(), d); !errors.Is(err, sandbox.CodeInvalid) {
				t.Errorf("by %v: %v", d, err)
			}
		}
		time.Sleep(2 * time.Minute)
		if err := alive(); !errors.Is(err, sandbox.CodeGone) {
			t.Errorf("after its last deadline: %v", err)
		}
		if err := sb.Extend(t.Context(), time.Minute); !errors.Is(err, sandbox.CodeGone) {
			t.Errorf("what has ended is extended: %v", err)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsNotAskedForIsNotExtended(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	sb, err := sandbox.New(b, unguarded).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	err = sb.Extend(t.Context(), time.Hour)
	if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeInvalid || !strings.Contains(e.Hint, "MaxLifetime") {
		t.Errorf("got %v", err)
	}
}

// The Guard sees how long a sandbox may live at most, not how long at first.
func TestTheGuardJudgesTheLongestLife(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	var seen []time.Duration
	g := judge(func(r sandbox.Request) { seen = append(seen, r.Spec.Lifetime, r.Spec.LongestLife()) })
	if _, err := sandbox.New(b, sandbox.Options{Guard: g}).Check(t.Context(), sandbox.Spec{Lifetime: time.Second, MaxLifetime: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{time.Second, time.Hour}; !slices.Equal(seen, want) {
		t.Errorf("got %v, want %v", seen, want)
	}
	tmpl := &sandbox.Template{Name: "t", Lifetime: time.Minute}
	if _, err := sandbox.New(b, sandbox.Options{Guard: g}).Check(t.Context(), sandbox.Spec{Template: tmpl, MaxLifetime: time.Hour}); !errors.Is(err, sandbox.CodeInvalid) {
		t.Errorf("beyond the template: %v", err)
	}
}

type judge func(sandbox.Request)

func (j judge) Judge(_ context.Context, r sandbox.Request) (sandbox.Verdict, error) {
	j(r)
	return sandbox.Verdict{Decision: sandbox.Allow}, nil
}

func TestGraceComesFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, env string
		grace     time.Duration
		ok        bool
	}{
		{"unset", "", 0, true},
		{"set", "250ms", 0, true},
		{"no duration", "soon", 0, false},
		{"without a unit", "5", 0, false},
		{"negative", "-5s", 0, false},
		{"zero", "0s", 0, false},
		{"wrong, and the program says another", "soon", time.Second, true},
		{"the program's is negative", "", -time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(sandbox.GraceEnv, c.env)
			b, _ := world(t)
			_, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Grace: c.grace}).Check(t.Context(), sandbox.Spec{})
			if c.ok != (err == nil) || !c.ok && !errors.Is(err, sandbox.CodeInvalid) {
				t.Errorf("got %v", err)
			}
		})
	}
}
