package wire

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// messages are one of each kind, with odd content.
func messages() []Message {
	return []Message{
		&Empty{},
		&Exec{Token: 1<<64 - 1, Args: []string{"a", "", "\xff\x00"}, Env: [][2]string{{"A", "b=c"}, {"", ""}}, Secrets: [][2]string{{"S", "s"}}, Dir: "/work", Stdin: true, Timeout: -1, Detached: true},
		&Data{Token: 300},
		&Kill{ID: 2_000_000_001},
		&Extend{Deadline: 1 << 62},
		&Event{Kind: EventDone}, &Event{Kind: EventStdinClosed}, &Event{Kind: EventStarted, ID: 7},
		&Event{Kind: EventFailed, Failure: Failure{Code: "denied", Field: "f", Text: "t", Hint: "h", Kind: KindPermission}},
		&Event{Kind: EventExited, Exit: Exit{Code: 255, Signal: 9, OOM: OOMYes, TimedOut: true}},
		&FileRequest{Op: FileRename, Name: "/a", To: "/b", Mode: 0o777, Recursive: true},
		&FileReply{Infos: []FileInfo{{Name: "n", Size: -1, Mode: 1 << 31, ModTime: -5, Link: "l"}, {}}},
		&HostHello{Version: "v", Configure: true, Env: [][2]string{{"A", "x\ny"}}, Lifetime: 1},
		&GuestHello{Failure: Failure{Code: "conflict"}, Boot: "b", PID1UID: 1<<32 - 1, Owned: true, Deadline: 1},
		&Report{UIDs: []uint32{1, 2}, Groups: []uint32{2_000_000_001}, Seccomp: 2, CapBnd: 1<<64 - 1, FDs: []int64{0, 1, 2}, NProc: Unlimited, Doors: []string{"vsock"},
			Mounts: []Mount{{Point: "/", Options: []string{"ro"}, Super: []string{"rw"}, Bytes: Unknown}}, Cgroup: Cgroup{Version: 2, Memory: 1 << 40, OOMKillsAvailable: true}},
	}
}

func fresh(m Message) Message {
	f, ok := reflect.TypeAssert[Message](reflect.New(reflect.TypeOf(m).Elem()))
	if !ok {
		panic("not a message")
	}
	return f
}

