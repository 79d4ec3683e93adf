package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
	"unicode"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// quiet waits until nothing of a connection runs any more, on either side.
func quiet(t testing.TB) {
	t.Helper()
	buf := make([]byte, 4<<20)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		var left []string
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "hashicorp/yamux") || strings.Contains(g, "guest.(*Client)") || strings.Contains(g, "guest.(*process)") {
				left = append(left, g)
			}
		}
		if left == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left; the first:\n%s", len(left), left[0])
		}
	}
}

// told is a connection from whose other side come given bytes, then pieces,
// each once the host has opened the stream it is for, or does not do so for a
// while; and then the end or silence. It takes whatever is written.
type told struct {
	hangs  bool
	later  [][]byte
	closed chan struct{}
	once   sync.Once
	wrote  chan struct{} // something was, since Read looked

	r      io.Reader
	newest atomic.Uint32 // stream that the host opened
}

func newTold(b []byte, hangs bool) *told {
	return &told{r: bytes.NewReader(b), hangs: hangs, closed: make(chan struct{}), wrote: make(chan struct{}, 1)}
}

// greet lets a good greeting come first.
func (c *told) greet() {
	var hello bytes.Buffer
	_ = wire.WriteHello(&hello, Protocol, &wire.GuestHello{})
	c.r = &hello
}

func (c *told) Read(b []byte) (int, error) {
	for {
		if n, err := c.r.Read(b); n > 0 || err == nil {
			return n, nil
		}
		if len(c.later) == 0 {
			if c.hangs {
				<-c.closed
			}
			return 0, io.EOF
		}
		for next := c.later[0]; len(next) >= muxHead && c.newest.Load() < binary.BigEndian.Uint32(next[4:]); {
			select {
			case <-c.wrote:
				continue
			case <-c.closed:
			case <-time.After(3 * time.Millisecond):
				c.newest.Store(1<<32 - 1) // wait no more
			}
			break
		}
		c.r, c.later = bytes.NewReader(c.later[0]), c.later[1:]
	}
}

func (c *told) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, io.ErrClosedPipe
	default:
	}
	for f := b; len(f) >= muxHead; { // whole frames, after the greeting
		length := int(binary.BigEndian.Uint32(f[8:]))
		if f[1] == muxWindowUpdate && f[3]&flagSYN != 0 {
			c.newest.Store(binary.BigEndian.Uint32(f[4:]))
		}
		if f[1] != muxData {
			length = 0
		}
		f = f[min(muxHead+length, len(f)):]
	}
	select {
	case c.wrote <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (c *told) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// muxFrame is a frame of the multiplexer's.
func muxFrame(kind byte, flags uint16, id uint32, body []byte) []byte {
	b := append([]byte{0, kind}, byte(flags>>8), byte(flags))
	b = binary.BigEndian.AppendUint32(b, id)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(body))), body...)
}

func message(m wire.Message) []byte {
	var b bytes.Buffer
	_ = wire.Write(&b, m)
	return b.Bytes()
}

// everything calls all that a client can do, each bounded in time, and says
// what of it came back as it must not.
func everything(c *Client, each time.Duration) (bad []string) {
	call := func(name string, do func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), each)
		defer cancel()
		start := time.Now()
		err := do(ctx)
		if took := time.Since(start); took > each+c.grace+5*time.Second {
			bad = append(bad, fmt.Sprintf("%s took %v", name, took))
		}
		if err == nil {
			return
		}
		if driver.CodeOf(err) == "" && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, io.EOF) {
			bad = append(bad, fmt.Sprintf("%s: an error without a code: %v", name, err))
		}
		if len(err.Error()) > 20_000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) && r != '\uFFFD' }) {
			bad = append(bad, fmt.Sprintf("%s: not fit to print: %.200q", name, err.Error()))
		}
	}
	call("attest", func(ctx context.Context) error { _, err := c.Attest(ctx); return err })
	call("start", func(ctx context.Context) error {
		p, err := c.Start(ctx, driver.Cmd{Args: []string{"true"}, Stdin: true, Timeout: time.Second})
		if err != nil {
			return err
		}
		go func() { _, _ = p.Stdin().Write(make([]byte, 1000)); _ = p.Stdin().Close() }()
		for range 100 {
			chunk, err := p.Recv(ctx)
			if err != nil {
				break
			}
			if len(chunk.Data) == 0 || chunk.Stream != driver.Stdout && chunk.Stream != driver.Stderr {
				bad = append(bad, fmt.Sprintf("chunk %+v", chunk))
			}
		}
		_, err = p.Wait(ctx)
		return errors.Join(err, p.Kill(ctx))
	})
	call("listen", func(ctx context.Context) error {
		return c.Listen(ctx, func(ctx context.Context, conn Conn) {
			_ = conn.SetDeadline(time.Now().Add(each))
			_, _ = conn.Write(make([]byte, 1000))
			_, _ = io.CopyN(io.Discard, conn, 1<<20)
			_ = conn.CloseWrite()
		})
	})
	call("extend", func(ctx context.Context) error { return c.Extend(ctx, time.Now().Add(time.Hour)) })
	f := c.Files()
	call("stat", func(ctx context.Context) error {
		info, err := f.Stat(ctx, "x")
		if strings.Contains(info.Name, "/") && info.Name != "/" || info.Size < 0 {
			bad = append(bad, fmt.Sprintf("info %+v", info))
		}
		return err
	})
	call("list", func(ctx context.Context) error { _, err := f.List(ctx, "/"); return err })
	call("open", func(ctx context.Context) error {
		r, _, err := f.Open(ctx, "x")
		if err != nil {
			return err
		}
		_, _ = io.CopyN(io.Discard, r, 1<<20)
		return r.Close()
	})
	call("create", func(ctx context.Context) error {
		w, err := f.Create(ctx, "x", 0o644)
		if err != nil {
			return err
		}
		_, _ = w.Write([]byte("abc"))
		return w.Close()
	})
	return bad
}

