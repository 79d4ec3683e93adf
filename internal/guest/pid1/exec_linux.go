package pid1

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

const (
	workDir     = "/work"
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// execution is one running program of the workload's.
type execution struct {
	mark       uint32
	done       <-chan syscall.WaitStatus
	overlapped bool // another ran at the same time; guest.mu
	oomBefore  int64
	oomKnown   bool

	ctrlMu sync.Mutex
	ctrl   io.Writer

	killMu   sync.Mutex // held during a kill, so that an exit is told after it
	timedOut bool       // killMu
}

// exec is a program's life, from its order until the host has heard all.
func (s *session) exec(ctrl *yamux.Stream, m *wire.Exec) {
	data := s.take(m.Token)
	if data == nil {
		return
	}
	defer finish(data)
	if bad := s.check(m); bad != nil {
		answer(ctrl, bad)
		return
	}
	p, err := openPipes(m)
	if err != nil {
		answer(ctrl, failure(err, "start", ""))
		return
	}
	x := &execution{ctrl: ctrl}
	found, bad := s.g.launch(x, m, p)
	p.closeChildEnds()
	if bad != nil {
		p.close()
		answer(ctrl, bad)
		return
	}
	s.own(x.mark, m.Detached)
	x.tell(wire.Event{Kind: wire.EventStarted, ID: uint64(x.mark)})
	if found != nil { // it never ran: 126 or 127, as a shell would say
		p.close()
		_, _ = wire.WriteFrames(data, wire.TagStderr, []byte(found.message))
		_, _ = wire.WriteFrames(data, wire.TagEnd, nil)
		x.tell(wire.Event{Kind: wire.EventExited, Exit: wire.Exit{Code: found.code, OOM: wire.OOMNo}})
		return
	}

	exited := make(chan struct{})
	go s.watchHost(x, ctrl, m.Detached, exited)
	timer := time.AfterFunc(time.Duration(m.Timeout), func() { x.kill(exited, true) })
	out := p.pump(data, x, &s.g.calm)

	status := <-x.done
	s.g.unlessEnding()
	close(exited)
	timer.Stop()
	exit := wire.Event{Kind: wire.EventExited, Exit: s.g.exitOf(x, status)}
	release := s.out.Hold()
	x.tell(exit)
	_ = ctrl.Close()
	select {
	case <-out.drained: // as mostly: nothing else holds the program's pipes
		_, _ = wire.WriteFrames(data, wire.TagEnd, nil)
		_ = data.Close()
		release()
		out.finish()
	default: // the exit does not wait for output
		release()
		out.finish()
		_, _ = wire.WriteFrames(data, wire.TagEnd, nil)
		_ = data.Close()
	}
}

// check refuses what cannot be done as ordered.
func (s *session) check(m *wire.Exec) *wire.Failure {
	switch {
	case len(m.Args) == 0:
		return &wire.Failure{Code: "invalid", Field: "args", Text: "there is no program"}
	case m.Timeout <= 0:
		return &wire.Failure{Code: "invalid", Field: "timeout", Text: "the timeout is not positive"}
	case m.Detached && s.g.boot.Owned:
		return &wire.Failure{Code: "unsupported", Field: "detached", Text: "an owned sandbox ends with its owner, and so does every program in it", Hint: "create the sandbox detached"}
	case slices.ContainsFunc(append(m.Args, m.Dir), func(a string) bool { return strings.IndexByte(a, 0) >= 0 }):
		return &wire.Failure{Code: "invalid", Field: "args", Text: "an argument contains a NUL byte", Hint: "pass binary data in a file or by stdin"}
	}
	if bad := badEnv("env", m.Env); bad != nil {
		return bad
	}
	return badEnv("secrets", m.Secrets)
}

// watchHost kills the program when the host gives it up before its exit.
func (s *session) watchHost(x *execution, ctrl io.Reader, detached bool, exited <-chan struct{}) {
	_, _ = io.Copy(io.Discard, ctrl)
	if detached && s.mux.IsClosed() {
		return // the connection ended, not the order
	}
	x.kill(exited, false)
}

// kill ends the program and its descendants, unless it has exited.
func (x *execution) kill(exited <-chan struct{}, timeout bool) {
	x.killMu.Lock()
	defer x.killMu.Unlock()
	select {
	case <-exited:
		return
	default:
	}
	x.timedOut = x.timedOut || timeout
	_ = kill(func(m uint32) bool { return m == x.mark })
}

func (x *execution) tell(e wire.Event) {
	x.ctrlMu.Lock()
	defer x.ctrlMu.Unlock()
	_ = wire.Write(x.ctrl, &e)
}

// exitOf puts an exit status into the protocol's words.
func (g *guest) exitOf(x *execution, status syscall.WaitStatus) wire.Exit {
	x.killMu.Lock()                                                            // a kill under way is finished first
	e := wire.Exit{TimedOut: x.timedOut && status.Signal() == syscall.SIGKILL} // else it was faster
	x.killMu.Unlock()
	if status.Signaled() {
		e.Signal = uint8(status.Signal())
	} else {
		e.Code = uint8(status.ExitStatus())
	}
	g.mu.Lock()
	delete(g.running, x)
	overlapped := x.overlapped
	g.mu.Unlock()
	after, ok := g.oom.read()
	switch {
	case !ok || !x.oomKnown:
	case after == x.oomBefore:
		e.OOM = wire.OOMNo
	case !overlapped: // the counter is the whole sandbox's
		e.OOM = wire.OOMYes
	}
	return e
}

// notRun is a program that could not be executed.
type notRun struct {
	code    uint8
	message string
}

// launch starts the program. The order of env, the last winning: the image's,
// the sandbox's, the command's, secrets.
func (g *guest) launch(x *execution, m *wire.Exec, p *pipes) (*notRun, *wire.Failure) {
	g.mu.Lock()
	sandbox := g.env
	for other := range g.running {
		other.overlapped, x.overlapped = true, true
	}
	g.running[x] = struct{}{}
	g.mu.Unlock()
	x.oomBefore, x.oomKnown = g.oom.read()

	env := map[string]string{"PATH": defaultPath}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			env[k] = v
		}
	}
	env["HOME"] = workDir // the image's is another user's
	for _, list := range [][][2]string{sandbox, m.Env, m.Secrets} {
		for _, kv := range list {
			env[kv[0]] = kv[1]
		}
	}
	envv := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		envv = append(envv, k+"="+env[k])
	}
	x.mark = g.marks.Add(1)
	attr := g.attr(x.mark, path.Join(workDir, m.Dir), envv, p.child())
	if path.IsAbs(m.Dir) {
		attr.Dir = m.Dir
	}
	var err error
	x.done, err = g.search(m.Args, env["PATH"], attr)
	if err == nil {
		return nil, nil
	}
	g.mu.Lock()
	delete(g.running, x)
	g.mu.Unlock()
	return g.explain(err, m.Args[0], attr)
}

