//go:build dockertest

package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// spokenFetch is the suite's probe in the words of HTTP: a gateway lets nothing to a
// host that is not named, and says why in its own words, which do not count.
var spokenFetch = []string{"python3", "-c", `import socket, sys
host, _, port = sys.argv[1].rpartition(':')
try:
    s = socket.create_connection((host.strip('[]').encode(), int(port)), 3)
    s.settimeout(3)
    s.sendall(b"GET / HTTP/1.1\r\nHost: " + sys.argv[1].encode() + b"\r\n\r\n")
    said = s.recv(4096)
except OSError as e: print(e); sys.exit(7)
if b"X-Sandboxio-Reason" in said: said = b""
sys.stdout.buffer.write(said)
sys.exit(0 if said else 7)
`}

// bystander runs Python in a container that is none of ours, on a network of
// that name.
func bystander(t testing.TB, cli *client.Client, image, network, script string) string {
	t.Helper()
	made, err := cli.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config:     looseConfig(image, "python3", "-c", script),
		HostConfig: &container.HostConfig{NetworkMode: container.NetworkMode(network)},
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
	made, err := cli.ExecCreate(ctx, in, client.ExecCreateOptions{Cmd: append(slices.Clone(spokenFetch), addr), AttachStdout: true})
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
	networks, err := cli.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range networks.Items {
		if n.Labels[driver.LabelOwner] == owner {
			left = append(left, "network "+n.Name)
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
