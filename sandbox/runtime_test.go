package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

// world is a fake backend and what is left in it.
func world(t *testing.T) (driver.Backend, func() []string) {
	t.Helper()
	w := memory.NewWorld()
	b := memory.Open(memory.Options{World: w})
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), w.Close()); err != nil {
			t.Error(err)
		}
	})
	return b, w.Leftovers
}

var unguarded = sandbox.Options{Unguarded: "a test"}

// guard answers what it was told to.
type guard struct {
	v   sandbox.Verdict
	err error
}

func (g guard) Judge(context.Context, sandbox.Request) (sandbox.Verdict, error) { return g.v, g.err }

func TestCreateAsksTheGuard(t *testing.T) {
	t.Parallel()
	const policy = "sha256:p"
	finding := sandbox.Finding{Rule: "SBX-NET-002", Effect: sandbox.Deny, Path: "network.egress[0].cidr", Message: "too wide", Remediation: "list it"}
	named := &sandbox.Template{Name: "t", Policy: policy}
	for _, c := range []struct {
		name string
		opts sandbox.Options
		tmpl *sandbox.Template
		ok   bool
	}{
		{"no guard and no reason", sandbox.Options{}, nil, false},
		{"no guard, with a reason", unguarded, nil, true},
		{"no guard, for a template that names its policy", unguarded, named, false},
		{"allow", sandbox.Options{Guard: guard{v: sandbox.Verdict{Decision: sandbox.Allow}}}, nil, true},
		{"warn", sandbox.Options{Guard: guard{v: sandbox.Verdict{Decision: sandbox.Warn}}}, nil, true},
		{"deny", sandbox.Options{Guard: guard{v: sandbox.Verdict{Decision: sandbox.Deny, Findings: []sandbox.Finding{finding}}}}, nil, false},
		{"unknown", sandbox.Options{Guard: guard{v: sandbox.Verdict{Decision: sandbox.Unknown}}}, nil, false},
		{"a rule that failed", sandbox.Options{Guard: guard{v: sandbox.Verdict{Decision: sandbox.Failed}}}, nil, false},
		{"an answer that means nothing", sandbox.Options{Guard: guard{}}, nil, false},
		{"a guard that fails, though it says allow", sandbox.Options{Guard: guard{sandbox.Verdict{Decision: sandbox.Allow}, errors.New("boom")}}, nil, false},
		{"the policy that the template names", sandbox.Options{Guard: guard{v: sandbox.Verdict{Decision: sandbox.Allow, Policy: policy}}}, named, true},
		{"another policy than the template names", sandbox.Options{Guard: guard{v: sandbox.Verdict{Decision: sandbox.Allow, Policy: "sha256:q"}}}, named, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, left := world(t)
			sb, err := sandbox.New(b, c.opts).Create(t.Context(), sandbox.Spec{Template: c.tmpl})
			if c.ok {
				if err != nil {
					t.Fatal(err)
				}
				if err := sb.Close(); err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, sandbox.CodeDenied) {
				t.Errorf("got %v, want denied", err)
			}
			if l := left(); len(l) > 0 {
				t.Errorf("left: %v", l)
			}
			var d *sandbox.DeniedError
			if c.name == "deny" && (!errors.As(err, &d) || d.Verdict.Findings[0] != finding || !strings.Contains(err.Error(), "SBX-NET-002")) {
				t.Errorf("the verdict is not in %v", err)
			}
		})
	}
}

// lying wraps a backend with one lie.
type lying struct {
	driver.Backend
	create func(context.Context, driver.Spec, driver.Backend) (driver.Sandbox, error)
}

func (l lying) Create(ctx context.Context, s driver.Spec) (driver.Sandbox, error) {
	return l.create(ctx, s, l.Backend)
}

type lyingSandbox struct {
	driver.Sandbox
	status func(driver.Status) driver.Status
	kill   func(context.Context, driver.Sandbox) error
}

func (s lyingSandbox) Status() driver.Status {
	if s.status == nil {
		return s.Sandbox.Status()
	}
	return s.status(s.Sandbox.Status())
}

func (s lyingSandbox) Kill(ctx context.Context) error {
	if s.kill == nil {
		return s.Sandbox.Kill(ctx)
	}
	return s.kill(ctx, s.Sandbox)
}

// promising says in Check that it reaches the floor, whatever it measures.
type promising struct{ driver.Backend }

func (p promising) Check(s driver.Spec) (driver.Plan, error) {
	s.Isolation = driver.Unverified
	plan, err := p.Backend.Check(s)
	plan.Isolation = driver.MicroVM
	return plan, err
}

