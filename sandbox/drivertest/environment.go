package drivertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// awkward are values that transports are known to break.
var awkward = map[string]string{
	"EQUALS": "b=c=d", "NEWLINE": "x\ny\n", "EMPTY": "", "QUOTES": `"'` + "`" + `\`, "DOLLAR": "$(id) $HOME ${X}", "SPACE": "  a  ", "BYTES": "\xff\xfe\x01", "UNICODE": "é",
}

var environment = []Check{
	{Name: "env: values arrive byte for byte (M100, M101)", Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Env = awkward
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		for k, want := range awkward {
			if got, err := t.say(s, Getenv, k); err != nil || got != want {
				return fmt.Errorf("the sandbox's %s is %q, %v; want %q", k, got, err, want)
			}
			cmd := t.cmd(Getenv, "OF_CMD")
			cmd.Env = map[string]string{"OF_CMD": want}
			if out, err := t.run(s, cmd); err != nil || string(out.stdout) != want {
				return fmt.Errorf("the command's %s is %v, %v; want %q", k, out, err, want)
			}
		}
		return nil
	})},
	{Name: "env: the command's wins over the sandbox's, for that command", Func: with(func(t *trial) error {
		spec := t.spec()
		spec.Env = map[string]string{"WHOSE": "sandbox"}
		s, err := t.createFrom(spec)
		if err != nil {
			return err
		}
		cmd := t.cmd(Getenv, "WHOSE")
		cmd.Env = map[string]string{"WHOSE": "command"}
		if out, err := t.run(s, cmd); err != nil || string(out.stdout) != "command" {
			return fmt.Errorf("%v, %v", out, err)
		}
		if got, err := t.say(s, Getenv, "WHOSE"); err != nil || got != "sandbox" {
			return fmt.Errorf("the next command has %q, %v", got, err)
		}
		return nil
	})},
	{Name: "secrets: they arrive", Func: inside(func(t *trial, s driver.Sandbox) error {
		for _, value := range []string{canarySecret, "two\nlines=", strings.Repeat("x", 100<<10)} {
			cmd := t.cmd(Hash, "CANARY")
			cmd.Secrets = map[string]driver.Secret{"CANARY": driver.NewSecret(value)}
			out, err := t.run(s, cmd)
			if err != nil {
				return err
			}
			if sum := sha256.Sum256([]byte(value)); string(out.stdout) != hex.EncodeToString(sum[:]) {
				return fmt.Errorf("a secret of %d bytes does not arrive: %v", len(value), out)
			}
		}
		return nil
	})},
	{Name: "secrets: they reach that command only", Func: inside(func(t *trial, s driver.Sandbox) error {
		cmd := t.cmd(Hash, "CANARY")
		cmd.Secrets = map[string]driver.Secret{"CANARY": driver.NewSecret(canarySecret)}
		if _, err := t.run(s, cmd); err != nil {
			return err
		}
		out, err := t.run(s, t.cmd(Getenv, "CANARY"))
		if err == nil && (out.exit.Code == 0 || strings.Contains(string(out.stdout), canarySecret)) {
			err = fmt.Errorf("the next command has it")
		}
		return err
	})},
	{Name: "secrets: they show in no status, list, error or trace (M103, M104)", Func: inside(func(t *trial, s driver.Sandbox) error {
		cmd := t.cmd(Hash, "CANARY")
		cmd.Secrets = map[string]driver.Secret{"CANARY": driver.NewSecret(canarySecret)}
		p, err := s.Start(t, cmd)
		if err != nil {
			return err
		}
		var seen bytes.Buffer
		look := func(x any) { fmt.Fprintf(&seen, "%v %+v %#v\n", x, x, x) }
		if _, err := t.drain(p); err != nil {
			return err
		}
		// Three ways of going wrong with a secret at hand.
		for _, wrong := range []func(c *driver.Cmd){
			func(c *driver.Cmd) { c.Args = t.h.Programs.Argv(Missing) },
			func(c *driver.Cmd) { c.Timeout = -1 },
			func(c *driver.Cmd) {
				c.Secrets = map[string]driver.Secret{"CANARY": driver.NewSecret(canarySecret + "\x00")}
			},
			func(c *driver.Cmd) { c.Env = map[string]string{"CANARY": "x"} },
		} {
			c := cmd
			wrong(&c)
			p, err := s.Start(t, c)
			look(err)
			if err == nil {
				out, err := t.drain(p)
				look(err)
				look(string(out.stderr))
			}
		}
		look(s.Status())
		if t.b.Info().Can(driver.CanList) {
			for st, err := range t.b.List(t, nil) {
				look(st)
				look(err)
			}
		}
		if t.h.Traces != nil {
			traces, err := t.h.Traces(t, s.Status().ID)
			if err != nil {
				return fmt.Errorf("traces: %w", err)
			}
			seen.Write(traces)
		}
		err = s.Kill(t)
		look(err)
		_, err = s.Start(t, cmd)
		look(err)
		if i := bytes.Index(seen.Bytes(), []byte(canarySecret)); i >= 0 {
			return fmt.Errorf("it shows: %q", seen.Bytes()[max(0, i-80):min(seen.Len(), i+80)])
		}
		return nil
	})},
}

const canarySecret = "canary-secret-5e0d1f"