// lie answers every operation of a client's in one wrong way.
type lie func(op wire.Op, s *yamux.Stream)

func says(b ...[]byte) lie {
	return func(_ wire.Op, s *yamux.Stream) {
		for _, part := range b {
			_, _ = s.Write(part)
		}
	}
}

func TestAGuestThatLiesHarmsNothing(t *testing.T) {
	ugly := strings.Repeat("\x1b]0;title\x07\x00\u202e", 10_000)
	event := func(e wire.Event) []byte { return message(&e) }
	started := event(wire.Event{Kind: wire.EventStarted, ID: 1<<64 - 1})
	exited := event(wire.Event{Kind: wire.EventExited, Exit: wire.Exit{Code: 255, Signal: 255, OOM: 255, TimedOut: true}})
	failed := wire.Failure{Code: ugly, Field: ugly, Text: ugly, Hint: ugly, Kind: 255}
	entry := wire.FileInfo{Name: "../../etc/\x1b[2J" + strings.Repeat("n", 1000), Size: -1, Mode: 1<<32 - 1, ModTime: -1 << 63, Link: "/proc"}
	endless := func(b []byte) lie {
		return func(_ wire.Op, s *yamux.Stream) {
			for range 4096 {
				if _, err := s.Write(b); err != nil {
					return
				}
			}
		}
	}
	for name, l := range map[string]lie{
		"silence":                        says(),
		"an end at once":                 func(_ wire.Op, s *yamux.Stream) { _ = s.Close() },
		"a length of 4 GiB":              says([]byte("\xff\xff\xff\xff")),
		"the longest length and no more": says([]byte{0, 4, 0, 0}),
		"a message of nothing":           says([]byte{0, 0, 0, 0}),
		"half a message":                 says(started[:len(started)-1]),
		"half a message and the end":     func(_ wire.Op, s *yamux.Stream) { _, _ = s.Write(started[:5]); _ = s.Close() },
		"an unknown event":               says([]byte{0, 0, 0, 1, 200}),
		"a failure in colour":            says(event(wire.Event{Kind: wire.EventFailed, Failure: failed})),
		"a file's failure in colour":     says(message(&wire.FileReply{Failure: failed})),
		"done to everything":             says(event(wire.Event{Kind: wire.EventDone})),
		"done twice":                     says(event(wire.Event{Kind: wire.EventDone}), event(wire.Event{Kind: wire.EventDone})),
		"started without end":            says(started),
		"started twice":                  says(started, started),
		"an exit before the start":       says(exited, started),
		"two exits":                      says(started, exited, exited),
		"an exit in odd numbers":         says(started, exited),
		"stdin closed without end": func(op wire.Op, s *yamux.Stream) {
			_, _ = s.Write(started)
			endless(event(wire.Event{Kind: wire.EventStdinClosed}))(op, s)
		},
		"a report of nothing":           says(event(wire.Event{Kind: wire.EventDone}), message(&wire.Empty{})),
		"a list of 4 billion":           says([]byte{0, 0, 0, 10, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}),
		"an endless directory":          endless(message(&wire.FileReply{Infos: slices.Repeat([]wire.FileInfo{entry}, 50)})),
		"an endless file":               endless(wire.AppendFrame(nil, wire.TagStdout, make([]byte, wire.MaxFrame))),
		"two infos where one belongs":   says(message(&wire.FileReply{Infos: []wire.FileInfo{entry, entry}})),
		"an info that leaves its place": says(message(&wire.FileReply{Infos: []wire.FileInfo{entry}})),
		"frames of an unknown tag":      says([]byte{9, 0, 0, 0, 0}),
		"a frame of 4 GiB":              says([]byte{1, 0xff, 0xff, 0xff, 0xff}),
		"empty frames without end":      endless(bytes.Repeat(wire.AppendFrame(nil, wire.TagStdout, nil), 1000)),
		"an error frame that is none":   says(wire.AppendFrame(nil, wire.TagError, []byte("no message"))),
		"an error frame in colour":      says(wire.AppendFrame(nil, wire.TagError, wire.Marshal(&failed))),
		"an end with content":           says([]byte{0, 0, 0, 0, 1, 'x'}),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			host, inside := net.Pipe()
			served := make(chan struct{})
			go func() {
				defer close(served)
				(&fake{t: t, conn: inside, on: l}).serve()
			}()
			c, err := Connect(limited(t), host, Options{Backend: "fake", Sandbox: "box"})
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range everything(c, 30*time.Millisecond) {
				t.Error(bad)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			_ = inside.Close()
			<-served
			quiet(t)
			// The liar's own part included.
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 512<<20 || after.HeapSys > before.HeapSys+128<<20 {
				t.Errorf("%d MiB were allocated, the heap grew by %d", (after.TotalAlloc-before.TotalAlloc)>>20, (after.HeapSys-before.HeapSys)>>20)
			}
		})
	}
}