func (p promising) Create(ctx context.Context, s driver.Spec) (driver.Sandbox, error) {
	s.Isolation = driver.Unverified
	return p.Backend.Create(ctx, s)
}

func TestMeasuredIsolationBelowTheFloorDestroys(t *testing.T) {
	t.Parallel()
	b, left := world(t)
	_, err := sandbox.New(promising{b}, unguarded).Create(t.Context(), sandbox.Spec{Isolation: sandbox.UserKernel})
	if !errors.Is(err, sandbox.CodeUnsupported) {
		t.Errorf("got %v, want unsupported", err)
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
}

func TestFloorIsRefusedBeforeCreate(t *testing.T) {
	t.Parallel()
	b, left := world(t)
	touched := false
	l := lying{b, func(ctx context.Context, s driver.Spec, b driver.Backend) (driver.Sandbox, error) {
		touched = true
		return b.Create(ctx, s)
	}}
	_, err := sandbox.New(l, unguarded).Create(t.Context(), sandbox.Spec{Trust: sandbox.Untrusted})
	if !errors.Is(err, sandbox.CodeUnsupported) || touched || len(left()) > 0 {
		t.Errorf("got %v, touched %v, left %v", err, touched, left())
	}
}

// sink keeps records, and fails for the operations it is told to.
type sink struct {
	mu      sync.Mutex
	records []sandbox.Record
	fail    string
}

func (s *sink) Record(_ context.Context, r sandbox.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, r)
	if r.Op == s.fail {
		return errors.New("disk full")
	}
	return nil
}

func TestWhatCannotBeRecordedDoesNotHappen(t *testing.T) {
	t.Parallel()
	b, left := world(t)
	_, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{&sink{fail: "create"}}}).Create(t.Context(), sandbox.Spec{})
	if !errors.Is(err, sandbox.CodeUnavailable) || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v, want unavailable", err)
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
}

func TestEveryOperationIsRecordedOnceAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	const secret = "canary-7f3d-secret"
	b, _ := world(t)
	s := &sink{}
	var log bytes.Buffer
	rt := sandbox.New(b, sandbox.Options{Unguarded: "a test", Owner: "me", Sinks: []sandbox.Sink{s, sandbox.LogSink{Logger: slog.New(slog.NewJSONHandler(&log, nil))}}})
	sb, err := rt.Create(t.Context(), sandbox.Spec{Tenant: "t1", Trust: sandbox.Trusted("a test")})
	if err != nil {
		t.Fatal(err)
	}
	res, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"sha256", "TOKEN"}, Secrets: map[string]sandbox.Secret{"TOKEN": sandbox.NewSecret(secret)}})
	if err != nil || res.Err() != nil {
		t.Fatal(err, res)
	}
	_, missing := sb.Files().Read(t.Context(), "nothing")
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, r := range s.records {
		ops = append(ops, r.Op)
		if r.Owner != "me" || r.Sandbox != sb.ID() || r.Tenant != "t1" || r.TrustReason != "a test" {
			t.Errorf("incomplete: %+v", r)
		}
	}
	if want := []string{"create", "run", "read", "close"}; !slices.Equal(ops, want) {
		t.Errorf("recorded %v, want %v", ops, want)
	}
	if r := s.records[1]; r.Program != "sha256" || r.Args != 2 || !slices.Equal(r.Secrets, []string{"TOKEN"}) || r.Exit == nil || r.Stdout == 0 {
		t.Errorf("run: %+v", r)
	}
	if r := s.records[2]; r.Code != sandbox.CodeOf(missing) || r.Code == "" {
		t.Errorf("read: %+v, error %v", r, missing)
	}
	if strings.Contains(log.String(), secret) || !strings.Contains(log.String(), `"secrets":["TOKEN"]`) {
		t.Errorf("log: %s", log.String())
	}
}

func TestSecretsAreTakenOutOfErrors(t *testing.T) {
	t.Parallel()
	const secret = "canary-9a1c-secret"
	b, _ := world(t)
	s := &sink{}
	l := lying{b, func(ctx context.Context, sp driver.Spec, b driver.Backend) (driver.Sandbox, error) {
		sb, err := b.Create(ctx, sp)
		return chatty{sb}, err
	}}
	sb, err := sandbox.New(l, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}}).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	_, err = sb.Run(t.Context(), sandbox.Cmd{Args: []string{"true"}, Secrets: map[string]sandbox.Secret{"T": sandbox.NewSecret(secret)}})
	if err == nil {
		t.Fatal("no error")
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), secret) {
			t.Errorf("%T holds it: %v", e, e)
		}
	}
	if r := s.records[len(s.records)-1]; strings.Contains(r.Error, secret) || !strings.Contains(r.Error, "[secret]") {
		t.Errorf("record: %q", r.Error)
	}
}