// attr is how every process of the workload's is made.
func (g *guest) attr(mark uint32, dir string, env []string, files []uintptr) *syscall.ProcAttr {
	return &syscall.ProcAttr{Dir: dir, Env: env, Files: files, Sys: &syscall.SysProcAttr{
		Setsid:     true,
		Credential: &syscall.Credential{Uid: g.boot.UID, Gid: g.boot.UID, Groups: []uint32{mark}},
	}}
}

// search executes argv[0], looked up in list if it has no slash. Whether a
// file can be executed is for the kernel to say, with the workload's rights;
// PID 1 only skips what is certainly not there.
func (g *guest) search(argv []string, list string, attr *syscall.ProcAttr) (<-chan syscall.WaitStatus, error) {
	if argv[0] == "" {
		return nil, unix.ENOENT
	}
	if strings.Contains(argv[0], "/") {
		return g.reaper.start(argv[0], argv, attr)
	}
	var denied error
	for dir := range strings.SplitSeq(list, ":") {
		name := path.Join(dir, argv[0])
		if dir == "" || !strings.Contains(name, "/") {
			name = "./" + name
		}
		if path.IsAbs(name) {
			var st unix.Stat_t
			if err := unix.Stat(name, &st); err == unix.ENOENT || err == unix.ENOTDIR {
				continue
			}
		}
		done, err := g.reaper.start(name, argv, attr)
		switch errnoOf(err) {
		case unix.EACCES, unix.EPERM:
			denied = err
		case unix.ENOENT, unix.ENOTDIR:
		default:
			return done, err
		}
	}
	if denied != nil {
		return nil, denied
	}
	return nil, unix.ENOENT
}

// explain tells a program that cannot be executed from a directory that
// cannot be entered, from a sandbox that is full.
func (g *guest) explain(err error, name string, attr *syscall.ProcAttr) (*notRun, *wire.Failure) {
	errno := errnoOf(err)
	switch errno {
	case unix.E2BIG:
		return nil, &wire.Failure{Code: "invalid", Field: "args", Text: "arguments and env are over the kernel's limit: 128 KiB for one, about 2 MiB for all",
			Hint: "pass large data in a file or by stdin"}
	case unix.EAGAIN, unix.ENOMEM, unix.ENFILE, unix.EMFILE, unix.ENOSPC:
		return nil, &wire.Failure{Code: "exhausted", Text: "the sandbox has no room for another process: " + err.Error(), Hint: "end some processes, or raise resources.pids or resources.memory_mib"}
	}
	// The guest itself, which can be executed, tells about the directory.
	done, dirErr := g.reaper.helper("true", attr)
	if dirErr != nil {
		f := failure(dirErr, "", attr.Dir)
		f.Field = "dir"
		return nil, f
	}
	<-done
	if errno == unix.ENOENT || errno == unix.ENOTDIR {
		return &notRun{127, fmt.Sprintf("sandboxio: %s: not found\n", name)}, nil
	}
	return &notRun{126, fmt.Sprintf("sandboxio: %s: cannot be executed: %v\n", name, err)}, nil
}

// self is this binary, wherever it is mounted.
const self = "/proc/self/exe"

// errnoOf finds the system's error in err, 0 if there is none.
func errnoOf(err error) syscall.Errno {
	errno, _ := errors.AsType[syscall.Errno](err)
	return errno
}

// failure puts an error of the system into the protocol's words.
func failure(err error, what, name string) *wire.Failure {
	f := &wire.Failure{Code: "internal", Text: err.Error()}
	errno := errnoOf(err)
	if errno != 0 {
		f.Text = errno.Error()
	}
	switch errno {
	case unix.ENOENT:
		f.Code, f.Kind = "not-found", wire.KindNotExist
	case unix.EEXIST, unix.ENOTEMPTY:
		f.Code, f.Kind = "conflict", wire.KindExist
	case unix.EACCES, unix.EPERM, unix.EROFS:
		f.Code, f.Kind = "denied", wire.KindPermission
	case unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN, unix.EFBIG:
		f.Code = "exhausted"
	case unix.ENOTDIR, unix.EISDIR, unix.ELOOP, unix.ENAMETOOLONG, unix.EINVAL, unix.EXDEV, unix.ENXIO, unix.EBUSY:
		f.Code = "invalid"
	}
	for _, part := range []string{name, what} {
		if part != "" {
			f.Text = part + ": " + f.Text
		}
	}
	return f
}
