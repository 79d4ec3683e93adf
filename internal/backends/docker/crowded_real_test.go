//go:build dockertest

package docker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The guest's share of the PID cap is its own: a workload that has used up
// what it may have keeps nobody out.
func TestRealAFullSandboxCanBeMadeReachedAndEnded(t *testing.T) {
	b, image := engine(t)
	spec := realSpec(t, image)
	spec.Resources.PIDs = 32 // the least there is
	sb := create(t, b, spec)
	p, err := sb.Start(t.Context(), driver.Cmd{Args: []string{"sh", "-c", "while :; do sleep 300 & done"}, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the workload has all it may have", func() bool {
		top, err := raw(t, b).ContainerTop(t.Context(), sb.Status().ID, client.ContainerTopOptions{})
		return err == nil && len(top.Processes) >= 32
	})
	other, err := Open(t.Context(), b.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	joined, err := other.Attach(t.Context(), sb.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	// PID 1 and the bridge have room; the probe runs as the workload does, and
	// a sandbox that cannot be measured is not handed over.
	if _, err := joined.Files().Stat(t.Context(), "/work"); !errors.Is(err, driver.CodeExhausted) {
		t.Errorf("joining a full sandbox: %v", err)
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if out := sh(t, sb, "echo again"); out != "again\n" {
		t.Errorf("after the kill: %q", out)
	}
	if _, err := joined.Files().Stat(t.Context(), "/work"); err != nil || joined.Status().Isolation != driver.Container {
		t.Errorf("joining it then: %v, %+v", err, joined.Status())
	}
}

// Whoever may use the engine can make a container that looks like one of
// ours. Its labels say nothing; the first look inside does.
func TestRealALookalikeIsRefusedAtTheFirstLook(t *testing.T) {
	b, image := engine(t)
	o := testOrder(t, realSpec(t, image))
	cli := raw(t, b)
	h, err := b.findHelper(t.Context(), cli)
	if err != nil {
		t.Fatal(err)
	}
	img, err := b.inspectImage(t.Context(), cli, image)
	if err != nil {
		t.Fatal(err)
	}
	o.image, o.helper = img, h
	o.spec.Detached = true
	o.created = time.Now()
	o.deadline = o.created.Add(time.Minute).Truncate(time.Second)
	o.expires = o.deadline.Add(time.Second)
	opts := o.options()
	opts.HostConfig.Binds = []string{"/:/host"}
	res, err := cli.ContainerCreate(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := cli.ContainerRemove(cleanup(t), res.ID, client.ContainerRemoveOptions{Force: true})
		if err != nil && !absent(err) {
			t.Error(err)
		}
	})
	if _, err := cli.ContainerStart(t.Context(), res.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	sb, err := b.Attach(t.Context(), res.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sb.Files().Stat(t.Context(), "/work")
	if !errors.Is(err, driver.CodeUnsupported) || !strings.Contains(err.Error(), "/host") {
		t.Errorf("got %v, want a refusal that names %s's neighbour /host", err, guest.Dir)
	}
	if sb.Status().Isolation != driver.Unverified {
		t.Errorf("measured %v", sb.Status().Isolation)
	}
}