// A program that cannot be found is named by the guest, on stderr, and by the
// Record, by its last part only: neither may hold a secret, nor half of one.
func TestASecretInAProgramsNameIsNeitherRecordedNorAnError(t *testing.T) {
	t.Parallel()
	const secret = "canary/zQ7wxK-secret"
	b, _ := world(t)
	s := &sink{}
	var log bytes.Buffer
	sb, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s, sandbox.LogSink{Logger: slog.New(slog.NewJSONHandler(&log, nil))}}}).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	res, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"/opt/" + secret}, Secrets: map[string]sandbox.Secret{"T": sandbox.NewSecret(secret + "\n")}})
	if err != nil || res.Exit.Code != 127 {
		t.Fatal(err, res)
	}
	if e := res.Err(); e == nil || strings.Contains(e.Error(), "zQ7wxK") || !strings.Contains(e.Error(), "[secret]") {
		t.Errorf("error: %v", e)
	}
	if !strings.Contains(string(res.Stderr), secret) {
		t.Errorf("the program's own output was touched: %q", res.Stderr)
	}
	if r := s.records[len(s.records)-1]; r.Program != "[secret]" {
		t.Errorf("record: %q", r.Program)
	}
	if strings.Contains(log.String(), "zQ7wxK") {
		t.Errorf("log: %s", log.String())
	}
}

// chatty repeats what it was given in its error.
type chatty struct{ driver.Sandbox }

func (chatty) Start(_ context.Context, cmd driver.Cmd) (driver.Process, error) {
	return nil, &driver.Error{Code: driver.CodeInternal, Err: errors.New("env T=" + cmd.Secrets["T"].Reveal())}
}

// upsideDown lists a directory in an order of its own, as an engine does.
type upsideDown struct{ driver.Sandbox }

func (u upsideDown) Files() driver.Files { return upsideDownFiles{u.Sandbox.Files()} }

type upsideDownFiles struct{ driver.Files }

func (u upsideDownFiles) List(ctx context.Context, name string) ([]driver.FileInfo, error) {
	list, err := u.Files.List(ctx, name)
	slices.SortFunc(list, func(a, b driver.FileInfo) int { return strings.Compare(b.Name, a.Name) })
	return list, err
}

