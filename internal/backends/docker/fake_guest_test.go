package docker

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// hijack upgrades the connection and puts a guest on it that greets and
// attests, and knows nothing else.
func (f *fakeEngine) hijack(w http.ResponseWriter, c *fakeContainer) {
	hj, ok := w.(http.Hijacker)
	if !ok {
		return // the answer is to be lost
	}
	conn, buf, err := hj.Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	if f.guestDies {
		_, _ = buf.Reader.ReadByte() // an engine takes what is written to it
		_, _ = conn.Write([]byte{2, 0, 0, 0, 0, 0, 0, 5, 'p', 'a', 'n', 'i', 'c'})
		c.end()
		return
	}
	g := &framed{conn: conn, r: buf.Reader}
	var hello wire.HostHello
	if _, err := wire.ReadHello(g, &hello); err != nil {
		return
	}
	if err := wire.WriteHello(g, wire.Protocol, &wire.GuestHello{Boot: "fake"}); err != nil {
		return
	}
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	mux, err := yamux.Server(g, cfg)
	if err != nil {
		return
	}
	defer mux.Close()
	go func() {
		select {
		case <-c.exited:
			_ = mux.Close()
		case <-mux.CloseChan():
		}
	}()
	for {
		s, err := mux.AcceptStream()
		if err != nil {
			return
		}
		go f.answer(s, c)
	}
}

func (f *fakeEngine) answer(s *yamux.Stream, c *fakeContainer) {
	defer s.Close()
	var op [1]byte
	if _, err := io.ReadFull(s, op[:]); err != nil {
		return
	}
	if wire.Op(op[0]) == wire.OpExtend {
		f.extend(s, c)
		return
	}
	if err := wire.Read(s, &wire.Empty{}); err != nil || wire.Op(op[0]) != wire.OpAttest {
		return
	}
	rep := c.attest()
	if f.report != nil {
		rep = f.report(rep)
	}
	_ = wire.Write(s, &wire.Event{Kind: wire.EventDone})
	_ = wire.Write(s, &rep)
	_, _ = io.Copy(io.Discard, s)
}

// extend is PID 1's part in moving a deadline.
func (f *fakeEngine) extend(s *yamux.Stream, c *fakeContainer) {
	var m wire.Extend
	if wire.Read(s, &m) != nil {
		return
	}
	e := wire.Event{Kind: wire.EventDone}
	at := time.Unix(0, m.Deadline)
	f.mu.Lock()
	switch {
	case f.refuses != nil && f.refuses(), !at.After(time.Now()):
		e = wire.Event{Kind: wire.EventFailed, Failure: wire.Failure{Code: "invalid", Field: "deadline", Text: "no"}}
	default:
		c.deadline = at
	}
	f.calls = append(f.calls, "guest")
	after := f.after
	f.mu.Unlock()
	if after != nil {
		after("guest")
	}
	_ = wire.Write(s, &e)
	_, _ = io.Copy(io.Discard, s)
}

// attest says what a container made so would show, were every control real.
func (c *fakeContainer) attest() guest.Report {
	boot, _ := guest.ParseBoot(c.Config.Cmd)
	uid := boot.UID
	r := guest.Report{
		UIDs: []uint32{uid, uid, uid, uid}, GIDs: []uint32{uid, uid, uid, uid}, Seccomp: 2, NoNewPrivs: 1, CapBnd: guestCaps, FDs: []int64{0, 1, 2},
		NProc: int64(boot.NProc), Kernel: "Linux version 6.1.0-fake", Release: "6.1.0-fake", Interfaces: []string{"lo"},
		RootReadOnly: c.Host.ReadonlyRootfs, PID1CapEff: guestCaps, Owned: boot.Owned, Deadline: time.Now().Add(boot.Lifetime).UnixNano(),
		Cgroup: guest.Cgroup{Version: 1, Memory: c.Host.Memory, MemorySwap: c.Host.MemorySwap, CPUQuota: c.Host.CPUQuota, CPUPeriod: c.Host.CPUPeriod, PIDs: *c.Host.PidsLimit},
	}
	tmpfs := func(p string, bytes int64) {
		r.Mounts = append(r.Mounts, guest.Mount{Point: p, Type: "tmpfs", Options: []string{"rw", "nosuid", "nodev"}, Bytes: bytes, Inodes: 1})
	}
	r.Mounts = append(r.Mounts,
		guest.Mount{Point: "/", Type: "overlay", Options: []string{"ro"}},
		guest.Mount{Point: "/proc", Type: "proc", Options: []string{"rw"}},
		guest.Mount{Point: "/dev", Type: "tmpfs", Options: []string{"rw"}, Bytes: 64 << 20},
		guest.Mount{Point: guest.Dir, Type: "ext4", Options: []string{"ro"}})
	tmpfs("/dev/shm", c.Host.ShmSize)
	for p, opts := range c.Host.Tmpfs {
		m := regexp.MustCompile(`size=(\d+)k`).FindStringSubmatch(opts)
		kib, _ := strconv.ParseInt(m[1], 10, 64)
		tmpfs(p, kib<<10)
	}
	return r
}

// framed is the container's side of an attached stream.
type framed struct {
	conn net.Conn
	r    *bufio.Reader
}

func (g *framed) Read(p []byte) (int, error) { return g.r.Read(p) }
func (g *framed) Close() error               { return g.conn.Close() }
func (g *framed) Write(p []byte) (int, error) {
	b := make([]byte, 8, 8+len(p))
	b[0] = 1
	binary.BigEndian.PutUint32(b[4:], uint32(len(p)))
	if _, err := g.conn.Write(append(b, p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}
