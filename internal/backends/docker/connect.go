package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	// oldestAPI is Engine 20.10's. Below it, a private cgroup namespace does
	// not exist.
	oldestAPI = "1.41"

	// pingLimit bounds each look at a socket: a hung engine must not hang us.
	pingLimit = 3 * time.Second

	// maxSkew between the clocks of the engine and of this machine.
	maxSkew = 30 * time.Second
)

// connect gives the client of the engine that answered, looking for one on
// the first call. A failure is not remembered: the engine may come up.
func (b *Backend) connect(ctx context.Context) (*client.Client, error) {
	select {
	case b.connecting <- struct{}{}:
		defer func() { <-b.connecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b.closed.Load() {
		return nil, &driver.Error{Code: driver.CodeInvalid, Op: "connect", Backend: Name, Err: errors.New("the backend is closed")}
	}
	if cli := b.cli.Load(); cli != nil {
		return cli, nil
	}
	list, err := b.candidates()
	if err != nil {
		return nil, fail(ctx, "connect", "", err)
	}
	var tried []string
	var first error
	for _, e := range list {
		cli, err := dial(ctx, e)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			b.endpoint.Store(&e)
			b.cli.Store(cli)
			return cli, nil
		}
		tried = append(tried, fmt.Sprintf("%s (%s): %s", e.host, e.source, cause(err)))
		// Among sockets that do not exist, the one that exists and refuses
		// is the interesting one.
		if first == nil || codeOf(first) == driver.CodeUnavailable && codeOf(err) != driver.CodeUnavailable {
			first = err
		}
	}
	code := codeOf(first)
	if e, ok := errors.AsType[*driver.Error](first); ok {
		code = e.Code
	}
	hint := hintOf(code, first)
	if e, ok := errors.AsType[*driver.Error](first); ok && e.Hint != "" {
		hint = e.Hint
	}
	if hint == "" || code == driver.CodeUnavailable {
		hint = hintStart
	}
	where := "at " + strings.Join(tried, "")
	if len(tried) > 1 {
		where = "anywhere; tried " + strings.Join(tried, "; ")
	}
	return nil, &driver.Error{Code: code, Op: "connect", Backend: Name, Hint: hint, Err: errors.New("no Docker Engine answers " + where)}
}

// cause is why an engine cannot be reached, once: the client says where it
// looked, what to do and why, each in words of its own.
func cause(err error) string {
	if e, ok := errors.AsType[*driver.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err.Error()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("something listens but does not answer within %v", pingLimit)
	case strings.Contains(err.Error(), "Is the docker daemon running?"):
		return "nobody listens there"
	}
	return err.Error()
}

// dial makes a client for one endpoint and keeps it only if the engine
// answers and speaks a version that both sides know.
func dial(ctx context.Context, e endpoint) (_ *client.Client, err error) {
	opts := []client.Opt{client.WithHost(e.host), client.WithUserAgent("sandboxio")}
	if e.certs != "" {
		opts = append(opts, client.WithTLSClientConfig(filepath.Join(e.certs, "ca.pem"), filepath.Join(e.certs, "cert.pem"), filepath.Join(e.certs, "key.pem")))
	}
	cli, err := client.New(opts...)
	if err != nil {
		return nil, driver.Invalid("host", err.Error(), "check the address and the certificates")
	}
	defer func() {
		if err != nil {
			_ = cli.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	pong, err := cli.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("something listens but does not answer within %v: %w", pingLimit, err)
		}
		return nil, err
	}
	if v := cli.ClientVersion(); versions.LessThan(v, oldestAPI) {
		return nil, &driver.Error{Code: driver.CodeUnsupported, Hint: "upgrade Docker Engine to 20.10 or later",
			Err: fmt.Errorf("the engine's newest API is %s, below %s", v, oldestAPI)}
	}
	if pong.OSType != "" && pong.OSType != "linux" {
		return nil, &driver.Error{Code: driver.CodeUnsupported, Hint: "switch the engine to Linux containers",
			Err: fmt.Errorf("the engine runs %s containers", pong.OSType)}
	}
	return cli, nil
}

// able asks once whether the engine can enforce caps and filters at all: an
// engine that cannot only warns, and creates the container without them.
func (b *Backend) able(ctx context.Context, cli *client.Client) (*host, error) {
	if h := b.host.Load(); h != nil {
		return h, nil
	}
	before := time.Now()
	res, err := cli.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, err
	}
	h, err := hostOf(res.Info, before.Add(time.Since(before)/2))
	if err = driver.Join(err, b.opts.registered(res.Info)); err != nil {
		return nil, err
	}
	b.host.Store(h)
	return h, nil
}