// opened is a guard behind which the host has opened n streams.
func opened(b []byte, n int) *guard {
	g := newGuard(newTold(b, false))
	for range n {
		g.live[g.next] = 0
		g.next += 2
	}
	return g
}

func TestTheGuardLetsThroughWhatAGuestMaySay(t *testing.T) {
	ack, fin, rst := uint16(2), uint16(flagFIN), uint16(flagRST)
	data := func(id uint32) []byte { return muxFrame(muxData, 0, id, []byte("abc")) }
	update := func(id uint32, flags uint16) []byte { return muxFrame(muxWindowUpdate, flags, id, nil) }
	join := func(b ...[]byte) []byte { return bytes.Join(b, nil) }
	for name, c := range map[string]struct {
		says   []byte
		closed []uint32 // by the host
		passes []byte
		ok     bool
	}{
		"a stream's whole life":            {join(update(1, ack), data(1), update(1, fin)), nil, join(update(1, ack), data(1), update(1, fin)), true},
		"data on a stream the host closed": {join(data(1), data(3), data(1)), []uint32{1}, data(3), true},
		"its window goes on":               {update(1, 0), []uint32{1}, update(1, 0), true},
		"its end goes through once":        {join(update(1, fin), update(1, fin)), []uint32{1}, update(1, fin), true},
		"an end twice":                     {join(update(1, fin), update(1, fin)), nil, update(1, fin), false},
		"data after the end":               {join(update(1, fin), data(1)), nil, update(1, fin), false},
		"a window after the end of both":   {join(update(1, fin), update(1, 0), data(3)), []uint32{1}, join(update(1, fin), data(3)), true},
		"anything after a reset":           {join(update(1, rst), data(1), update(1, 0)), nil, update(1, rst), true},
		"a stream that is not open yet":    {data(5), nil, nil, false},
		"a window for it":                  {update(5, 0), nil, nil, false},
		"the last number there is":         {update(1<<32-1, fin), nil, nil, false},
		"data with an end in it":           {muxFrame(muxData, fin, 1, []byte("abc")), nil, nil, false},
		"a pong":                           {muxFrame(muxPing, ack, 0, nil), nil, muxFrame(muxPing, ack, 0, nil), true},
	} {
		for _, cut := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
			g := opened(c.says, 2)
			for _, id := range c.closed {
				g.end(id, endHere)
			}
			got, err := io.ReadAll(cut(g))
			if (err == nil) != c.ok || !c.ok && !errors.Is(err, wire.ErrMalformed) || !bytes.Equal(got, c.passes) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
}

func TestAFrameThatStopsHalfWayHoldsNobodyBeyondItsContext(t *testing.T) {
	conn := newTold(nil, true)
	conn.later = [][]byte{muxFrame(muxData, 0, 1, message(&wire.Event{Kind: wire.EventDone})), muxFrame(muxData, 0, 1, make([]byte, 100))[:50]}
	conn.greet()
	c, err := Connect(limited(t), conn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	returned := make(chan error, 1)
	go func() { _, err := c.Attest(ctx); returned <- err }()
	select {
	case err := <-returned:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it hangs")
	}
	_ = c.Close()
	quiet(t)
}

// A guest that never ends its streams and goes on sending on them is the one
// that could fill the host's memory.
func TestStreamsThatAGuestNeverEndsKeepNothing(t *testing.T) {
	host, inside := net.Pipe()
	flood := make([]byte, 64<<10)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_, _ = wire.ReadHello(inside, &wire.HostHello{})
		_ = wire.WriteHello(inside, Protocol, &wire.GuestHello{})
		// No multiplexer: it answers each order by filling the window, and
		// again after the host has closed the stream.
		var head [muxHead]byte
		for {
			if _, err := io.ReadFull(inside, head[:]); err != nil {
				return
			}
			id, length := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
			var out []byte
			switch {
			case head[1] == muxData:
				_, _ = io.CopyN(io.Discard, inside, int64(length))
				out = muxFrame(muxWindowUpdate, 2, id, nil)
			case head[1] == muxWindowUpdate && head[3]&flagFIN != 0:
				out = bytes.Repeat(muxFrame(muxData, 0, id, flood), 2)
			}
			if _, err := inside.Write(out); err != nil {
				return
			}
		}
	}()
	c, err := Connect(limited(t), host, Options{})
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.Attest(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	round()
	before := heap()
	const rounds = 300
	for range rounds {
		round()
	}
	if grown := int64(heap()) - int64(before); grown > rounds*16<<10 {
		t.Errorf("%d streams that were closed keep %d KiB", rounds, grown>>10)
	}
	_ = c.Close()
	_ = inside.Close()
	<-served
	quiet(t)
}

// scripted turns a fuzzer's bytes into frames on streams that the host opens,
// so that they get past the guard and the multiplexer: number of the stream,
// kind, length, body.
func scripted(b []byte) [][]byte {
	var out [][]byte
	for len(b) > 2 && len(out) < 50 {
		id, kind, n := uint32(b[0]%32)*2+1, b[1], min(int(b[2]), len(b)-3)
		body := b[3 : 3+n]
		b = b[3+n:]
		switch kind % 8 {
		case 0:
			out = append(out, muxFrame(muxWindowUpdate, uint16(kind>>3), id, nil))
		case 1: // a message of that length
			out = append(out, muxFrame(muxData, 0, id, append([]byte{0, 0, 0, byte(n)}, body...)))
		case 2: // a frame of content
			out = append(out, muxFrame(muxData, 0, id, wire.AppendFrame(nil, wire.Tag(kind>>3), body)))
		default:
			out = append(out, muxFrame(muxData, 0, id, body))
		}
	}
	return out
}

// FuzzHostileGuest: any bytes are the guest's side of a whole conversation.
// Every call returns with a code and text fit to print, nothing is left of it.
func FuzzHostileGuest(f *testing.F) {
	const greets, script, hangs = 1, 2, 4
	done := message(&wire.Event{Kind: wire.EventDone})
	f.Add(byte(0), []byte("sandbxio\x00\x01\x00\x00\x00\x00"))
	f.Add(byte(greets), muxFrame(muxWindowUpdate, 2, 1, nil))
	f.Add(byte(greets), append(muxFrame(muxData, 0, 1, done), muxFrame(muxData, 0, 1, message(&wire.Report{}))...))
	f.Add(byte(greets|hangs), muxFrame(muxGoAway, 0, 0, nil))
	f.Add(byte(greets|script), []byte("\x00\x10\x00\x01\x01\x02\x06\x02\x02\x01\x02\x0a\x00\x01\x02\x03abc"))
	f.Add(byte(greets|script|hangs), []byte("\x01\x01\x02\x06\x02\x02\x0a\x03abc\x02\x02\x00\x01\x01\x05\x0a\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, mode byte, b []byte) {
		if len(b) > 16<<10 {
			return
		}
		conn := newTold(b, mode&hangs != 0)
		if mode&greets != 0 {
			conn.greet()
			conn.later = [][]byte{b}
			if mode&script != 0 {
				conn.later = scripted(b)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if mode&greets == 0 && mode&hangs != 0 {
			ctx, cancel = context.WithTimeout(t.Context(), 2*time.Millisecond)
		}
		defer cancel()
		c, err := Connect(ctx, conn, Options{})
		if err == nil {
			c.grace = 2 * time.Millisecond
			for _, bad := range everything(c, 2*time.Millisecond) {
				t.Error(bad)
			}
			_ = c.Close()
		}
		select {
		case <-conn.closed:
		default:
			t.Error("the connection is still open")
		}
		quiet(t)
	})
}