func TestListsAreSortedWhateverTheBackend(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	l := lying{b, func(ctx context.Context, sp driver.Spec, b driver.Backend) (driver.Sandbox, error) {
		sb, err := b.Create(ctx, sp)
		return upsideDown{sb}, err
	}}
	sb, err := sandbox.New(l, unguarded).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	if err := sb.Files().Mkdir(t.Context(), "d", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c", "a"} {
		if err := sb.Files().Write(t.Context(), "d/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := sb.Files().List(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("%v", names)
	}
}

func TestATemplateSaysWhichSecretsThereAre(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	rt := sandbox.New(b, unguarded)
	value := sandbox.NewSecret("canary-9a1c-secret")
	secret := func(name string) sandbox.Cmd {
		return sandbox.Cmd{Args: []string{"true"}, Secrets: map[string]sandbox.Secret{name: value}}
	}
	for _, c := range []struct {
		name  string
		tmpl  *sandbox.Template
		cmd   sandbox.Cmd
		field string
	}{
		{"declared", &sandbox.Template{Name: "t", Secrets: []string{"API"}}, secret("API"), ""},
		{"not declared", &sandbox.Template{Name: "t", Secrets: []string{"API"}}, secret("OTHER"), `secrets["OTHER"]`},
		{"none declared", &sandbox.Template{Name: "t"}, secret("API"), `secrets["API"]`},
		{"declared, and given in clear", &sandbox.Template{Name: "t", Secrets: []string{"API"}}, sandbox.Cmd{Args: []string{"true"}, Env: map[string]string{"API": "x"}}, `env["API"]`},
		{"no template", nil, secret("API"), ""},
	} {
		_, err := rt.Run(t.Context(), sandbox.Spec{Template: c.tmpl}, c.cmd)
		if p := driver.Problems(err); c.field == "" && err != nil || c.field != "" && (len(p) != 1 || p[0].Field != c.field) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestRunKeepsWhatItIsTold(t *testing.T) {
	t.Parallel()
	b, left := world(t)
	res, err := sandbox.New(b, unguarded).Run(t.Context(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader("0123456789"), MaxOutput: 4})
	if err != nil || string(res.Stdout) != "0123" || !res.Truncated || res.Err() != nil {
		t.Errorf("got %+v, %v", res, err)
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
	res, err = sandbox.New(b, unguarded).Run(t.Context(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"exit", "7"}})
	var exit *sandbox.ExitError
	if err != nil || !errors.As(res.Err(), &exit) || exit.Exit.Code != 7 {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestTimeoutIsTheCommandsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, left := world(t)
		rt := sandbox.New(b, unguarded)
		t0 := time.Now()
		res, err := rt.Run(t.Context(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"hang"}, Timeout: 3 * time.Second})
		if !errors.Is(err, sandbox.CodeTimeout) || res == nil {
			t.Errorf("got %v, %v, want timeout with what there is", res, err)
		}
		if d := time.Since(t0); d < 3*time.Second || d > 6*time.Second {
			t.Errorf("took %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := rt.Run(ctx, sandbox.Spec{}, sandbox.Cmd{Args: []string{"hang"}}); err != context.DeadlineExceeded { //nolint:errorlint // unwrapped is the point
			t.Errorf("got %v, want the caller's own deadline, unwrapped", err)
		}
		if l := left(); len(l) > 0 {
			t.Errorf("left: %v", l)
		}
	})
}

func TestLeavingTheOutputEndsTheProcess(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	sb, err := sandbox.New(b, unguarded).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	p, err := sb.Start(t.Context(), sandbox.Cmd{Args: []string{"yes"}})
	if err != nil {
		t.Fatal(err)
	}
	for c, err := range p.Output() {
		if err != nil || len(c.Data) == 0 {
			t.Errorf("got %v, %v", c, err)
		}
		break
	}
	exit, err := p.Wait()
	if err != nil || exit.Signal != "SIGKILL" {
		t.Errorf("got %+v, %v, want a killed process", exit, err)
	}
}

// Each may be called from a goroutine of its own, and all see the same end.
func TestManyGoroutinesShareOneProcess(t *testing.T) {
	t.Parallel()
	b, left := world(t)
	sb, err := sandbox.New(b, unguarded).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		p, err := sb.Start(t.Context(), sandbox.Cmd{Args: []string{"yes"}})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		exits := make([]sandbox.Exit, 3)
		for i := range exits {
			wg.Go(func() { exits[i], _ = p.Wait() })
		}
		wg.Go(func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was lost")
				}
			}()
			for _, err := range p.Output() {
				_ = err // leaving is all that is asked
				break
			}
			panic("a test")
		})
		wg.Go(func() { _ = p.Kill() })
		wg.Wait()
		for _, e := range exits {
			if e.Signal != "SIGKILL" {
				t.Errorf("got %+v", e)
			}
		}
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
}

func TestTheLongestTimeoutIsNotOver(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	sb, err := sandbox.New(b, unguarded).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"true"}, Timeout: math.MaxInt64}); err != nil {
		t.Error(err)
	}
}

func TestTeardownThatHangsIsALeakThatIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := world(t)
		l := lying{b, func(ctx context.Context, s driver.Spec, b driver.Backend) (driver.Sandbox, error) {
			sb, err := b.Create(ctx, s)
			return lyingSandbox{Sandbox: sb, kill: func(ctx context.Context, _ driver.Sandbox) error {
				<-ctx.Done()
				return ctx.Err()
			}}, err
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		t0 := time.Now()
		_, err := sandbox.New(l, sandbox.Options{Unguarded: "a test", Grace: 2 * time.Second}).Run(ctx, sandbox.Spec{}, sandbox.Cmd{Args: []string{"hang"}})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, sandbox.CodeLeaked) || sandbox.CodeOf(err) != sandbox.CodeLeaked {
			t.Errorf("got %v, want the cancellation joined with the leak", err)
		}
		if !strings.Contains(err.Error(), "sandboxio reap") {
			t.Errorf("names no command: %v", err)
		}
		if d := time.Since(t0); d > 4*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestVanishedSandboxIsGone(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	rt := sandbox.New(b, unguarded)
	sb, err := rt.Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := rt.Attach(t.Context(), sb.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"true"}}); !errors.Is(err, sandbox.CodeGone) {
		t.Errorf("got %v, want gone", err)
	}
	if err := sb.Close(); err != nil {
		t.Errorf("closing what is gone: %v", err)
	}
	if _, err := rt.Attach(t.Context(), sb.ID()); !errors.Is(err, sandbox.CodeGone) && !errors.Is(err, sandbox.CodeNotFound) {
		t.Errorf("got %v, want gone or not-found", err)
	}
}

func TestManyGoroutinesShareOneSandbox(t *testing.T) {
	t.Parallel()
	b, left := world(t)
	sb, err := sandbox.New(b, unguarded).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			res, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"echo", "hi"}})
			if err != nil || string(res.Stdout) != "hi\n" {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
	wg.Wait()
	for range 3 {
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left: %v", l)
	}
}
