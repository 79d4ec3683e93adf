package docker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	// lookFresh is how long what was seen of the engine's host is good for. Its
	// own addresses change seldom, and are private more often than not, which
	// are protected anyway.
	lookFresh = time.Minute
	lookLimit = 20 * time.Second
)

// surroundings are what is around a gateway on this engine: what it protects,
// and whom it may ask for names.
type surroundings struct {
	host    boot.Host
	protect []driver.Range
	taken   []netip.Prefix // by networks that are there
}

// lookCache remembers the last look at the host, for one engine.
type lookCache struct {
	mu   sync.Mutex
	host boot.Host
	at   time.Time
}

// surroundings looks around: at the engine's networks each time, at its host
// once in a while.
func (b *Backend) surroundings(ctx context.Context, cli *client.Client, o order, w *way) (surroundings, error) {
	var s surroundings
	var err error
	if s.host, err = b.look(ctx, cli, o, w); err != nil {
		return s, during("looking at the network of the engine's host", err)
	}
	for _, a := range s.host.Addrs {
		s.protect = append(s.protect, driver.Range{Prefix: netip.PrefixFrom(a, a.BitLen()), Class: driver.ClassPrivate})
	}
	s.taken = append(s.taken, s.host.Routes...)
	res, err := cli.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		return s, err
	}
	for _, n := range res.Items {
		for _, c := range n.IPAM.Config {
			if !c.Subnet.IsValid() || !c.Subnet.Addr().Is4() {
				continue
			}
			s.taken = append(s.taken, c.Subnet)
			if n.ID != w.uplink {
				s.keep(c.Subnet.Masked(), b.opts.pool())
			}
		}
		// Others' sandboxes come and go while this one lives.
		if p, err := netip.ParsePrefix(n.Labels[labelPool]); err == nil && n.Labels[driver.LabelManaged] == "true" && p.Addr().Is4() {
			s.keep(p.Masked(), b.opts.pool())
		}
	}
	return s, nil
}

// keep protects a range, once, and not again what is in our pool, which is
// protected as a whole.
func (s *surroundings) keep(p, pool netip.Prefix) {
	if pool.Bits() <= p.Bits() && pool.Contains(p.Addr()) {
		return
	}
	if r := (driver.Range{Prefix: p, Class: driver.ClassPrivate}); !slices.Contains(s.protect, r) {
		s.protect = append(s.protect, r)
	}
}

// look starts the gateway's program in the host's network namespace, without
// any capability, to say what it sees there: an engine tells nobody its own
// addresses.
func (b *Backend) look(ctx context.Context, cli *client.Client, o order, w *way) (boot.Host, error) {
	b.looked.mu.Lock()
	defer b.looked.mu.Unlock()
	if !b.looked.at.IsZero() && time.Since(b.looked.at) < lookFresh {
		return b.looked.host, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	h, err := b.lookOnce(ctx, cli, o, w)
	if err == nil {
		b.looked.host, b.looked.at = h, time.Now()
	}
	return h, err
}

func (b *Backend) lookOnce(ctx context.Context, cli *client.Client, o order, w *way) (_ boot.Host, err error) {
	no, pids := false, int64(gatewayPIDs)
	id, warnings, err := b.createContainer(ctx, cli, "create", client.ContainerCreateOptions{
		Name: namePrefix + "look-" + nonce(),
		Config: &container.Config{Image: w.image, User: "65534:65534", Entrypoint: []string{boot.Binary}, Cmd: boot.HostArgs(), WorkingDir: "/",
			Labels:       o.partLabels(driver.RoleHelper, w.set), // it goes with the sandbox, should nobody be left to remove it
			AttachStdout: true, AttachStderr: true, Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}},
		HostConfig: &container.HostConfig{
			NetworkMode: "host", LogConfig: container.LogConfig{Type: "none"}, CapDrop: []string{"ALL"}, ReadonlyRootfs: true, AutoRemove: true,
			SecurityOpt: []string{"no-new-privileges:true", "seccomp=" + seccompProfile}, IpcMode: container.IPCModePrivate, CgroupnsMode: container.CgroupnsModePrivate, Init: &no,
			Resources: container.Resources{Memory: lookMemory, MemorySwap: lookMemory, CPUPeriod: cpuPeriod, CPUQuota: cpuPeriod, PidsLimit: &pids, Ulimits: []*units.Ulimit{{Name: "core"}}},
		},
	})
	if err != nil {
		return boot.Host{}, err
	}
	defer func() {
		if rerr := b.remove(context.WithoutCancel(ctx), cli, id); rerr != nil {
			err = errors.Join(err, leaked("create", id, rerr))
		}
	}()
	if err := refuseWarnings(warnings); err != nil {
		return boot.Host{}, err
	}
	if err := b.verifyGateway(ctx, cli, w.image, id); err != nil {
		return boot.Host{}, err
	}
	l, err := listen(ctx, cli, id, false)
	if err != nil {
		return boot.Host{}, err
	}
	defer l.close()
	if _, err := cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return boot.Host{}, err
	}
	line, err := l.first(ctx)
	switch {
	case err != nil:
		return boot.Host{}, err
	case line.Host == nil:
		return boot.Host{}, errors.New("it said something else")
	}
	return *line.Host, nil
}

