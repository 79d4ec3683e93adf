package prove

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
)

// witness keeps what came, in order.
type witness struct {
	mu     sync.Mutex
	events []probe.Event
}

func (w *witness) add(e probe.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// take gives what came since the last call.
func (w *witness) take() []probe.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.events
	w.events = nil
	return out
}

// talker is a container whose program reads and writes lines. It ends when its
// connection does, so that one whose owner was killed is gone.
type talker struct {
	id    string
	conn  client.HijackedResponse
	done  chan struct{} // its output has ended
	lines *io.PipeReader
}

// attach joins a created container and starts it.
func attach(ctx context.Context, cli *client.Client, id string) (*talker, error) {
	res, err := cli.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	if _, err := cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		res.Close()
		return nil, err
	}
	r, w := io.Pipe()
	t := &talker{id: id, conn: res.HijackedResponse, done: make(chan struct{}), lines: r}
	go func() {
		defer close(t.done)
		_, err := stdcopy.StdCopy(w, w, t.conn.Reader)
		_ = w.CloseWithError(errors.Join(io.EOF, err))
	}()
	return t, nil
}

// close ends the connection, and with it the container.
func (t *talker) close() {
	_ = t.lines.Close()
	t.conn.Close()
	<-t.done
}

// canary is a talker that tells what comes to it.
type canary struct {
	*talker
	port  uint16 // that it found free, if it was to
	marks chan string
	heard chan struct{} // all that it said was read
}

// listen hears a canary until it ends, and returns once it is ready.
func listen(ctx context.Context, t *talker, to *witness) (*canary, error) {
	c := &canary{talker: t, marks: make(chan string, 8), heard: make(chan struct{})}
	type word struct {
		port uint16
		err  error
	}
	ready := make(chan word, 1)
	go func() {
		defer close(c.heard)
		defer close(c.marks)
		s := bufio.NewScanner(t.lines)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			var told probe.Told
			if err := json.Unmarshal(s.Bytes(), &told); err != nil {
				told.Error = s.Text()
			}
			switch {
			case told.Ready:
				ready <- word{port: told.Port}
			case told.Event != nil:
				to.add(*told.Event)
			case told.Error != "":
				select {
				case ready <- word{err: errors.New("a canary says: " + told.Error)}:
				default:
				}
				return
			default:
				c.marks <- told.Mark
			}
		}
		select {
		case ready <- word{err: errors.New("a canary ended")}:
		default:
		}
	}()
	select {
	case w := <-ready:
		c.port = w.port
		return c, w.err
	case <-ctx.Done():
		return c, ctx.Err()
	}
}

func (c *canary) close() {
	c.talker.close()
	<-c.heard
}

// mark returns once everything that came before it was told.
func (c *canary) mark(ctx context.Context, word string) error {
	if _, err := fmt.Fprintf(c.conn.Conn, "mark %s\n", word); err != nil {
		return err
	}
	for {
		select {
		case got, ok := <-c.marks:
			if !ok {
				return errors.New("a canary ended, so that what came is not known")
			}
			if got == word {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
