package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Why a program's tree was ended.
var (
	errKilled  = errors.New("killed")
	errTimeout = errors.New("timed out")
	errOOM     = errors.New("out of memory")
)

// process is one program with everything it started: they share ctx.
type process struct {
	box    *box
	cmd    driver.Cmd
	ctx    context.Context
	cancel context.CancelCauseFunc
	stdin  *pipe
	output *pipe
	kids   sync.WaitGroup
	done   chan struct{} // closed once exit and err are set
	exit   driver.Exit
	err    error
}

var _ driver.Process = (*process)(nil)

func (b *box) start(ctx context.Context, cmd driver.Cmd) (driver.Process, error) {
	if err := cmd.Validate(); err != nil {
		return nil, signed(err, "start", b.id)
	}
	if cmd.Detached && !b.spec.Detached {
		return nil, signed(driver.Unsupported("detached", "the sandbox has an owner", "create the sandbox detached"), "start", b.id)
	}
	if err := b.hasDir(dirOf(cmd)); err != nil {
		return nil, err
	}
	p := &process{box: b, cmd: cmd, stdin: newPipe(), output: newPipe(), done: make(chan struct{})}
	if !cmd.Stdin {
		p.stdin.end()
	}
	if cmd.Detached {
		p.output.hangUp()
	}
	// The check and the count are one step, so that end waits for whatever
	// was let in.
	if err := b.enter(ctx); err != nil {
		return nil, err
	}
	p.ctx, p.cancel = context.WithCancelCause(b.ctx)
	timer := time.AfterFunc(cmd.Timeout, func() { p.cancel(errTimeout) })
	b.note(p, true)
	go func() {
		defer b.leave()
		defer b.note(p, false)
		defer timer.Stop()
		p.finish(run(&task{process: p, args: cmd.Args, env: p.variables(), dir: dirOf(cmd)}))
	}()
	return p, nil
}

// enter counts one more goroutine of the sandbox, or refuses.
func (b *box) enter(ctx context.Context) error {
	if err := b.usable(ctx, "start"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != driver.StateRunning {
		return signed(&driver.Error{Code: driver.CodeGone, Err: errEnded}, "start", b.id)
	}
	b.join()
	return nil
}

// join counts a goroutine of the sandbox, and leave counts it out.
func (b *box) join()  { b.running.Add(1); b.tasks.Add(1) }
func (b *box) leave() { b.running.Add(-1); b.tasks.Done() }

// finish turns a program's own result, or what ended it, into its exit.
func (p *process) finish(code int, signal string) {
	no := false
	p.exit = driver.Exit{Code: code, Signal: signal, OOM: &no}
	switch cause := context.Cause(p.ctx); {
	case cause == nil:
	case errors.Is(cause, errEnded):
		p.err = signed(&driver.Error{Code: driver.CodeGone, Err: errEnded}, "wait", p.box.id)
	default:
		oom := errors.Is(cause, errOOM)
		p.exit = driver.Exit{Code: 137, Signal: "SIGKILL", OOM: &oom, TimedOut: errors.Is(cause, errTimeout)}
	}
	p.stdin.hangUp()
	p.output.end()
	close(p.done)
}

func (p *process) Recv(ctx context.Context) (driver.Chunk, error) {
	c, err := p.output.read(ctx, pipeSize)
	if errors.Is(err, io.EOF) {
		<-p.done
		if p.err != nil {
			err = p.err
		}
	}
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	return c, err
}

func (p *process) Stdin() io.WriteCloser { return stdin{p} }

func (p *process) Wait(ctx context.Context) (driver.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	default:
	}
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return driver.Exit{}, ctx.Err()
	}
}

func (p *process) Kill(context.Context) error {
	p.cancel(errKilled)
	<-p.done
	p.kids.Wait()
	return nil
}

type stdin struct{ p *process }

func (s stdin) Write(b []byte) (int, error) { return s.p.stdin.write(context.Background(), 0, b) }

func (s stdin) Close() error {
	s.p.stdin.end()
	return nil
}

// variables are the sandbox's, overridden by the command's, and the secrets.
func (p *process) variables() map[string]string {
	env := map[string]string{"PATH": "/bin", "HOME": work}
	maps.Copy(env, p.box.spec.Env)
	maps.Copy(env, p.cmd.Env)
	for k, s := range p.cmd.Secrets {
		env[k] = s.Reveal()
	}
	return env
}

func dirOf(cmd driver.Cmd) string {
	if path.IsAbs(cmd.Dir) {
		return path.Clean(cmd.Dir)
	}
	return path.Join(work, cmd.Dir)
}

// hasDir refuses a directory that no program can start in.
func (b *box) hasDir(name string) error {
	b.tree.mu.Lock()
	_, n, err := b.tree.get(name, true)
	b.tree.mu.Unlock()
	if err == nil && !n.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		return nil
	}
	code := driver.CodeInvalid
	if errors.Is(err, fs.ErrNotExist) {
		code = driver.CodeNotFound
	}
	return signed(&driver.Error{Code: code, Field: "dir", Hint: "make it first", Err: &fs.PathError{Op: "chdir", Path: name, Err: err}}, "start", b.id)
}

// task is what a program sees of its surroundings.
type task struct {
	*process
	args []string
	env  map[string]string
	dir  string
}

func (t *task) print(s driver.Stream, text string) error { return t.write(s, []byte(text)) }

func (t *task) write(s driver.Stream, data []byte) error {
	if t.cmd.Detached {
		return nil
	}
	_, err := t.output.write(t.ctx, s, data)
	return err
}

// complain writes to stderr and gives code.
func (t *task) complain(code int, format string, args ...any) int {
	_ = t.print(driver.Stderr, t.args[0]+": "+fmt.Sprintf(format, args...)+"\n")
	return code
}

func (t *task) path(name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join(t.dir, name)
}

// pause waits for d, or until the tree is ended; it reports whether d passed.
func (t *task) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.ctx.Done():
		return false
	}
}

// background runs f as a descendant: it ends with the tree, not with the
// program.
func (t *task) background(f func()) {
	t.box.join()
	t.kids.Go(func() {
		defer t.box.leave()
		f()
	})
}