// host is what does not change while an engine runs.
type host struct {
	skew   time.Duration // engine's clock minus ours
	kernel string
}

func hostOf(info system.Info, at time.Time) (*host, error) {
	lacks := func(what, fix string) error {
		return &driver.Error{Code: driver.CodeUnsupported, Hint: fix, Err: fmt.Errorf("the engine %s", what)}
	}
	var errs []error
	for _, c := range []struct {
		ok        bool
		what, fix string
	}{
		{info.MemoryLimit, "memory", "boot its host with cgroup_enable=memory"},
		{info.SwapLimit, "swap", "boot its host with swapaccount=1, or with cgroup v2"},
		{info.PidsLimit, "pids", "enable the pids cgroup controller on its host"},
		{info.CPUCfsQuota, "cpu", "use a kernel with CONFIG_CFS_BANDWIDTH on its host"},
	} {
		if !c.ok {
			errs = append(errs, lacks("cannot enforce the "+c.what+" cap", c.fix))
		}
	}
	if !securityOption(info, "seccomp") {
		errs = append(errs, lacks("has no seccomp", "use a kernel and an engine built with seccomp"))
	}
	// Under a remapped or rootless engine a container has 65536 ids, too few
	// for the guest's marks and for an id of its own for each sandbox.
	for _, mode := range []string{"userns", "rootless"} {
		if securityOption(info, mode) {
			errs = append(errs, lacks("remaps user ids ("+mode+"), which leaves none to tell processes apart by", "use an engine without userns-remap, not rootless"))
		}
	}
	if err := driver.Join(errs...); err != nil {
		return nil, err
	}
	now, err := time.Parse(time.RFC3339Nano, info.SystemTime)
	if err != nil {
		return nil, fmt.Errorf("the engine's clock: %w", err)
	}
	return &host{skew: now.Sub(at), kernel: info.KernelVersion}, nil
}

func securityOption(info system.Info, name string) bool {
	for _, o := range info.SecurityOptions {
		if o == name || o == "name="+name || strings.HasPrefix(o, "name="+name+",") {
			return true
		}
	}
	return false
}

// Now is the engine's clock, by which deadlines are judged.
func (b *Backend) Now(ctx context.Context) (time.Time, error) {
	cli, err := b.connect(ctx)
	if err != nil {
		return time.Time{}, err
	}
	res, err := cli.Info(ctx, client.InfoOptions{})
	if err != nil {
		return time.Time{}, fail(ctx, "clock", "", err)
	}
	now, err := time.Parse(time.RFC3339Nano, res.Info.SystemTime)
	if err != nil {
		return time.Time{}, fail(ctx, "clock", "", fmt.Errorf("the engine's clock: %w", err))
	}
	return now, nil
}

// keeperSocket is the engine's socket as the engine's own host names it.
func (b *Backend) keeperSocket() string {
	if b.opts.KeeperSocket != "" {
		return b.opts.KeeperSocket
	}
	e := b.endpoint.Load()
	if e == nil {
		return ""
	}
	socket, local := strings.CutPrefix(e.host, "unix://")
	if !local {
		return ""
	}
	if runtime.GOOS != "linux" {
		return "/var/run/docker.sock" // the engine's host is a virtual machine
	}
	return socket
}