const lookMemory = 64 << 20

// upstream is the name server that a gateway asks: the operator's choice, else
// the host's own, else the engine, which asks on the host.
func (b *Backend) upstream(h boot.Host) netip.AddrPort {
	if ap, err := parseServer(b.opts.DNS); err == nil {
		return ap
	}
	for _, a := range h.Servers {
		if a.Is4() && !a.IsLoopback() && !a.IsUnspecified() {
			return netip.AddrPortFrom(a, 53)
		}
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 11}), 53)
}

// lines reads what a gateway writes to its stdout, until its end.
type lines struct {
	conn *stream
	said chan boot.Line // Ready, Refused or Host, one
	done chan struct{}

	mu       sync.Mutex
	denied   boot.Denied
	heard    bool          // it was told
	asked    int           // questions written
	answered int           // of them
	news     chan struct{} // closed, and made anew, when denied was heard
}

// listen attaches to a container of the gateway's program before it is started,
// holding its stdin if it is owned.
func listen(ctx context.Context, cli *client.Client, id string, owned bool) (*lines, error) {
	res, err := cli.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: owned, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	l := &lines{conn: newStream(res.Conn), said: make(chan boot.Line, 1), done: make(chan struct{}), news: make(chan struct{})}
	go l.read()
	return l, nil
}

func (l *lines) read() {
	defer close(l.done)
	s := bufio.NewScanner(l.conn)
	s.Buffer(nil, boot.MaxLine)
	for s.Scan() {
		line, err := boot.ParseLine(s.Bytes())
		switch {
		case err != nil:
			return
		case line.Denied != nil:
			l.mu.Lock()
			l.denied, l.heard, l.answered = *line.Denied, true, line.Asked
			close(l.news)
			l.news = make(chan struct{})
			l.mu.Unlock()
		default:
			select {
			case l.said <- line:
			default: // it has said it already
			}
		}
	}
}

// ask has an owned gateway tell what it has refused by now, and is false if it
// has ended without a word of it: in good order it tells at its end, too.
func (l *lines) ask(ctx context.Context) (boot.Denied, bool, error) {
	l.mu.Lock()
	until, _ := ctx.Deadline()
	_ = l.conn.conn.SetWriteDeadline(until)
	_, err := l.conn.Write([]byte{boot.Question})
	if err == nil {
		l.asked++
	}
	mine := l.asked
	l.mu.Unlock()
	if err != nil {
		select {
		case <-l.done:
		case <-ctx.Done():
			return boot.Denied{}, false, err
		}
	}
	return l.hear(ctx, func() bool { return l.answered >= mine })
}

// hear waits until what was heard is enough, or the last, if anything was.
func (l *lines) hear(ctx context.Context, enough func() bool) (boot.Denied, bool, error) {
	for {
		l.mu.Lock()
		denied, ok, news := l.denied, enough(), l.news
		l.mu.Unlock()
		if ok {
			return denied, true, nil
		}
		select {
		case <-news:
		case <-l.done:
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.denied, l.heard, nil
		case <-ctx.Done():
			return boot.Denied{}, false, ctx.Err()
		}
	}
}

// first waits for what a gateway says first.
func (l *lines) first(ctx context.Context) (boot.Line, error) {
	select {
	case line := <-l.said:
		if line.Refused != nil {
			return line, line.Refused.Err()
		}
		return line, nil
	case <-l.done:
		select {
		case line := <-l.said:
			if line.Refused != nil {
				return line, line.Refused.Err()
			}
			return line, nil
		default:
		}
		err := errors.New("the gateway ended before it was ready")
		if said := l.conn.said(); said != "" {
			err = fmt.Errorf("%w; it said: %s", err, said)
		}
		return boot.Line{}, err
	case <-ctx.Done():
		return boot.Line{}, ctx.Err()
	}
}

// close lets go of the gateway, which ends if it was owned.
func (l *lines) close() {
	_ = l.conn.Close()
	<-l.done
}
