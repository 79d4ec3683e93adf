// Command code-runner runs a Python program over a directory of files, in a
// sandbox of its own, and brings back what the program wrote:
//
//	go run ./examples/code-runner -image sha256:… -dir data -results out -to results program.py
//
// The directory is copied into the sandbox and the program runs beside it. Its
// exit code becomes that of this command; 124 says that it took too long, 125
// that the fault is not the program's, and 130 that it was interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/drivers/docker"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/audit"
)

// Exit codes that are not the program's, as timeout and docker run have them.
const (
	exitTimeout     = 124
	exitOurs        = 125
	exitInterrupted = 130
)

// project is the directory in the sandbox that the files are copied into.
const project = "project"

type job struct {
	image    string
	dir      string // on the host, copied into the sandbox
	program  string // on the host
	args     []string
	audit    string        // file that keeps what was done
	secret   string        // name of a variable of ours whose value the program gets
	trust    string        // why the code is trusted; "" = nobody says
	lifetime time.Duration // of the sandbox
	extend   time.Duration // how long it has once the files are in; 0 = what is left of lifetime
	timeout  time.Duration // of the program
	results  string        // directory that the program writes, relative to the files
	to       string        // where the results go on the host; "" = nowhere
}

func main() {
	var j job
	flag.StringVar(&j.image, "image", "", "image with python3, by digest or image id")
	flag.StringVar(&j.dir, "dir", ".", "directory to copy into the sandbox")
	flag.StringVar(&j.audit, "audit", "audit.jsonl", "audit file, for sandboxio audit verify")
	flag.StringVar(&j.secret, "secret", "", "name of an environment variable that the program gets as a secret")
	flag.StringVar(&j.trust, "trust", "", "why the code is trusted")
	flag.DurationVar(&j.lifetime, "lifetime", 2*time.Minute, "how long the sandbox lives at most")
	flag.DurationVar(&j.extend, "extend", 0, "once the files are in, let the sandbox live for this long from then on")
	flag.DurationVar(&j.timeout, "timeout", time.Minute, "how long the program may run")
	flag.StringVar(&j.results, "results", "out", "directory of the program's results, relative to the copied one")
	flag.StringVar(&j.to, "to", "", "directory to copy the results into; it must not exist yet")
	flag.Parse()
	if flag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: code-runner -image image [flags] program.py [argument…]")
		flag.PrintDefaults()
		os.Exit(2)
	}
	j.program, j.args = flag.Arg(0), flag.Args()[1:]

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first Ctrl-C ends the program and cleans up. Whoever cannot wait for
	// that has the second: the sandbox ends by itself when its owner dies.
	context.AfterFunc(ctx, stop)
	// A reader that leaves, as head does, is an error of writing and not the
	// end of this process before it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	code, err := run(ctx, j, os.Stdout, os.Stderr)
	if err != nil {
		explain(os.Stderr, err)
	}
	os.Exit(code)
}

