package sandbox

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/redact"
)

// Record is what is kept of one operation. It is redacted before any sink
// sees it and holds no code, output or environment.
type Record struct {
	Time     time.Time     `json:"time"` // when the operation began
	Duration time.Duration `json:"duration_ns"`
	Op       string        `json:"op"` // create, attach, run, run-code, start, start-code, wait, extend, close, or one on files
	Backend  string        `json:"backend"`
	Sandbox  string        `json:"sandbox"`
	Owner    string        `json:"owner"`
	Tenant   string        `json:"tenant"`
	Template string        `json:"template"` // digest
	Policy   string        `json:"policy"`   // digest of the rules that judged
	Image    string        `json:"image"`    // as it was ordered; "" for an attached sandbox whose backend does not tell

	Resources Resources `json:"resources,omitzero"` // of create: the caps that were ordered
	Deadline  time.Time `json:"deadline,omitzero"`  // of create and extend: when the sandbox ends by itself

	Decision    Decision  `json:"decision"`
	Findings    []string  `json:"findings"`  // rule ids with their paths
	Unguarded   string    `json:"unguarded"` // why no policy judged
	Trust       string    `json:"trust"`
	TrustReason string    `json:"trust_reason"`
	Isolation   Isolation `json:"isolation"` // as measured
	Evidence    string    `json:"evidence"`
	Warnings    []string  `json:"warnings"`

	Program    string   `json:"program"`     // base name of argv[0]
	Args       int      `json:"args"`        // how many there were; their text is never kept
	CodeSHA256 string   `json:"code_sha256"` // of what RunCode ran, in hex; the code itself is never kept
	Secrets    []string `json:"secrets"`     // names of the secrets it was given
	Exit       *Exit    `json:"exit"`        // nil where it is not known, above all when the program did not end by itself
	Stdout     int64    `json:"stdout"`      // bytes that were written, kept or not
	Stderr     int64    `json:"stderr"`
	Files      int      `json:"files,omitzero"` // of upload and download
	Bytes      int64    `json:"bytes,omitzero"`

	// Of run, run-code, wait and close, in a sandbox whose backend counts it: what was
	// refused to its programs since the Record before. The program chose the
	// names. At most 32 kinds are told, those with the most requests; Refused
	// counts all requests, each once: a kind that is told late, because there
	// were too many, was counted before.
	Denied  []Denial `json:"denied,omitempty"`
	Refused int      `json:"refused,omitzero"`

	Code  Code   `json:"code"` // "" = it succeeded
	Error string `json:"error"`
}

// maxError bounds Record.Error, in bytes: an engine's answer, or what hostile
// code made it say, must not make a Record that no sink takes.
const maxError = 8 << 10

// clean takes secrets out of every text of r, before anything else changes what
// they are written like, and bounds the longest.
func (r *Record) clean(secrets redact.Redactor) {
	for _, s := range []*string{&r.Sandbox, &r.Image, &r.Owner, &r.Tenant, &r.Unguarded, &r.TrustReason, &r.Evidence, &r.Program, &r.Error} {
		*s = strings.ToValidUTF8(secrets.String(*s), "\uFFFD")
	}
	for _, list := range []*[]string{&r.Findings, &r.Warnings, &r.Secrets} {
		*list = slices.Clone(*list)
		for i, s := range *list {
			(*list)[i] = strings.ToValidUTF8(secrets.String(s), "\uFFFD")
		}
	}
	for i := range r.Denied {
		d := &r.Denied[i]
		d.Host, d.Reason = plain(secrets.String(d.Host)), plain(secrets.String(d.Reason))
	}
	if len(r.Error) > maxError {
		r.Error = strings.ToValidUTF8(r.Error[:maxError], "") + "…"
	}
}

// A Sink keeps Records: one of every call that reaches a backend's sandbox or
// would make one, before the call returns. Start and Wait are two calls;
// Check and List, which change nothing and reach into no sandbox, make none.
//
// Record is safe for concurrent use and returns when ctx ends. ctx carries the
// values of the caller's and outlives it by Options.Grace at most. When Record
// fails, the operation fails, and what it has made is destroyed before the call
// returns: what cannot be recorded does not happen. Package audit has sinks
// that keep a file, that answer at once, and that may fail.
type Sink interface {
	Record(ctx context.Context, r Record) error
}

// LogSink writes each Record as one structured line to a logger. A logger
// does not say whether it could write, so LogSink never fails: it is for people
// who look, not for proof.
type LogSink struct{ Logger *slog.Logger }

// Record logs r, at level warn if the operation failed, else info.
func (s LogSink) Record(ctx context.Context, r Record) error {
	level := slog.LevelInfo
	if r.Code != "" {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("op", r.Op), slog.String("backend", r.Backend), slog.String("sandbox", r.Sandbox),
		slog.Duration("duration", r.Duration), slog.String("isolation", r.Isolation.String()),
	}
	for _, a := range []struct{ k, v string }{
		{"owner", r.Owner}, {"tenant", r.Tenant}, {"template", r.Template}, {"policy", r.Policy}, {"image", r.Image},
		{"decision", string(r.Decision)}, {"unguarded", r.Unguarded}, {"trust", r.Trust}, {"trust_reason", r.TrustReason},
		{"evidence", r.Evidence}, {"program", r.Program}, {"code_sha256", r.CodeSHA256}, {"code", string(r.Code)}, {"error", r.Error},
	} {
		if a.v != "" {
			attrs = append(attrs, slog.String(a.k, a.v))
		}
	}
	for _, a := range []struct {
		k string
		v []string
	}{{"findings", r.Findings}, {"warnings", r.Warnings}, {"secrets", r.Secrets}} {
		if len(a.v) > 0 {
			attrs = append(attrs, slog.Any(a.k, a.v))
		}
	}
	if r.Exit != nil {
		attrs = append(attrs, slog.Int("args", r.Args), slog.Int("exit", r.Exit.Code), slog.String("signal", r.Exit.Signal),
			slog.Int64("stdout", r.Stdout), slog.Int64("stderr", r.Stderr))
	}
	if r.Refused > 0 || len(r.Denied) > 0 {
		attrs = append(attrs, slog.Int("refused", r.Refused), slog.Any("denied", r.Denied))
	}
	if !r.Deadline.IsZero() {
		attrs = append(attrs, slog.Time("deadline", r.Deadline))
	}
	if r.Files > 0 {
		attrs = append(attrs, slog.Int("files", r.Files), slog.Int64("bytes", r.Bytes))
	}
	s.Logger.LogAttrs(ctx, level, "sandbox operation", attrs...)
	return nil
}
