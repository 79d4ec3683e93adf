package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
)

// mate is one relay, seen from the gateway.
type mate struct {
	crew    *Crew
	process *os.Process
	conn    *net.UnixConn
	since   time.Time
	writing sync.Mutex

	// Crew.mu guards these.
	held map[uint32]func(error) // what is told when a connection has ended
	last uint32                 // id that was given
}

// hire starts a relay, and waits until it is ready.
func (c *Crew) hire() (*mate, error) {
	m := &mate{crew: c, since: time.Now(), held: map[uint32]func(error){}}
	var err error
	started := make(chan struct{})
	c.work <- func() {
		defer close(started)
		err = m.start()
	}
	<-started
	if err != nil {
		return nil, fmt.Errorf("a relay does not start: %w", err)
	}
	stop := context.AfterFunc(c.ctx, func() { _ = m.conn.Close() })
	defer stop()
	err = m.conn.SetReadDeadline(time.Now().Add(patience))
	if err == nil {
		var id uint32
		if id, _, err = readReport(m.conn); err == nil && id != ready {
			err = errNonsense
		}
	}
	if err = errors.Join(err, m.conn.SetReadDeadline(time.Time{})); err != nil {
		m.end()
		return nil, fmt.Errorf("a relay does not come up: %w", err)
	}
	return m, nil
}

// start runs this program as a relay: with nothing open but the way to it, and
// nothing in its environment.
func (m *mate) start() error {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(ends[1]), "relay")
	defer theirs.Close()
	ours, err := connOf(ends[0])
	if err != nil {
		return err
	}
	m.conn = ours.(*net.UnixConn) //nolint:forcetypeassert // it is one
	env := []string{}
	if o := m.crew.o; o.Memory > 0 {
		share := max(o.Memory*int64(m.crew.room)/int64(o.Conns), leastMemory)
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(share, 10))
	}
	m.process, err = os.StartProcess("/proc/self/exe", []string{"sandboxio-gateway", Arg}, &os.ProcAttr{Dir: "/", Env: env,
		Files: []*os.File{nil, nil, nil, theirs}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		_ = ours.Close()
	}
	return err
}

// leastMemory is for a relay's program itself.
const leastMemory = 16 << 20

// end kills a relay and waits for its end.
func (m *mate) end() {
	_ = m.conn.Close()
	_ = m.process.Kill()
	_, _ = m.process.Wait()
}

// hold gives an id to a connection. crew.mu is held.
func (m *mate) hold(ended func(error)) uint32 {
	for {
		m.last++
		if _, taken := m.held[m.last]; !taken && m.last != ready {
			m.held[m.last] = ended
			return m.last
		}
	}
}

// let tells the end of a connection, once.
func (m *mate) let(id uint32, err error) bool {
	m.crew.mu.Lock()
	ended, ok := m.held[id]
	delete(m.held, id)
	m.crew.mu.Unlock()
	if ok {
		ended(err)
	}
	return ok
}

// order hands a connection over, and reports false if the relay, which takes
// no more of them then, never got it.
func (m *mate) order(id uint32, p gateway.Passage) bool {
	m.writing.Lock()
	defer m.writing.Unlock()
	_ = m.conn.SetWriteDeadline(time.Now().Add(patience))
	sent, err := sendOrder(m.conn, id, p)
	if err == nil {
		return true
	}
	if sent || errors.Is(err, errUntaken) {
		m.crew.dismiss(m)
		_ = m.process.Kill() // it takes no orders, or has half of one
	}
	if sent || !errors.Is(err, errUntaken) || errors.Is(err, os.ErrDeadlineExceeded) {
		m.let(id, errNoRelay)
		return true
	}
	m.crew.mu.Lock()
	defer m.crew.mu.Unlock()
	_, ours := m.held[id]
	delete(m.held, id)
	return !ours // it was told already that the relay has ended
}

// dismiss gives a relay no more connections.
func (c *Crew) dismiss(m *mate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mates = slices.DeleteFunc(c.mates, func(o *mate) bool { return o == m })
}

// listen takes a relay's reports until it ends, and then ends what it held.
func (c *Crew) listen(m *mate) {
	stop := context.AfterFunc(c.ctx, func() { _ = m.conn.Close() })
	defer stop()
	for {
		id, why, err := readReport(m.conn)
		if err != nil {
			break
		}
		var end error
		if why != "" {
			end = &gateway.Refusal{Reason: why}
		}
		if !m.let(id, end) {
			break // it speaks of what it does not have
		}
	}
	c.dismiss(m)
	m.end()
	c.mu.Lock()
	held := m.held
	m.held = nil
	if len(c.mates) == 0 && time.Since(m.since) > lasting {
		c.grow()
	}
	c.mu.Unlock()
	for _, ended := range held {
		ended(nil)
	}
}
