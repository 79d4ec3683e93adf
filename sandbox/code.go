package sandbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Source is a piece of code to run.
type Source struct {
	Language string // "python", "sh" or "node", see [Languages]
	Text     string // the code, byte for byte
	Cmd      Cmd    // how to run it; Args, which may be empty, are the code's own arguments. Not Detached
}

// language is how code of one kind becomes a process.
type language struct {
	suffix       string
	interpreters []string // candidates, best first
	empty        []string // arguments that run nothing, to see whether one is there
}

var languages = map[string]language{
	"python": {".py", []string{"python3", "python"}, []string{"-c", ""}},
	"sh":     {".sh", []string{"sh"}, []string{"-c", ""}},
	"node":   {".js", []string{"node", "nodejs"}, []string{"-e", ""}},
}

// Languages lists what RunCode takes, sorted. Whether an image has an
// interpreter for one shows when code is run.
func Languages() []string { return slices.Sorted(maps.Keys(languages)) }

// interpreters are what one sandbox was found to have.
type interpreters struct {
	mu    sync.Mutex
	found map[string]string // by language
}

func (i *interpreters) get(language string) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	found, ok := i.found[language]
	return found, ok
}

func (i *interpreters) put(language, found string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found == nil {
		i.found = map[string]string{}
	}
	i.found[language] = found
}

// RunCode runs src to its end, as Run does. The code travels in a file, never
// in an argument: it is written beside what it works on, in Cmd.Dir, under a
// hidden name of its own, so that imports and relative paths resolve there,
// and is removed afterwards. The interpreter is the first that the image has;
// the Record names it, and holds the SHA-256 of Text but not the code. Programs
// that earlier commands left running have the code's own rights: they can
// change the file before it is read. Cmd.Timeout bounds the run, and, counted
// apart, the preparations before it.
//
// An interpreter may hold output back; Python does not with PYTHONUNBUFFERED=1
// in Cmd.Env.
//
// Codes: invalid (Field "language"), not-found and denied (Field "dir"),
// unsupported (the image has no interpreter for it, or the backend no files),
// and those of Run.
func (s *Sandbox) RunCode(ctx context.Context, src Source) (*Result, error) {
	op := s.beginCode("run-code", src)
	res := &Result{Exit: Exit{Code: -1}, secrets: op.redact} // of what never began
	p, err := s.startCode(ctx, src, op)
	if err == nil {
		res, err = p.result(src.Cmd.MaxOutput, op)
	}
	return outcome(res, op.end(ctx, err, nil))
}

// StartCode starts src as RunCode does and gives the Process, whose output can
// be read while it comes. The file with the code is removed when the program
// was waited for, by Wait or by a loop over its output.
func (s *Sandbox) StartCode(ctx context.Context, src Source) (*Process, error) {
	op := s.beginCode("start-code", src)
	p, err := s.startCode(ctx, src, op)
	var undo func() error
	if err == nil {
		undo = p.giveUp
	}
	if err := op.end(ctx, err, undo); err != nil {
		return nil, err
	}
	return p, nil
}

func (s *Sandbox) beginCode(name string, src Source) *operation {
	op := s.begin(name, src.Cmd)
	sum := sha256.Sum256([]byte(src.Text))
	op.record.CodeSHA256 = hex.EncodeToString(sum[:])
	return op
}

