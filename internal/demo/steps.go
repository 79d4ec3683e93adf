package demo

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func (d *demo) snapshot(ctx context.Context) (err error) {
	d.head("What the engine holds before")
	if d.engine.before, err = d.engine.objects(ctx); err != nil {
		return err
	}
	d.say("  %d containers, networks and volumes, whoever made them\n", len(d.engine.before))
	return nil
}

const canary = `import socket, sys
s = socket.create_server(("0.0.0.0", 8080))
while True:
    c, _ = s.accept()
    c.sendall(sys.argv[1].encode())
    c.close()`

const probe = `import socket, sys
try:
    s = socket.create_connection((sys.argv[1], 8080), 5)
    print("reached", s.recv(100).decode())
except OSError as e:
    print("refused:", e)`

func (d *demo) egress(ctx context.Context) error {
	d.head("The network is closed, and the proof can fail")
	nonce := "canary-" + strings.ToLower(rand.Text()[:8])
	name := "sandboxio-demo-" + nonce
	if err := d.engine.network(ctx, name); err != nil {
		return err
	}
	id, err := d.engine.run(ctx, d.Image, name, []string{"python3", "-c", canary, nonce})
	if err != nil {
		return err
	}
	addr, err := d.engine.address(ctx, id, name)
	if err != nil {
		return err
	}
	argv := []string{"python3", "-c", probe, addr.String()}

	// The control first: an ordinary container, allowed onto the network, runs
	// the very same program. The canary takes a moment to listen.
	var got string
	if _, err := until(ctx, 15*time.Second, func() (bool, error) {
		control, err := d.engine.run(ctx, d.Image, name, argv)
		if err != nil {
			return false, err
		}
		got, err = d.engine.finish(ctx, control)
		return strings.Contains(got, nonce), err
	}); err != nil {
		return fmt.Errorf("the control did not reach the canary, so nothing is proven: %w\n%s", err, got)
	}
	d.say("  control, on the canary's network:  %s", got)

	rt, spec, err := d.runtime(ctx)
	if err != nil {
		return err
	}
	res, err := rt.Run(ctx, spec, sandbox.Cmd{Args: argv})
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return err
	}
	out := string(res.Stdout)
	d.say("  sandbox, same program and address: %s", out)
	if !strings.Contains(out, "refused") || strings.Contains(out, nonce) {
		return errors.New("the sandbox reached the canary")
	}
	return d.engine.clean(ctx)
}

// ending is a way for a creator to end without closing anything.
type ending struct {
	name   string
	signal os.Signal
}

func (d *demo) orphans(ctx context.Context) error {
	d.head("Creators die: one by kill -9, one is stopped for ever")
	manifest := filepath.Join(d.terraform.dir, "manifest.json")
	if err := os.WriteFile(manifest, d.manifest, 0o600); err != nil {
		return err
	}
	for _, end := range endings {
		if err := d.orphan(ctx, manifest, end.name, end.signal); err != nil {
			return fmt.Errorf("%s: %w", end.name, err)
		}
	}
	return nil
}

func (d *demo) orphan(ctx context.Context, manifest, name string, signal os.Signal) error {
	cmd := exec.CommandContext(ctx, d.CLI, "demo", "creator", "--backend", d.Backend, "--manifest", manifest)
	cmd.Stderr = d.Out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { // a stopped one too
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the creator made no sandbox: %w", err)
	}
	var c created
	if err := json.Unmarshal(line, &c); err != nil {
		return err
	}
	running := 0
	if _, err := until(ctx, 10*time.Second, func() (_ bool, err error) {
		running, err = d.engine.processes(ctx, c.ID)
		return running >= 4, err // the guest, and three that do not want to die
	}); err != nil {
		return fmt.Errorf("only %d processes run in the sandbox, nothing would be proven: %w", running, err)
	}
	if err := cmd.Process.Signal(signal); err != nil {
		return err
	}
	took, err := until(ctx, 15*time.Second, func() (bool, error) {
		n, err := d.engine.processes(ctx, c.ID)
		return n == 0, err
	})
	if err != nil {
		return fmt.Errorf("processes of the sandbox survive their creator: %w", err)
	}
	gone, err := until(ctx, 15*time.Second, func() (bool, error) {
		s, err := d.engine.state(ctx, c.ID)
		return s == "", err
	})
	if err != nil {
		return fmt.Errorf("the container is still there: %w", err)
	}
	d.say("  %-10s %d processes, 0 after %.1f s, container gone after %.1f s\n", name, running, took.Seconds(), (took + gone).Seconds())
	return nil
}

func (d *demo) expired(ctx context.Context) error {
	d.head("A paused sandbox cannot end itself: the reaper schedule does it")
	rt, spec, err := d.runtime(ctx)
	if err != nil {
		return err
	}
	spec.Detached, spec.Lifetime = true, 3*time.Second
	sb, err := rt.Create(ctx, spec)
	if err != nil {
		return err
	}
	if _, err := d.engine.c.ContainerPause(ctx, sb.ID(), client.ContainerPauseOptions{}); err != nil {
		return errors.Join(err, sb.Close())
	}
	took, err := until(ctx, 40*time.Second, func() (bool, error) {
		s, err := d.engine.state(ctx, sb.ID())
		if err == nil && s != "" && s != "paused" && s != "removing" && s != "exited" {
			err = fmt.Errorf("it is %s, not paused", s)
		}
		return s == "", err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("the reaper did not remove it: %w", err), sb.Close())
	}
	d.say("  lifetime 3 s, paused at once, removed by the keeper %.1f s after its creation\n", took.Seconds())
	return nil
}

func (d *demo) nothingLeft(ctx context.Context) error {
	d.head("What the engine holds after: all containers, networks and volumes, compared")
	diff, err := d.engine.diff(ctx)
	if err != nil {
		return err
	}
	if diff == "" {
		d.say("  no difference, but for the helper volume sandboxio-guest-…\n")
		return nil
	}
	d.show(diff)
	if strings.Contains("\n"+diff, "\n+") {
		return errors.New("something is left (unless somebody else uses this engine at the same time)")
	}
	d.say("  nothing is left; what is missing went by itself, others use this engine\n")
	return nil
}
