//go:build dockertest

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest/mutant"
)

func TestConformance(t *testing.T) {
	drivertest.Run(t, harness(t))
}

// TestMutants lets the suite loose on this very backend, telling lies. Each
// must fail exactly its own checks: so the suite sees what it says it sees, on
// a real engine.
func TestMutants(t *testing.T) {
	lies := []string{
		"it tells the truth",
		"it leaks on kill",
		"it kills no child",
		"it drops stderr",
		"it calls every sandbox a virtual machine",
		"it ignores the caps",
	}
	h := harness(t)
	h.Parallel = 4 // each mutant stands before the whole suite
	for _, m := range append(mutant.All(), mutant.Honest()) {
		if !slices.Contains(lies, m.Name) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			b, err := h.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := mutant.Judge(t.Context(), b, h, m); err != nil {
				t.Error(err)
			}
			// What a lie left behind ends here, with its owner too.
			for st, err := range b.List(t.Context(), map[string]string{driver.LabelOwner: h.Owner}) {
				if err != nil {
					t.Fatal(err)
				}
				s, err := b.Attach(t.Context(), st.ID)
				if err == nil {
					err = s.Kill(t.Context())
				}
				if err != nil && !errors.Is(err, driver.CodeNotFound) {
					t.Error(err)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func BenchmarkDocker(b *testing.B) {
	drivertest.Bench(b, harness(b))
}

// harness judges this package on the real engine. Its canary is a container on
// the engine's default bridge, where a sandbox whose network was left open
// would be, and its control another one.
func harness(t testing.TB) drivertest.Harness {
	t.Helper()
	b, image := engine(t)
	if t, ok := t.(*testing.T); ok { // benchmarks put no schedules
		withKeeper(t, b)
	}
	cli := raw(t, b)
	owner := "conformance-" + realSpec(t, image).Token

	canary := bystander(t, cli, image, `import socket
s = socket.create_server(("", 8443))
while True:
    c, _ = s.accept()
    c.sendall(b"alive\n")
    c.close()`)
	control := bystander(t, cli, image, "import time\nwhile True: time.sleep(60)")
	info, err := cli.ContainerInspect(t.Context(), canary, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort(info.Container.NetworkSettings.Networks["bridge"].IPAddress.String(), "8443")
	eventually(t, 10*time.Second, "the canary answers", func() bool { return answers(t.Context(), cli, control, addr) == nil })

	return drivertest.Harness{
		Open:   func(ctx context.Context) (driver.Backend, error) { return Open(ctx, b.opts) },
		Owner:  owner,
		Image:  image,
		Canary: drivertest.Canary{Addr: addr, Control: func(ctx context.Context) error { return answers(ctx, cli, control, addr) }},
		Leftovers: func(ctx context.Context) ([]string, error) {
			return leftovers(ctx, cli, owner)
		},
		Traces: func(ctx context.Context, id string) ([]byte, error) { return traces(ctx, cli, image, id) },
		// The tests' engine is on the tests' host.
		Kernel: func(context.Context) (string, error) {
			id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
			return string(id), err
		},
	}
}

// bystander runs Python in a container that is none of ours, on the default
// bridge.
func bystander(t testing.TB, cli *client.Client, image, script string) string {
	t.Helper()
	made, err := cli.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config:     looseConfig(image, "python3", "-c", script),
		HostConfig: &container.HostConfig{NetworkMode: "bridge"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := cli.ContainerRemove(cleanup(t), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			t.Error(err)
		}
	})
	if _, err := cli.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// answers fetches from addr with the suite's own probe, in a container that no
// policy of ours applies to.
func answers(ctx context.Context, cli *client.Client, in, addr string) error {
	made, err := cli.ExecCreate(ctx, in, client.ExecCreateOptions{Cmd: drivertest.Shell().Argv(drivertest.Fetch, addr), AttachStdout: true})
	if err != nil {
		return err
	}
	stream, err := cli.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer stream.Close()
	text := make([]byte, 1024)
	n, _ := stream.Reader.Read(text)
	for {
		st, err := cli.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
		if err != nil {
			return err
		}
		if !st.Running {
			if st.ExitCode != 0 || !strings.Contains(string(text[:n]), "alive") {
				return fmt.Errorf("exit %d: %q", st.ExitCode, text[:n])
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leftovers lists all that the suite made: sandboxes of its owner, keepers of
// its schedules, and volumes of either.
func leftovers(ctx context.Context, cli *client.Client, owner string) ([]string, error) {
	all, err := cli.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, err
	}
	var left []string
	for _, c := range all.Items {
		if c.Labels[driver.LabelOwner] == owner || c.Labels[driver.LabelRole] == driver.RoleKeeper && strings.HasPrefix(c.Labels[driver.LabelReaper], "dt") {
			left = append(left, fmt.Sprintf("container %v %s", c.Names, c.State))
		}
	}
	volumes, err := cli.VolumeList(ctx, client.VolumeListOptions{})
	if err != nil {
		return nil, err
	}
	for _, v := range volumes.Items {
		if v.Labels[driver.LabelOwner] == owner {
			left = append(left, "volume "+v.Name)
		}
	}
	return left, nil
}

// traces is all that the engine shows of a sandbox: its configuration, its
// logs, its processes and its image's history.
func traces(ctx context.Context, cli *client.Client, image, id string) ([]byte, error) {
	info, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, err
	}
	top, err := cli.ContainerTop(ctx, id, client.ContainerTopOptions{})
	if err != nil {
		return nil, err
	}
	history, err := cli.ImageHistory(ctx, image)
	if err != nil {
		return nil, err
	}
	said, _ := logs(ctx, cli, id, 1000) // there are none: log driver none
	return json.Marshal([]any{info, top, history, said})
}
