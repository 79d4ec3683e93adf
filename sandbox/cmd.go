package sandbox

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/redact"
)

// DefaultMaxOutput bounds what Run keeps of each stream when Cmd.MaxOutput is
// zero. Process.Output is not bounded.
const DefaultMaxOutput = 16 << 20

// Cmd is one program to run. Args is an argument vector: nothing goes through
// a shell unless Args says so, as in {"sh", "-c", "…"}.
type Cmd struct {
	Args []string
	Env  map[string]string // added to the sandbox's, and winning over it

	// Secrets are variables that sandboxio keeps out of its own logs, errors,
	// Records and configuration. Nothing keeps them from the program, or from
	// what else runs in the sandbox. What a program prints itself, in
	// Result.Stdout, Result.Stderr, Process.Output and Process.Text, is handed
	// to the caller as it is, not redacted: whoever logs that logs a secret
	// that the program printed. Package redact takes values out of text. A value
	// of 1 to 3 bytes is refused, since it cannot be told from other text.
	Secrets map[string]Secret

	Dir       string        // absolute, or relative to /work; zero = /work
	Stdin     io.Reader     // nil = end of file at once. A Read that never returns outlives the process, as in os/exec
	Timeout   time.Duration // zero = 300 s; negative is refused
	MaxOutput int64         // bytes of each stream that Run keeps; zero = 16 MiB; what is beyond is read and dropped
	Detached  bool          // Start only, in detached sandboxes: outlives this connection, its output is dropped
}

// Result is how a program that ran to its end did.
type Result struct {
	Exit      Exit
	Stdout    []byte // byte for byte
	Stderr    []byte
	Truncated bool // a stream was longer than MaxOutput
	Duration  time.Duration

	secrets redact.Redactor // for Err: the streams are the program's own
}

// ExitError is what Result.Err makes of an exit status other than 0. It has no
// code: see [CodeOf].
type ExitError struct {
	Exit   Exit
	Stderr string // the last 1 KiB of it, without the command's secrets
}

func (e *ExitError) Error() string {
	s := fmt.Sprintf("exit status %d", e.Exit.Code)
	if e.Exit.Signal != "" {
		s = "ended by " + e.Exit.Signal
	}
	if e.Exit.OOM != nil && *e.Exit.OOM {
		s += " (out of memory)"
	}
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	return s
}

// Err is nil if the program exited with status 0, else an [*ExitError].
func (r *Result) Err() error {
	if r.Exit.Code == 0 && r.Exit.Signal == "" {
		return nil
	}
	clear := r.secrets.String(string(r.Stderr)) // before the cut, which would leave a part of one
	tail := clear[max(0, len(clear)-1024):]
	return &ExitError{Exit: r.Exit, Stderr: strings.TrimSpace(strings.ToValidUTF8(tail, "\uFFFD"))}
}

func (c Cmd) resolve(detached bool) (driver.Cmd, error) {
	var errs []error
	refuse := func(field, problem, fix string) { errs = append(errs, driver.Invalid(field, problem, fix)) }
	if len(c.Args) == 0 || c.Args[0] == "" {
		refuse("args", "no program was named", `set Args, as {"python3", "main.py"}`)
	}
	for i, a := range c.Args {
		if strings.IndexByte(a, 0) >= 0 {
			refuse(fmt.Sprintf("args[%d]", i), "contains a NUL byte", "pass binary data by Stdin or in a file")
		} else if len(a) >= 128<<10 {
			refuse(fmt.Sprintf("args[%d]", i), fmt.Sprintf("has %d bytes", len(a)), "an argument is below 128 KiB; pass large data by Stdin or in a file")
		}
	}
	errs = append(errs, driver.ValidateEnv("env", c.Env))
	secrets := make(map[string]string, len(c.Secrets))
	for k, v := range c.Secrets {
		secrets[k] = v.Reveal()
		if _, both := c.Env[k]; both {
			refuse(fmt.Sprintf("secrets[%q]", k), "is also in env", "a name is either a plain variable or a secret")
		}
		if n := len(secrets[k]); n > 0 && n < redact.MinLength {
			refuse(fmt.Sprintf("secrets[%q]", k), "is too short to be told from other text, and could not be kept out of errors and records",
				fmt.Sprintf("use a value of %d bytes or more, or pass it in Env if it is no secret", redact.MinLength))
		}
	}
	errs = append(errs, driver.ValidateEnv("secrets", secrets))
	if c.Timeout < 0 {
		refuse("timeout", c.Timeout.String()+" is negative", "leave it out for 300 s, or set a positive duration")
	} else if c.Timeout == 0 {
		c.Timeout = driver.DefaultTimeout
	}
	if c.MaxOutput < 0 {
		refuse("max_output", fmt.Sprintf("%d is negative", c.MaxOutput), "leave it out for 16 MiB")
	}
	if strings.IndexByte(c.Dir, 0) >= 0 {
		refuse("dir", "contains a NUL byte", "remove it")
	}
	if c.Detached && !detached {
		refuse("detached", "the sandbox ends with its owner", "create it with Spec.Detached, or wait for the process")
	}
	if c.Detached && c.Stdin != nil {
		refuse("stdin", "a detached process has none", "write a file first")
	}
	return driver.Cmd{
		Args: slices.Clone(c.Args), Env: maps.Clone(c.Env), Secrets: maps.Clone(c.Secrets), Dir: c.Dir,
		Stdin: c.Stdin != nil, Timeout: c.Timeout, Detached: c.Detached,
	}, driver.Join(errs...)
}

// declared refuses secrets that the template does not name, and what it names as
// one given in clear: the names are what was reviewed.
func (c Cmd) declared(names []string) error {
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(c.Secrets)) {
		if !slices.Contains(names, k) {
			errs = append(errs, driver.Invalid(fmt.Sprintf("secrets[%q]", k), "the template does not declare this secret", fmt.Sprintf("add %q to the template's secrets, or remove it", k)))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.Env)) {
		if slices.Contains(names, k) {
			errs = append(errs, driver.Invalid(fmt.Sprintf("env[%q]", k), "the template declares it as a secret", "pass it in Secrets"))
		}
	}
	return driver.Join(errs...)
}

// describe puts into a Record what may be known of a command. Secrets are taken
// out before the path is cut, which would leave a part of one.
func (c Cmd) describe(r *Record, secrets redact.Redactor) {
	if len(c.Args) > 0 {
		r.Program = path.Base(secrets.String(c.Args[0]))
	}
	r.Args = len(c.Args)
	r.Secrets = slices.Sorted(maps.Keys(c.Secrets))
}

var errTimeout = errors.New("the command ran longer than its timeout and was ended")
