package pid1

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// socketName is abstract, of the sandbox's network namespace: it needs no
// writable place, is taken before the workload exists, and cannot be moved or
// replaced while PID 1 lives. Each side makes sure who the other is.
const socketName = "@sandboxio-guest"

// listen opens the socket that the bridge comes to.
func listen() (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: socketName, Net: "unix"})
}

func (g *guest) accept(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			time.Sleep(50 * time.Millisecond) // out of descriptors, say
			continue
		}
		if peer, err := peerOf(conn); err != nil || peer.Uid != 0 {
			_ = conn.Close()
			continue
		}
		go g.serve(conn)
	}
}

func peerOf(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(err, cerr)
}

// bridge joins a pair of files to PID 1's socket until either side ends. It
// makes sure that PID 1 is who answers.
func bridge(in io.Reader, out io.Writer) error {
	if os.Getuid() != 0 {
		return errors.New("the bridge must run as uid 0")
	}
	conn, err := dial()
	if err != nil {
		return err
	}
	if peer, err := peerOf(conn); err != nil || peer.Uid != 0 || peer.Pid != 1 {
		return errors.New("the socket is not PID 1's")
	}
	ended := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(conn, in); ended <- struct{}{} }()
	go func() { _, _ = io.Copy(out, conn); ended <- struct{}{} }()
	<-ended
	return nil
}

// dialWithin is how long a workload that floods the socket can hold up the
// bridge; PID 1 accepts faster than it connects. It is also how long a bridge
// waits for a PID 1 that has just been started and does not listen yet.
const dialWithin = 5 * time.Second

func dial() (*net.UnixConn, error) {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socketName, Net: "unix"})
		if err == nil || !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ECONNREFUSED) || time.Since(start) > dialWithin {
			return conn, err
		}
	}
}

// stdio is the owner's connection: PID 1's own stdin and stdout.
type stdio struct {
	in  *inlet
	out *outlet
}

func (s *stdio) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *stdio) Write(b []byte) (int, error) { return s.out.Write(b) }
func (s *stdio) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }

var _ io.ReadWriteCloser = (*stdio)(nil)

// greet reads a connection's greeting and answers it.
func (g *guest) greet(conn io.ReadWriter) (ok bool, malformed bool) {
	var m wire.HostHello
	protocol, err := wire.ReadHello(conn, &m)
	switch {
	case errors.Is(err, wire.ErrMalformed):
		return false, true
	case err != nil:
		return false, false
	case protocol != wire.Protocol:
		_ = wire.WriteHello(conn, wire.Protocol, &wire.Empty{})
		return false, true
	}
	reply := g.hello(&m)
	err = wire.WriteHello(conn, wire.Protocol, reply)
	return err == nil && reply.Failure.Code == "", false
}