func (s *Sandbox) startCode(ctx context.Context, src Source, op *operation) (*Process, error) {
	lang, ok := languages[src.Language]
	if !ok {
		return nil, driver.Invalid("language", fmt.Sprintf("%q is not known", src.Language), "use one of "+strings.Join(Languages(), ", "))
	}
	cmd := src.Cmd
	if cmd.Detached {
		return nil, driver.Invalid("detached", "somebody has to take the code away afterwards", "write a file, and Start an interpreter with it")
	}
	if !s.rt.info.Can(driver.CanFiles) {
		return nil, driver.Unsupported("files", "the backend has no files to put code in", "pass it by Stdin to an interpreter")
	}
	// The order is checked before anything is written.
	cmd.Args = append([]string{src.Language}, src.Cmd.Args...)
	order, err := s.resolve(cmd)
	if err != nil {
		return nil, err
	}
	// Programs that were left running can hold up the preparations too.
	ready, cancel := context.WithTimeoutCause(ctx, slackened(order.Timeout), errTimeout)
	defer cancel()
	late := func(err error) error {
		if err != nil && CodeOf(err) == "" && ctx.Err() == nil && context.Cause(ready) == errTimeout { //nolint:errorlint // the very value that WithTimeoutCause was given
			return &Error{Code: CodeTimeout, Err: errors.New("the code was not begun within its timeout"), Hint: "raise Cmd.Timeout, or end what else runs in the sandbox"}
		}
		return err
	}
	name, err := s.interpreter(ready, src.Language, lang)
	if err != nil {
		return nil, late(err)
	}
	dir := cmd.Dir
	if !path.IsAbs(dir) {
		dir = path.Join(driver.WorkDir, dir)
	}
	file := path.Join(dir, ".sandboxio-"+strings.ToLower(rand.Text()[:12])+lang.suffix)
	cmd.Args = append([]string{name, file}, src.Cmd.Args...)
	cmd.describe(&op.record, op.redact)
	var p *Process
	if err = late(write(ready, s.sb.Files(), file, []byte(src.Text), 0o600)); err == nil {
		p, err = s.start(ctx, cmd, op)
	} else if e, ok := errors.AsType[*Error](err); ok && e.Code != CodeGone && e.Code != CodeExhausted && e.Code != CodeTimeout {
		err = &Error{Code: e.Code, Field: "dir", Err: fmt.Errorf("the code cannot be written there: %w", err), Hint: "set Cmd.Dir to a directory that exists and is writable, as /work or /tmp"}
	}
	if err != nil {
		s.forget(ctx, file)
		return nil, err
	}
	p.after = func() { s.forget(ctx, file) }
	return p, nil
}

// forget removes a file whatever became of ctx. What it cannot remove ends
// with the sandbox, and can be read only in it.
func (s *Sandbox) forget(ctx context.Context, file string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.rt.opts.Grace)
	defer cancel()
	_ = s.sb.Files().Remove(ctx, file, false)
}

// interpreter finds the first candidate that the image has, once per sandbox
// and language. It is asked apart, since code too can exit with the status
// of a missing program.
func (s *Sandbox) interpreter(ctx context.Context, name string, lang language) (string, error) {
	if found, ok := s.interpreters.get(name); ok {
		return found, nil
	}
	for _, candidate := range lang.interpreters {
		exit, err := s.probe(ctx, append([]string{candidate}, lang.empty...))
		if err != nil {
			return "", err
		}
		if exit.Code == 126 || exit.Code == 127 {
			continue
		}
		if exit.Code != 0 {
			return "", &Error{Code: CodeUnsupported, Field: "language", Err: fmt.Errorf("%s is there and does not run: it exits with %d", candidate, exit.Code), Hint: "raise the sandbox's resources, or use another image"}
		}
		s.interpreters.put(name, candidate)
		return candidate, nil
	}
	return "", driver.Unsupported("language", "the image has no "+strings.Join(lang.interpreters, " and no "), "use an image that has one")
}

// probe runs a program for its exit status alone. What ends ctx ends it too.
func (s *Sandbox) probe(ctx context.Context, args []string) (Exit, error) {
	p, err := s.sb.Start(ctx, driver.Cmd{Args: args, Timeout: 30 * time.Second})
	if err != nil {
		return Exit{}, err
	}
	for err == nil {
		_, err = p.Recv(ctx)
	}
	var exit Exit
	if errors.Is(err, io.EOF) {
		if exit, err = p.Wait(ctx); err == nil {
			return exit, nil
		}
	}
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.rt.opts.Grace)
	defer cancel()
	if kerr := p.Kill(kill); kerr != nil && !errors.Is(kerr, CodeGone) {
		err = driver.Join(err, s.leaked(kerr))
	}
	return Exit{}, err
}