func TestM62AMessageArrivesAsItWasSentByteByByte(t *testing.T) {
	for _, m := range messages() {
		var buf bytes.Buffer
		if err := WriteOp(&buf, OpExec, m); err != nil {
			t.Fatal(err)
		}
		r := iotest.OneByteReader(&buf)
		var op [1]byte
		_, _ = io.ReadFull(r, op[:])
		got := fresh(m)
		if err := Read(r, got); err != nil || Op(op[0]) != OpExec {
			t.Errorf("%T: op %d, %v", m, op[0], err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%T: %s", m, diff)
		}
	}
}

func TestAMessageCutOrPaddedIsMalformed(t *testing.T) {
	for _, m := range messages() {
		b := Marshal(m)
		for n := range b {
			if err := Unmarshal(b[:n], fresh(m)); err == nil {
				t.Errorf("%T decodes from %d of %d bytes", m, n, len(b))
			}
		}
		if err := Unmarshal(append(b, 0), fresh(m)); err == nil {
			t.Errorf("%T decodes with a byte too many", m)
		}
	}
}

func TestALengthIsNotBelieved(t *testing.T) {
	huge := "\xff\xff\xff\xff"
	for name, err := range map[string]error{
		"a message": Read(strings.NewReader(huge), &Empty{}),
		"a reply":   ReadReply(strings.NewReader("\x00\x10\x00\x00"), &Empty{}),
		"a list":    Unmarshal([]byte("\xff\xff\xff\xff\x0f"), &FileReply{}),
		"a string":  Unmarshal([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"), &Failure{}),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A length within bounds costs only what arrives.
	allocs := testing.AllocsPerRun(10, func() { _ = Read(strings.NewReader("\x00\x3f\xff\xff"), &Empty{}) })
	if allocs > 10 {
		t.Errorf("%v allocations for four bytes", allocs)
	}
}

func TestSentBytesThatHeldASecretAreCleared(t *testing.T) {
	var kept [][]byte
	w := writerFunc(func(b []byte) { kept = append(kept, b) })
	if err := WriteOp(w, OpExec, &Exec{Secrets: [][2]string{{"S", "canary"}}}); err != nil {
		t.Fatal(err)
	}
	for _, b := range kept {
		if bytes.Contains(b, []byte("canary")) {
			t.Error("the buffer still holds the secret")
		}
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

func TestAGreetingOfAnotherProtocolIsReadAndNotDecoded(t *testing.T) {
	var buf bytes.Buffer
	if err := WriteHello(&buf, 7, &HostHello{Version: "x"}); err != nil {
		t.Fatal(err)
	}
	buf.WriteString("rest")
	var m GuestHello
	protocol, err := ReadHello(iotest.OneByteReader(&buf), &m)
	if protocol != 7 || err != nil || !cmp.Equal(m, GuestHello{}) {
		t.Errorf("%d, %v, %+v", protocol, err, m)
	}
	if buf.String() != "rest" {
		t.Errorf("%q is left", buf.String())
	}
	if _, err := ReadHello(strings.NewReader("HTTP/1.1 400 Bad Request"), &m); !errors.Is(err, ErrMalformed) {
		t.Errorf("no greeting: %v", err)
	}
}

func TestM62FramesKeepBytesTagsAndTheirEnd(t *testing.T) {
	var buf bytes.Buffer
	long := bytes.Repeat([]byte("0123456789"), 20_000)
	_, _ = WriteFrames(&buf, TagStdout, long)
	_, _ = WriteFrames(&buf, TagStderr, []byte("err"))
	_, _ = WriteFrames(&buf, TagEnd, nil)
	f := NewFrames(iotest.OneByteReader(&buf))
	got, b := map[Tag][]byte{}, make([]byte, 1000)
	for {
		tag, n, err := f.Read(b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[tag] = append(got[tag], b[:n]...)
	}
	if !bytes.Equal(got[TagStdout], long) || string(got[TagStderr]) != "err" {
		t.Errorf("%d and %q", len(got[TagStdout]), got[TagStderr])
	}
	if _, _, err := f.Read(b); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestFramesThatAreCutAreNoEnd(t *testing.T) {
	whole := AppendFrame(nil, TagStdout, []byte("abc"))
	for n := range whole {
		f, b := NewFrames(bytes.NewReader(whole[:n])), make([]byte, 10)
		var err error
		for err == nil {
			_, _, err = f.Read(b)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func TestFramesCarryAFailure(t *testing.T) {
	b := AppendFrame(nil, TagError, Marshal(&Failure{Code: "exhausted", Text: "full"}))
	_, _, err := NewFrames(bytes.NewReader(b)).Read(make([]byte, 1))
	var f *Failure
	if !errors.As(err, &f) || f.Text != "full" {
		t.Errorf("%v", err)
	}
}

type rwc struct{ bytes.Buffer }

func (*rwc) Close() error { return nil }

func TestJoinChangesNoByte(t *testing.T) {
	for name, to := range map[string]io.ReadWriteCloser{"one piece a write": &rwc{}, "two pieces a write": &gathers{}} {
		t.Run(name, func(t *testing.T) { joinChangesNoByte(t, to) })
	}
}

// gathers takes large bodies by themselves.
type gathers struct {
	rwc
	large int
}

func (g *gathers) Gather(a, b []byte) error {
	g.large++
	g.Buffer.Write(a)
	g.Buffer.Write(b)
	return nil
}

func joinChangesNoByte(t *testing.T, joined io.ReadWriteCloser) {
	t.Helper()
	var plain bytes.Buffer
	j := Join(joined)
	release := func() {}
	for i, b := range [][]byte{
		{0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0},                // a window update
		{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3}, []byte("abc"), // data
		{0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0},                                       // data without a body
		{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 12}, []byte("\x00\x00twelve bytes")[:12], // a body that looks like a header
		{0, 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0},                                          // an end, which waits
		{0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7},                                          // a ping, which does not
		{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xff, 0xff}, bytes.Repeat([]byte("x"), 0xffff), // too large to be held
	} {
		if i == 3 {
			release = j.Hold()
		}
		plain.Write(b)
		if n, err := j.Write(b); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
	}
	release()
	got := joined.(interface{ Bytes() []byte }).Bytes() //nolint:forcetypeassert // both have it
	if !bytes.Equal(plain.Bytes(), got) {
		t.Errorf("%q\n%q", plain.Bytes(), got)
	}
	if g, ok := joined.(*gathers); ok && g.large != 1 {
		t.Errorf("%d bodies were large", g.large)
	}
}

// pieces is a connection that keeps what each write brought.
type pieces struct {
	mu   sync.Mutex
	sent [][]byte
	fail error
}

func (*pieces) Read([]byte) (int, error) { return 0, io.EOF }
func (*pieces) Close() error             { return nil }
func (p *pieces) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, bytes.Clone(b))
	return len(b), p.fail
}

func (p *pieces) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent)
}

func TestJoinWritesSeldomAndNeverLate(t *testing.T) {
	syn := []byte{0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}
	head, body := []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3}, []byte("abc")
	update := []byte{0, 1, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0}
	reset := []byte{0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0}
	for name, c := range map[string]struct {
		writes [][]byte
		hold   bool
		now    int // writes at once
		then   int // and a little later
	}{
		"an opening goes with what follows":    {[][]byte{syn, head, body}, false, 1, 1},
		"an opening alone goes a little later": {[][]byte{syn}, false, 0, 1},
		"a window update goes at once":         {[][]byte{update}, false, 1, 1},
		"a reset goes at once":                 {[][]byte{reset}, false, 1, 1},
		"what is held goes in one piece":       {[][]byte{syn, head, body, syn, head, body}, true, 0, 1},
		"two messages are two writes":          {[][]byte{head, body, head, body}, false, 2, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &pieces{}
			j := Join(p)
			if c.hold {
				j.Hold() // by somebody who hangs
			}
			for _, b := range c.writes {
				_, _ = j.Write(b)
			}
			if n := p.count(); n != c.now {
				t.Errorf("%s: %d writes at once", name, n)
			}
			time.Sleep(2 * linger)
			if n := p.count(); n != c.then {
				t.Errorf("%s: %d writes later", name, n)
			}
		})
	}
}

func TestAJoinThatCannotWriteSaysSoAtTheNextWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pieces{fail: io.ErrClosedPipe}
		j := Join(p)
		if _, err := j.Write([]byte{0, 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}); err != nil {
			t.Errorf("before anything was written: %v", err)
		}
		time.Sleep(2 * linger)
		if _, err := j.Write([]byte{0, 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%v", err)
		}
		_ = j.Close()
	})
}

func TestBoot(t *testing.T) {
	good := Boot{Owned: true, Lifetime: 90 * time.Second, Longest: time.Hour, UID: 1 << 21, NProc: 192, DiskMiB: 256, Resolver: netip.MustParseAddr("198.18.0.1")}
	got, err := ParseBoot(good.Args())
	if err != nil || got != good {
		t.Errorf("%+v, %v", got, err)
	}
	for name, args := range map[string][]string{
		"nothing":             nil,
		"another mode":        {"bridge"},
		"no lifetime":         {"init", "owned=true", "uid=1", "nproc=1", "disk=0"},
		"a lifetime of zero":  {"init", "owned=true", "lifetime=0s", "longest=1s", "uid=1", "nproc=1", "disk=0"},
		"a negative lifetime": {"init", "owned=true", "lifetime=-1s", "longest=1s", "uid=1", "nproc=1", "disk=0"},
		"a longest below it":  {"init", "owned=true", "lifetime=2s", "longest=1s", "uid=1", "nproc=1", "disk=0"},
		"root":                {"init", "owned=true", "lifetime=1s", "longest=1s", "uid=0", "nproc=1", "disk=0"},
		"uid -1":              {"init", "owned=true", "lifetime=1s", "longest=1s", "uid=4294967295", "nproc=1", "disk=0"},
		"no process":          {"init", "owned=true", "lifetime=1s", "longest=1s", "uid=1", "nproc=0", "disk=0"},
		"a word twice":        {"init", "owned=true", "owned=false", "lifetime=1s", "longest=1s", "uid=1", "nproc=1", "disk=0"},
		"an unknown word":     {"init", "owned=true", "lifetime=1s", "longest=1s", "uid=1", "nproc=1", "disk=0", "x=1"},
		"no number":           {"init", "owned=true", "lifetime=1s", "longest=1s", "uid=1", "nproc=x", "disk=0"},
		"a resolver of IPv6":  {"init", "owned=true", "lifetime=1s", "longest=1s", "uid=1", "nproc=1", "disk=0", "resolver=2001:db8::1"},
		"a huge disk":         {"init", "owned=true", "lifetime=1s", "longest=1s", "uid=1", "nproc=1", "disk=9223372036854775807"},
	} {
		if b, err := ParseBoot(args); err == nil {
			t.Errorf("%s: accepted as %+v", name, b)
		}
	}
}

func FuzzParseBoot(f *testing.F) {
	f.Add("init\nowned=true\nlifetime=1s\nlongest=1s\nuid=1\nnproc=1\ndisk=0\nresolver=::1")
	f.Add(strings.Join(Boot{Lifetime: time.Second, Longest: time.Second, UID: 1, NProc: 1}.Args(), "\n"))
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBoot(strings.Split(s, "\n"))
		if err != nil {
			return
		}
		if again, err := ParseBoot(b.Args()); err != nil || again != b {
			t.Fatalf("%+v became %+v, %v", b, again, err)
		}
	})
}
