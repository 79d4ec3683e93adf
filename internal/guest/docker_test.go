//go:build dockertest

package guest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// testUID is the workload's in these tests; each sandbox adds to it.
const testUID = 1 << 21

var (
	engine    *client.Client
	image     string
	binaryDir string
	nextUID   = uint32(testUID)
	uidMu     sync.Mutex
)

func TestMain(m *testing.M) {
	code, err := 1, error(nil)
	defer func() {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}()
	host := os.Getenv("SANDBOXIO_TEST_DOCKER")
	if image = os.Getenv("SANDBOXIO_TEST_IMAGE"); host == "" || image == "" {
		err = fmt.Errorf("these tests need a docker engine and an image: set SANDBOXIO_TEST_DOCKER and SANDBOXIO_TEST_IMAGE")
		return
	}
	if engine, err = client.New(client.WithHost(host)); err != nil {
		return
	}
	if id := os.Getenv("GUEST_TEST_OWN"); id != "" {
		err = own(id)
		return
	}
	if binaryDir, err = os.MkdirTemp("", "sandboxio-guest-"); err != nil {
		return
	}
	defer os.RemoveAll(binaryDir)
	if err = os.Chmod(binaryDir, 0o755); err != nil {
		return
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", filepath.Join(binaryDir, "sandboxio-guest"), "../../cmd/sandboxio-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err = build.Run(); err != nil {
		return
	}
	code = m.Run()
}

// box is a container whose PID 1 is the guest.
type box struct {
	t     testing.TB
	id    string
	uid   uint32
	conn  *attached
	guest *guest.Client
}

// want changes how a box is made.
type want struct {
	boot   guest.Boot // zero fields have defaults
	env    map[string]string
	image  string
	host   func(*container.HostConfig)
	config func(*container.Config)
	silent bool // do not connect
}

// limited is a context that ends a test that hangs.
func limited(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// newBox makes a container as the docker backend does, and connects to it.
func newBox(t testing.TB, w want) *box {
	t.Helper()
	ctx := limited(t, 30*time.Second)
	uidMu.Lock()
	nextUID++
	b := &box{t: t, uid: nextUID}
	uidMu.Unlock()
	boot := w.boot
	boot.UID = b.uid
	if boot.Lifetime == 0 {
		boot.Lifetime = 5 * time.Minute
	}
	boot.Longest = max(boot.Longest, boot.Lifetime)
	if boot.NProc == 0 {
		boot.NProc = 192
	}
	pids := int64(boot.NProc + 64)
	tmpfs := fmt.Sprintf("rw,exec,nosuid,nodev,size=64m,uid=%d,gid=%d,mode=0755", b.uid, b.uid)
	cfg := &container.Config{
		Image: image, User: "0:0", Entrypoint: []string{guest.Binary}, Cmd: boot.Args(), WorkingDir: "/",
		OpenStdin: boot.Owned, StdinOnce: boot.Owned, AttachStdin: boot.Owned, AttachStdout: boot.Owned, AttachStderr: boot.Owned,
		Labels: map[string]string{"sandboxio-test": os.Getenv("SANDBOXIO_TEST_RUN")},
	}
	host := &container.HostConfig{
		NetworkMode: "none", LogConfig: container.LogConfig{Type: "none"}, CapDrop: []string{"ALL"}, CapAdd: []string{"SETUID", "SETGID", "KILL"},
		SecurityOpt: []string{"no-new-privileges:true"}, ReadonlyRootfs: true, CgroupnsMode: container.CgroupnsModePrivate,
		Tmpfs:     map[string]string{"/work": tmpfs, "/tmp": tmpfs, "/run": tmpfs},
		Mounts:    []mount.Mount{{Type: mount.TypeBind, Source: binaryDir, Target: guest.Dir, ReadOnly: true}},
		Resources: container.Resources{Memory: 512 << 20, MemorySwap: 512 << 20, PidsLimit: &pids},
	}
	if w.image != "" {
		cfg.Image = w.image
	}
	if w.config != nil {
		w.config(cfg)
	}
	if w.host != nil {
		w.host(host)
	}
	made, err := engine.ContainerCreate(ctx, client.ContainerCreateOptions{Config: cfg, HostConfig: host})
	if err != nil {
		t.Fatal(err)
	}
	b.id = made.ID
	t.Cleanup(b.remove)
	if boot.Owned {
		res, err := engine.ContainerAttach(ctx, b.id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
		if err != nil {
			t.Fatal(err)
		}
		b.conn = attach(res.Conn)
	}
	if _, err := engine.ContainerStart(ctx, b.id, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	if w.silent {
		return b
	}
	if boot.Owned {
		b.guest, err = guest.Connect(ctx, b.conn, guest.Options{Backend: "docker", Sandbox: b.id, Configure: true, Env: w.env})
	} else {
		b.guest, err = b.join(guest.Options{Backend: "docker", Sandbox: b.id, Configure: true, Env: w.env})
	}
	if err != nil {
		t.Fatalf("%v; PID 1 said %q", err, b.conn.said())
	}
	return b
}

// join comes by the bridge.
func (b *box) join(opts guest.Options) (*guest.Client, error) {
	b.t.Helper()
	ctx := limited(b.t, 20*time.Second)
	made, err := engine.ExecCreate(ctx, b.id, client.ExecCreateOptions{User: "0:0", AttachStdin: true, AttachStdout: true, AttachStderr: true, WorkingDir: "/", Cmd: guest.BridgeArgs()})
	if err != nil {
		return nil, err
	}
	res, err := engine.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, err
	}
	return guest.Connect(ctx, attach(res.Conn), opts)
}

func (b *box) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := engine.ContainerRemove(ctx, b.id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil && !strings.Contains(err.Error(), "No such container") {
		b.t.Errorf("removing the container: %v", err)
	}
}

// ended waits for PID 1's end and returns its exit status.
func (b *box) ended(within time.Duration) int64 {
	b.t.Helper()
	ctx := limited(b.t, within)
	w := engine.ContainerWait(ctx, b.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case r := <-w.Result:
		return r.StatusCode
	case err := <-w.Error:
		b.t.Fatalf("the sandbox did not end: %v", err)
	}
	return -1
}

// top lists the programs that run in the container, as the host sees them,
// without their pids, which are like any argument at times.
func (b *box) top() string {
	b.t.Helper()
	res, err := engine.ContainerTop(limited(b.t, 10*time.Second), b.id, client.ContainerTopOptions{Arguments: []string{"-eo", "pid,args"}})
	if err != nil {
		b.t.Fatal(err)
	}
	var out strings.Builder
	for _, p := range res.Processes {
		fmt.Fprintln(&out, " "+strings.Join(p[1:], " "))
	}
	return out.String()
}

// result is what a program did.
type result struct {
	exit           driver.Exit
	stdout, stderr string
	took           time.Duration
}

// try runs a program to its end.
func (b *box) try(cmd driver.Cmd, stdin io.Reader) (result, error) {
	b.t.Helper()
	return runOn(limited(b.t, 60*time.Second), b.guest, cmd, stdin)
}

func runOn(ctx context.Context, c *guest.Client, cmd driver.Cmd, stdin io.Reader) (result, error) {
	if cmd.Timeout == 0 {
		cmd.Timeout = time.Minute
	}
	cmd.Stdin = stdin != nil
	start := time.Now()
	p, err := c.Start(ctx, cmd)
	if err != nil {
		return result{}, err
	}
	if stdin != nil {
		go func() { _, _ = io.Copy(p.Stdin(), stdin); _ = p.Stdin().Close() }()
	}
	var r result
	var out, errs bytes.Buffer
	for {
		chunk, err := p.Recv(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r, err
		}
		if chunk.Stream == driver.Stderr {
			errs.Write(chunk.Data)
		} else {
			out.Write(chunk.Data)
		}
	}
	r.exit, err = p.Wait(ctx)
	r.stdout, r.stderr, r.took = out.String(), errs.String(), time.Since(start)
	return r, err
}

// run is try for a program that must be started.
func (b *box) run(args ...string) result {
	b.t.Helper()
	r, err := b.try(driver.Cmd{Args: args}, nil)
	if err != nil {
		b.t.Fatalf("%q: %v", args, err)
	}
	return r
}

// attached makes an attached container one stream.
type attached struct {
	net.Conn
	r    *bufio.Reader
	left int
	mu   sync.Mutex
	errs []byte
}

func attach(conn net.Conn) *attached {
	return &attached{Conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
}

func (a *attached) Read(b []byte) (int, error) {
	for a.left == 0 {
		var head [8]byte
		if _, err := io.ReadFull(a.r, head[:]); err != nil {
			return 0, io.EOF
		}
		n := int(binary.BigEndian.Uint32(head[4:]))
		if head[0] == 1 {
			a.left = n
			continue
		}
		said := make([]byte, n)
		if _, err := io.ReadFull(a.r, said); err != nil {
			return 0, io.EOF
		}
		a.mu.Lock()
		a.errs = append(a.errs, said...)
		a.mu.Unlock()
	}
	n, err := a.r.Read(b[:min(len(b), a.left)])
	a.left -= n
	return n, err
}

func (a *attached) said() string {
	if a == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return string(a.errs)
}

// eventually polls until ok, or fails.
func eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("within %v: %s", within, what)
		}
	}
}
