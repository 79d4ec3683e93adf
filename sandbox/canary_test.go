package sandbox_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/audit"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// canary must be seen nowhere, in no writing. No part of it is hexadecimal: ids
// and digests hold any few such digits by chance.
const canary = `canary/zQ7wxK9vYu "secret"<&>`

var canaryForms = []string{
	canary, "zQ7wxK9vYu", url.QueryEscape(canary), `canary/zQ7wxK9vYu \"secret\"`,
	base64.StdEncoding.EncodeToString([]byte(canary)), base64.StdEncoding.EncodeToString([]byte("u:" + canary))[4:20],
}

func sings(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range canaryForms {
		if strings.Contains(text, form) {
			t.Errorf("%s holds %q: %s", where, form, text)
		}
	}
}

// telltale is an engine that repeats what it was given in its errors.
type telltale struct{ driver.Sandbox }

func (telltale) Start(_ context.Context, cmd driver.Cmd) (driver.Process, error) {
	v := cmd.Secrets["T"].Reveal()
	js, err := json.Marshal(map[string]string{"T": v})
	if err != nil {
		return nil, err
	}
	return nil, driver.Join(
		&driver.Error{Code: driver.CodeUnavailable, Field: "env." + v, Hint: "curl https://x/?t=" + url.QueryEscape(v), Err: fmt.Errorf("POST: %s", js)},
		fmt.Errorf("Authorization: Basic %s: %w", base64.StdEncoding.EncodeToString([]byte("u:"+v)), driver.CodeDenied),
		fmt.Errorf("%q: %w", js, context.Canceled),
	)
}

func TestACanaryIsInNoSinkErrorOrPrintout(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	file, err := audit.OpenFile(name, audit.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var log, text bytes.Buffer
	kept, queued := &sink{}, &sink{}
	queue := audit.NewQueue(queued, audit.QueueOptions{})
	opts := sandbox.Options{Unguarded: "a test", Owner: "me", Sinks: []sandbox.Sink{
		kept, file, queue,
		sandbox.LogSink{Logger: slog.New(slog.NewJSONHandler(&log, nil))},
		audit.BestEffort{Sink: sandbox.LogSink{Logger: slog.New(slog.NewTextHandler(&text, nil))}},
	}}
	b, _ := world(t)
	gossip := false
	rt := sandbox.New(lying{b, func(ctx context.Context, s driver.Spec, b driver.Backend) (driver.Sandbox, error) {
		sb, err := b.Create(ctx, s)
		if gossip {
			return telltale{sb}, err
		}
		return sb, err
	}}, opts)

	secret := map[string]sandbox.Secret{"T": sandbox.NewSecret(canary)}
	loud := sandbox.Cmd{Args: []string{"/opt/" + canary, "--token", canary}, Secrets: secret}
	quiet := sandbox.Cmd{Args: []string{"sha256", "T"}, Secrets: secret}
	ctx := t.Context()

	sb, err := rt.Create(ctx, sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	printed := map[string]any{"options": opts, "runtime": rt, "command": quiet, "secret": secret["T"], "secrets": secret}
	var errs []error
	fail := func(err error) {
		if err == nil {
			t.Error("it did not fail")
		}
		errs = append(errs, err)
	}

	res, err := sb.Run(ctx, quiet)
	if err != nil || res.Err() != nil {
		t.Fatal(err, res)
	}
	printed["result"] = res
	res, err = sb.Run(ctx, loud) // a program of that name is not there; the guest says so on stderr, which is the program's own
	if err != nil {
		t.Fatal(err)
	}
	fail(res.Err())
	code := sandbox.Source{Language: "sh", Text: "# " + canary + "\nexit 3\n", Cmd: sandbox.Cmd{Secrets: secret}}
	if _, err := sb.RunCode(ctx, code); err != nil {
		t.Fatal(err)
	}
	p, err := sb.Start(ctx, sandbox.Cmd{Args: []string{"true", canary}, Secrets: secret})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	printed["process"], printed["sandbox"], printed["files"] = p, sb, sb.Files()

	// Later operations do not carry the secret, but the program may have spread
	// it: into the name of a file, for one.
	_, err = sb.Files().Read(ctx, "/work/"+canary)
	fail(err)
	_, err = sb.Files().Stat(ctx, "/work/"+url.QueryEscape(canary))
	fail(err)
	_, err = sb.Run(ctx, sandbox.Cmd{Args: []string{"true"}, Dir: "/\x00" + canary, Secrets: secret})
	fail(err)
	_, err = sb.Run(ctx, sandbox.Cmd{Args: []string{"true"}, Env: map[string]string{"T": "x", "bad " + canary: "y"}, Secrets: secret})
	fail(err)

	gossip = true
	other, err := rt.Create(ctx, sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Run(ctx, quiet)
	fail(err)
	_, err = other.Start(ctx, quiet)
	fail(err)
	if err := errors.Join(sb.Close(), other.Close(), queue.Close(ctx), file.Close()); err != nil {
		t.Fatal(err)
	}

	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{
		"the audit file": string(content), "the JSON log": log.String(), "the text log": text.String(),
		"the records": fmt.Sprintf("%+v %#v", kept.records, kept.records), "the queue's records": fmt.Sprintf("%+v", queued.records),
	} {
		t.Run(where+" has the program and no command line (M103)", func(t *testing.T) {
			if !strings.Contains(text, "run") || !strings.Contains(text, "sha256") {
				t.Errorf("nothing was kept: %s", text)
			}
			sings(t, where, text)
		})
	}
	if len(kept.records) != len(queued.records) || bytes.Count(content, []byte("\n")) != len(kept.records) {
		t.Errorf("%d records, %d from the queue, %d lines", len(kept.records), len(queued.records), bytes.Count(content, []byte("\n")))
	}
	for _, r := range kept.records { // the program and how many arguments, no more (M103)
		if r.Op == "run" && r.Program == "sha256" && r.Args != 2 || r.Op == "run-code" && len(r.CodeSHA256) != 64 {
			t.Errorf("%+v", r)
		}
	}
	t.Run("no error holds it under any verb (M104)", func(t *testing.T) {
		for _, err := range errs {
			walk(err, func(e error) {
				for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
					sings(t, "an error by "+verb, fmt.Sprintf(verb, e))
				}
			})
		}
	})
	for what, v := range printed {
		t.Run("a debug print of the "+what+" does not hold it (M104)", func(t *testing.T) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
				sings(t, verb, fmt.Sprintf(verb, v))
			}
			if text, err := json.Marshal(v); err == nil {
				sings(t, "JSON", string(text))
			}
			var out bytes.Buffer
			slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
			sings(t, "slog", out.String())
		})
	}
}

