package drivertest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// environ gives a program's environment, each variable as often as it is
// there.
func (t *trial) environ(s driver.Sandbox, cmd driver.Cmd) (map[string][]string, error) {
	out, err := t.run(s, cmd)
	if err == nil && out.exit.Code != 0 {
		err = fmt.Errorf("%v", out)
	}
	all := map[string][]string{}
	for kv := range strings.SplitSeq(strings.TrimSuffix(string(out.stdout), "\x00"), "\x00") {
		k, v, _ := strings.Cut(kv, "=")
		all[k] = append(all[k], v)
	}
	return all, err
}

// badVariables are names and values that reach no program unchanged.
var badVariables = map[string]string{
	"": "x", "1A": "x", "A B": "x", "A=B": "x", "A-B": "x", "É": "x", "A\x00B": "x", "NUL": "a\x00b", "LONG": strings.Repeat("x", 128<<10),
	"no_proxy": "x", "SANDBOXIO_X": "x",
}

// variables asks finer questions of env and secrets.
var variables = []Check{
	{Name: "env: what cannot arrive unchanged is refused by name, for sandbox and command", Func: inside(func(t *trial, s driver.Sandbox) error {
		for k, v := range badVariables {
			spec := t.spec()
			spec.Env = map[string]string{k: v}
			_, err := t.b.Check(spec)
			if err := wantField(err, driver.CodeInvalid, fmt.Sprintf("env[%q]", k)); err != nil {
				return fmt.Errorf("check: %w", err)
			}
			env, secret := t.cmd(Exit, "0"), t.cmd(Exit, "0")
			env.Env = spec.Env
			secret.Secrets = map[string]driver.Secret{k: driver.NewSecret(v)}
			for field, cmd := range map[string]driver.Cmd{"env": env, "secrets": secret} {
				p, err := s.Start(t, cmd)
				if err == nil {
					return errors.Join(fmt.Errorf("with %.20q in %s it was started", k, field), p.Kill(t))
				}
				if err := wantField(err, driver.CodeInvalid, fmt.Sprintf("%s[%q]", field, k)); err != nil {
					return fmt.Errorf("start: %w", err)
				}
			}
		}
		return nil
	})},
	{Name: "env: a name that the image has too is there once, with the sandbox's value (M99)", Func: with(func(t *trial) error {
		bare, err := t.create()
		if err != nil {
			return err
		}
		before, err := t.environ(bare, t.cmd(Environ))
		if err != nil || len(before["PATH"]) != 1 {
			return fmt.Errorf("PATH is %q, %v", before["PATH"], err)
		}
		spec := t.spec()
		want := before["PATH"][0] + ":/drivertest"
		spec.Env = map[string]string{"PATH": want, "HOME": "/tmp"}
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		env, err := t.environ(s, t.cmd(Environ))
		if err != nil {
			return err
		}
		for k, want := range spec.Env {
			if len(env[k]) != 1 || env[k][0] != want {
				return fmt.Errorf("%s is %q, want %q", k, env[k], want)
			}
		}
		return nil
	})},
	{Name: "env: nothing of the host's own is inside", Func: with(func(t *trial) error {
		// A variable of this very process, which a driver that passes its own
		// on would pass too.
		name := "DRIVERTEST_" + rand.Text()
		if err := os.Setenv(name, "of the host"); err != nil {
			return err
		}
		defer func() { _ = os.Unsetenv(name) }()
		s, err := t.create()
		if err != nil {
			return err
		}
		env, err := t.environ(s, t.cmd(Environ))
		if err == nil && len(env[name]) > 0 {
			err = fmt.Errorf("the host's %s is there", name)
		}
		return err
	})},
	{Name: "secrets: one wins over a plain variable of its name (M106)", Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Env = map[string]string{"CANARY": "plain"}
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		cmd := t.cmd(Hash, "CANARY")
		cmd.Secrets = map[string]driver.Secret{"CANARY": driver.NewSecret(canarySecret)}
		out, err := t.run(s, cmd)
		if sum := sha256.Sum256([]byte(canarySecret)); err == nil && string(out.stdout) != hex.EncodeToString(sum[:]) {
			err = fmt.Errorf("the program has another: %v", out)
		}
		return err
	})},
	{Name: "secrets: they are on no command line inside", Control: true, Func: inside(func(t *trial, s driver.Sandbox) error {
		const mark = "visible-5e0d1f"
		cmd := t.cmd(Stubborn, mark) // an argument, so that the proof can fail
		cmd.Secrets = map[string]driver.Secret{"CANARY": driver.NewSecret(canarySecret)}
		p, err := t.background(s, cmd)
		if err != nil {
			return err
		}
		lines, err := t.say(s, Cmdlines)
		if err != nil {
			return err
		}
		if !strings.Contains(lines, mark) {
			return fmt.Errorf("not even an argument is seen, so nothing is proved: %.500q", lines)
		}
		if strings.Contains(lines, canarySecret) {
			return errors.New("a neighbour sees it")
		}
		return p.Kill(t)
	})},
}

// labels asks what becomes of the caller's own.
var labels = []Check{
	{Name: "labels: names and values come back as they were given, up to their limits", Func: with(func(t *trial) error {
		spec := t.spec()
		maps.Copy(spec.Labels, map[string]string{
			"empty": "", "a": "b", strings.Repeat("k", 63): strings.Repeat("v", 256), "example.com/a_b-c.D": `!"#$%&'()*+,-./:;<=>?@[\]^_{|}~` + "`", "spaces": "  a  b ", "number": "1", "yes": "true",
		})
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		seen := map[string]driver.Status{"created": s.Status()}
		if t.b.Info().Can(driver.CanList) {
			for st, err := range t.b.List(t, spec.Labels) {
				if err != nil {
					return err
				}
				seen["listed"] = st
			}
			if _, ok := seen["listed"]; !ok {
				return errors.New("it is not found by its labels")
			}
		}
		if t.b.Info().Can(driver.CanAttach) {
			joined, err := t.b.Attach(t, s.Status().ID)
			if err != nil {
				return err
			}
			seen["attached"] = joined.Status()
		}
		for how, st := range seen {
			if len(st.Labels) != len(spec.Labels) || !driver.HasLabels(st.Labels, spec.Labels) {
				return fmt.Errorf("%s, they are %q, not %q", how, st.Labels, spec.Labels)
			}
		}
		return nil
	})},
	{Name: "labels: reserved ones, and what cannot be carried, are refused by name (M106)", Func: with(func(t *trial) error {
		for k, v := range map[string]string{
			"sandboxio.managed": "true", "sandboxio.owner": "x", "Sandboxio.Role": "keeper", "SANDBOXIO.x": "", "": "x", "-a": "x", "a b": "x", "a=b": "x",
			strings.Repeat("k", 64): "x", "long": strings.Repeat("v", 257), "line": "a\nb", "text": "é", "nul": "\x00",
		} {
			spec := t.spec()
			spec.Labels[k] = v
			_, err := t.b.Check(spec)
			if err := wantField(err, driver.CodeInvalid, fmt.Sprintf("labels[%q]", k)); err != nil {
				return err
			}
		}
		return nil
	})},
}
