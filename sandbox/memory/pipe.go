package memory

import (
	"context"
	"io"
	"sync"
	"syscall"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// pipeSize is how much a pipe holds before its writer has to wait, as Linux
// has it.
const pipeSize = 64 << 10

// pipe carries chunks from writers to readers, in order.
type pipe struct {
	mu      sync.Mutex
	queue   []driver.Chunk
	size    int
	ended   bool          // no more will be written
	broken  bool          // nobody will read
	changed chan struct{} // closed and replaced at every change
}

func newPipe() *pipe { return &pipe{changed: make(chan struct{})} }

// change wakes whoever waits. The caller holds mu.
func (p *pipe) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pipe) write(ctx context.Context, s driver.Stream, data []byte) (n int, err error) {
	for len(data) > 0 {
		if err := context.Cause(ctx); err != nil {
			return n, err
		}
		p.mu.Lock()
		if p.broken || p.ended {
			p.mu.Unlock()
			return n, syscall.EPIPE
		}
		if room := min(pipeSize-p.size, len(data)); room > 0 {
			p.queue = append(p.queue, driver.Chunk{Stream: s, Data: append([]byte(nil), data[:room]...)})
			p.size += room
			n, data = n+room, data[room:]
			p.change()
			p.mu.Unlock()
			continue
		}
		wait := p.changed
		p.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	return n, nil
}

// read takes the oldest chunk, or of it what limit allows; io.EOF once the
// pipe is empty and ended.
func (p *pipe) read(ctx context.Context, limit int) (driver.Chunk, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return driver.Chunk{}, err
		}
		p.mu.Lock()
		if len(p.queue) > 0 {
			c := p.queue[0]
			if len(c.Data) > limit {
				p.queue[0].Data = c.Data[limit:]
				c.Data = c.Data[:limit:limit]
			} else {
				p.queue = p.queue[1:]
			}
			p.size -= len(c.Data)
			p.change()
			p.mu.Unlock()
			return c, nil
		}
		if p.ended {
			p.mu.Unlock()
			return driver.Chunk{}, io.EOF
		}
		wait := p.changed
		p.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
}

// end tells readers that no more comes; what is queued is still read.
func (p *pipe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.change()
}

// hangUp tells writers that nobody reads.
func (p *pipe) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	p.queue, p.size = nil, 0
	p.change()
}
