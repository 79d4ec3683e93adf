package drivertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// records asks what is kept of what was done on a backend.
var records = []Check{
	{Name: "records: there is one of each operation, true to what happened", Func: with(func(t *trial) error {
		j := &journal{}
		spec, _ := t.wish()
		s, err := t.runtime(j).Create(t, spec)
		if err != nil {
			return err
		}
		_, rerr := s.Run(t, t.order(Both, "four", "sixsix"))
		res, xerr := s.Run(t, t.order(Raise, "TERM"))
		want := map[string]int{"create": 1, "run": 2, "close": 1}
		if err := errors.Join(rerr, xerr, s.Close()); err != nil {
			return err
		}
		for op, n := range want {
			if got := j.of(op); len(got) != n {
				return fmt.Errorf("%d Records of %s, want %d", len(got), op, n)
			}
			for _, r := range j.of(op) {
				if r.Sandbox != s.ID() || r.Backend != t.b.Info().Name || r.Code != "" || r.Time.IsZero() || r.Isolation != s.Status().Isolation && op == "create" {
					return fmt.Errorf("%s is recorded as %+v", op, r)
				}
			}
		}
		first, second := j.of("run")[0], j.of("run")[1]
		if first.Stdout != 4 || first.Stderr != 6 || first.Exit == nil || first.Exit.Code != 0 {
			return fmt.Errorf("a run with 4 and 6 bytes is recorded as %+v", first)
		}
		if second.Exit == nil || second.Exit.Signal != "SIGTERM" || second.Exit.Code != res.Exit.Code {
			return fmt.Errorf("a program that SIGTERM ended is recorded as %+v", second)
		}
		return nil
	})},
	{Name: "records: no secret, output, argument or variable is in them, nor in an error", Func: with(func(t *trial) error {
		j := &journal{}
		var log bytes.Buffer
		spec, _ := t.wish()
		spec.Env = map[string]string{"OF_SANDBOX": canarySecret}
		s, err := t.runtime(j, sandbox.LogSink{Logger: slog.New(slog.NewJSONHandler(&log, nil))}).Create(t, spec)
		if err != nil {
			return err
		}
		secrets := map[string]sandbox.Secret{"CANARY": sandbox.NewSecret(canarySecret)}
		var said []string
		for _, cmd := range []sandbox.Cmd{
			t.order(Hash, "CANARY"),
			t.order(Args, canarySecret),
			t.order(Missing),
			{Args: t.h.Programs.Argv(Exit, "0"), Dir: "/" + canarySecret},
			{Args: t.h.Programs.Argv(Exit, "0"), Env: map[string]string{"OF_CMD": canarySecret}},
		} {
			cmd.Secrets = secrets
			if _, err := s.Run(t, cmd); err != nil {
				said = append(said, err.Error())
			}
		}
		if t.b.Info().Can(driver.CanFiles) {
			if err := s.Files().Write(t, "/tmp/file", []byte(canarySecret), 0o600); err != nil {
				return err
			}
		}
		if err := s.Close(); err != nil {
			return err
		}
		kept, err := json.Marshal(j.records)
		if err != nil {
			return err
		}
		for what, text := range map[string]string{"a Record": string(kept), "the log": log.String(), "an error": strings.Join(said, "\n")} {
			if i := strings.Index(text, canarySecret); i >= 0 {
				return fmt.Errorf("%s holds it: %q", what, text[max(0, i-80):min(len(text), i+80)])
			}
		}
		return nil
	})},
	{Name: "records: a sandbox whose creation cannot be kept is destroyed, and nothing of it is left", Func: with(func(t *trial) error {
		spec, token := t.wish()
		s, err := t.runtime(&journal{refuse: "create"}).Create(t, spec)
		if err == nil {
			return errors.Join(errors.New("it was handed over"), s.Close())
		}
		return errors.Join(wantCode("create", err, driver.CodeUnavailable), t.unlisted(token))
	})},
	{Name: "records: a program whose start cannot be kept is ended", Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		p, err := s.Start(t, t.order(Beat, "/tmp/beat"))
		if err == nil {
			return errors.Join(errors.New("it was handed over"), p.Kill())
		}
		if err := wantCode("start", err, driver.CodeUnavailable); err != nil {
			return err
		}
		// It may have been ended before its first beat.
		if _, err := t.say(inner, Write, "/tmp/beat"); err != nil {
			return err
		}
		return t.stops(inner, "/tmp/beat")
	}, func() sandbox.Sink { return &journal{refuse: "start"} })},
}

// code asks for code to be run by file, never by argv.
var code = []Check{
	{Name: "code: a text of 200 KiB runs, and leaves no file (M71)", Capability: driver.CanFiles, Kind: Proof, Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		before, err := names(t, inner.Files(), ".")
		if err != nil {
			return err
		}
		text := strings.Repeat("# a line that says nothing\n", 200<<10/27) + "echo done\n"
		res, err := s.RunCode(t, sandbox.Source{Language: "sh", Text: text})
		if err != nil {
			return err
		}
		if string(res.Stdout) != "done\n" || res.Exit.Code != 0 {
			return fmt.Errorf("it says %.200q, %.200q, %+v", res.Stdout, res.Stderr, res.Exit)
		}
		return t.sameNames(inner.Files(), ".", before)
	})},
	{Name: "code: it runs where it is told, and its exit status is its own", Capability: driver.CanFiles, Kind: Proof, Func: through(func(t *trial, s *sandbox.Sandbox, _ driver.Sandbox) error {
		for text, want := range map[string]sandbox.Result{
			"pwd\n":    {Stdout: []byte("/tmp\n")},
			"exit 3\n": {Exit: sandbox.Exit{Code: 3}},
		} {
			res, err := s.RunCode(t, sandbox.Source{Language: "sh", Text: text, Cmd: sandbox.Cmd{Dir: "/tmp"}})
			if err != nil {
				return err
			}
			if !bytes.Equal(res.Stdout, want.Stdout) || res.Exit.Code != want.Exit.Code {
				return fmt.Errorf("%q says %q, %q, %+v", text, res.Stdout, res.Stderr, res.Exit)
			}
		}
		return nil
	})},
	{Name: "code: a caller who leaves leaves neither a program nor its file", Capability: driver.CanFiles, Kind: Proof, Func: through(func(t *trial, s *sandbox.Sandbox, inner driver.Sandbox) error {
		before, err := names(t, inner.Files(), ".")
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t, time.Second)
		defer cancel()
		_, err = s.RunCode(ctx, sandbox.Source{Language: "sh", Text: "sleep 600\n"})
		if err := truly("run", err, context.DeadlineExceeded); err != nil {
			return err
		}
		return t.sameNames(inner.Files(), ".", before)
	})},
}