// run gives the exit code, and an error if it is not the program's own.
func run(ctx context.Context, j job, stdout, stderr io.Writer) (code int, err error) {
	// Whatever goes wrong, cleaning up included, decides the exit code here.
	defer func() {
		switch {
		case err == nil:
		case ctx.Err() != nil:
			code = exitInterrupted
		case errors.Is(err, sandbox.CodeTimeout):
			code = exitTimeout
		default:
			code = exitOurs
		}
	}()

	if j.extend != 0 && j.extend <= j.lifetime {
		// Extend takes what it is given: less than what is left would bring the
		// end nearer.
		return 0, fmt.Errorf("-extend %s is not longer than -lifetime %s", j.extend, j.lifetime)
	}
	if j.to != "" {
		// Better now than when the results are there and have nowhere to go.
		if _, err := os.Lstat(j.to); !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("%s is there already", j.to)
		}
	}
	text, err := os.ReadFile(j.program)
	if err != nil {
		return 0, err
	}
	// A root, unlike os.DirFS, cannot be led elsewhere by a link that somebody
	// puts into the directory meanwhile.
	dir, err := os.OpenRoot(j.dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = dir.Close() }()
	cmd := sandbox.Cmd{Args: j.args, Dir: project, Timeout: j.timeout}
	if j.secret != "" {
		value, ok := os.LookupEnv(j.secret)
		if !ok {
			return 0, fmt.Errorf("the secret's variable %s is not set", j.secret)
		}
		cmd.Secrets = map[string]sandbox.Secret{j.secret: sandbox.NewSecret(value)}
	}

	// The audit file is opened before anything is made and closed after all is
	// gone, since the sandbox's end is recorded too.
	file, err := audit.OpenFile(j.audit, audit.FileOptions{})
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		head := file.Head()
		note(stderr, "audit: %d entries, head %s", head.Seq, head.Hash)
	}()
	judge, err := policy.Load(ctx, policy.Options{})
	if err != nil {
		return 0, err
	}
	backend, err := docker.Open(ctx, docker.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()

	spec := sandbox.Spec{Image: j.image, Lifetime: j.lifetime}
	if j.extend != 0 {
		// The policy judges how long the sandbox may live at all, so the room
		// for an extension has to be asked for here.
		spec.MaxLifetime = j.lifetime + j.extend
	}
	if j.trust != "" {
		spec.Trust = sandbox.Trusted(j.trust)
	}
	rt := sandbox.New(backend, sandbox.Options{
		Guard: judge.Guard(),
		Owner: "code-runner",
		Sinks: []sandbox.Sink{file},
	})
	sb, err := rt.Create(ctx, spec)
	if err != nil {
		return 0, err
	}
	// Close outlives ctx, so that Ctrl-C leaves nothing behind.
	defer func() { err = errors.Join(err, sb.Close()) }()

	status := sb.Status()
	note(stderr, "isolation: %s, as seen by %s: %s", status.Isolation, status.Evidence.Source, status.Evidence.Detail)
	for _, warning := range sb.Warnings() {
		note(stderr, "warning: %s", warning)
	}

	report, err := sb.Files().Upload(ctx, dir.FS(), project)
	if err != nil {
		return 0, err
	}
	noteLeftOut(stderr, "upload", report)
	// So that the program need not make it, and there is something to copy
	// back even if it writes nothing.
	results := path.Join(project, j.results)
	if err := sb.Files().Mkdir(ctx, results, 0o755); err != nil {
		return 0, err
	}
	if j.extend != 0 {
		if err := sb.Extend(ctx, j.extend); err != nil {
			return 0, err
		}
		note(stderr, "extended until %s", sb.Status().Deadline.Format(time.RFC3339))
	}

	exit, err := show(ctx, sb, string(text), cmd, stdout, stderr)
	if err != nil {
		return 0, err
	}
	if exit.OOM != nil && *exit.OOM {
		note(stderr, "the program was out of memory")
	}
	if j.to != "" {
		report, err := sb.Files().Download(ctx, results, j.to, archive.Limits{Bytes: 256 << 20})
		if err != nil {
			return 0, err
		}
		noteLeftOut(stderr, "download", report)
		note(stderr, "%d files, %d bytes in %s", report.Files, report.Bytes, j.to)
	}
	return exit.Code, nil
}

// show runs the code and shows its output while it comes.
func show(ctx context.Context, sb *sandbox.Sandbox, text string, cmd sandbox.Cmd, stdout, stderr io.Writer) (sandbox.Exit, error) {
	// Python keeps output back unless it writes to a terminal or is told so.
	cmd.Env = map[string]string{"PYTHONUNBUFFERED": "1"}
	p, err := sb.StartCode(ctx, sandbox.Source{Language: "python", Text: text, Cmd: cmd})
	if err != nil {
		return sandbox.Exit{}, err
	}
	for text, err := range p.Text() {
		if err == nil {
			w := stdout
			if text.Stream == sandbox.Stderr {
				w = stderr
			}
			_, err = io.WriteString(w, text.Text)
		}
		if err != nil {
			// Leaving the loop kills the program, if it still runs: nobody
			// reads it any more.
			return sandbox.Exit{}, err
		}
	}
	return p.Wait()
}

// noteLeftOut tells of what a copy does not carry, such as symbolic links.
func noteLeftOut(w io.Writer, what string, report archive.Report) {
	for _, left := range report.LeftOut {
		note(w, "%s: left out %s", what, left)
	}
	if more := report.LeftOutCount - len(report.LeftOut); more > 0 {
		note(w, "%s: left out %d more", what, more)
	}
}

// explain shows an error, which says itself how to mend it, and where the rules
// are explained that denied the sandbox.
func explain(w io.Writer, err error) {
	note(w, "%v", err)
	if denied, ok := errors.AsType[*sandbox.DeniedError](err); ok {
		for _, f := range denied.Verdict.Findings {
			note(w, "%s by %s: %s", f.Effect, f.Rule, f.Page)
		}
	}
}

func note(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, "code-runner: "+format+"\n", args...)
}