// tattling fails on content, and repeats the file's name.
type tattling struct{ driver.Files }

type tattler struct{ name string }

func (b tattler) fail() error {
	return &driver.Error{Code: driver.CodeGone, Err: &fs.PathError{Op: "read", Path: b.name, Err: errors.New("it ended")}}
}
func (b tattler) Read([]byte) (int, error)  { return 0, b.fail() }
func (b tattler) Write([]byte) (int, error) { return 0, b.fail() }
func (b tattler) Close() error              { return b.fail() }

func (tattling) Open(_ context.Context, name string) (io.ReadCloser, driver.FileInfo, error) {
	return tattler{name}, driver.FileInfo{Name: name}, nil
}

func (tattling) Create(_ context.Context, name string, _ fs.FileMode) (io.WriteCloser, error) {
	return tattler{name}, nil
}

// A program may name its files by its secret; what is listed is opened, and
// what was opened is read.
func TestASecretInAFilesNameIsInNoErrorOfWhatWasOpened(t *testing.T) {
	t.Parallel()
	sb, _ := filled(t, func(f driver.Files) driver.Files { return tattling{f} })
	const name = "5b7e-canary"
	cmd := sandbox.Cmd{Args: []string{"true"}, Secrets: map[string]sandbox.Secret{"T": sandbox.NewSecret(name)}}
	if _, err := sb.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	ctx, files := t.Context(), sb.Files()
	view := files.FS(ctx, "/work")
	for what, do := range map[string]func() error{
		"reading": func() error {
			r, _, err := files.Open(ctx, name)
			if err == nil {
				_, err = io.ReadAll(r)
			}
			return err
		},
		"writing": func() error {
			w, err := files.Create(ctx, name, 0o600)
			if err == nil {
				_, err = w.Write([]byte("x"))
			}
			return err
		},
		"closing": func() error {
			w, err := files.Create(ctx, name, 0o600)
			if err == nil {
				err = w.Close()
			}
			return err
		},
		"a view's file": func() error {
			f, err := view.Open(name)
			if err == nil {
				_, err = io.ReadAll(f)
			}
			return err
		},
		"a view's whole file": func() error { _, err := fs.ReadFile(view, name); return err },
		"a view's directory":  func() error { _, err := fs.ReadDir(view, name); return err },
		"a view's stat":       func() error { _, err := fs.Stat(view, name); return err },
		"a view's bad name":   func() error { _, err := fs.Stat(view, name+"/"); return err },
	} {
		err := do()
		if err == nil {
			t.Errorf("%s did not fail", what)
			continue
		}
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, name) || !strings.Contains(text, "[secret]") {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// walk visits every error of a tree.
func walk(err error, visit func(error)) {
	if err == nil {
		return
	}
	visit(err)
	switch u := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() error }:
		walk(u.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			walk(e, visit)
		}
	}
}

// A sandbox remembers the secrets of its commands, the newest first.
func TestManySecretsAreForgottenFromTheOldest(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	s := &sink{}
	sb, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}}).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	for i := range 70 {
		for range 2 {
			if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"true"}, Secrets: map[string]sandbox.Secret{"T": sandbox.NewSecret(fmt.Sprintf("canary-%d-x", i))}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, hidden := range map[int]bool{0: false, 6: true, 69: true} {
		name := fmt.Sprintf("canary-%d-x", i)
		if _, err := sb.Files().Read(t.Context(), name); err == nil || strings.Contains(err.Error(), name) == hidden {
			t.Errorf("%s: %v", name, err)
		}
	}
}
