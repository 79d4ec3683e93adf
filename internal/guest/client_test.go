package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/pin"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// fake is a guest whose every word the test chooses.
type fake struct {
	t     *testing.T
	conn  net.Conn
	reply wire.GuestHello
	// on answers one operation; the stream is closed after the host's half.
	on func(op wire.Op, s *yamux.Stream)
}

// connect makes a client of a fake guest.
func connect(t *testing.T, on func(op wire.Op, s *yamux.Stream)) *Client {
	t.Helper()
	host, inside := net.Pipe()
	f := &fake{t: t, conn: inside, on: on}
	go f.serve()
	c, err := Connect(limited(t), host, Options{Backend: "fake", Sandbox: "box"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = inside.Close() })
	return c
}

func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (f *fake) serve() {
	var m wire.HostHello
	if _, err := wire.ReadHello(f.conn, &m); err != nil {
		return
	}
	if wire.WriteHello(f.conn, wire.Protocol, &f.reply) != nil {
		return
	}
	cfg := yamux.DefaultConfig()
	cfg.LogOutput, cfg.EnableKeepAlive = io.Discard, false
	mux, err := yamux.Server(f.conn, cfg)
	if err != nil {
		return
	}
	for {
		s, err := mux.AcceptStream()
		if err != nil {
			return
		}
		go func() {
			var op [1]byte
			if _, err := io.ReadFull(s, op[:]); err == nil {
				f.on(wire.Op(op[0]), s)
			}
			_, _ = io.Copy(io.Discard, s)
			_ = s.Close()
		}()
	}
}

func TestAGreetingThatFailsSaysWhyAndWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w io.Writer)
		code   driver.Code
		says   string
	}{
		"an older guest":    {func(w io.Writer) { _ = wire.WriteHello(w, 0, &wire.Empty{}) }, driver.CodeUnsupported, "sandboxio setup docker"},
		"a newer guest":     {func(w io.Writer) { _ = wire.WriteHello(w, Protocol+1, &wire.Empty{}) }, driver.CodeUnsupported, "newer"},
		"no guest at all":   {func(w io.Writer) { _, _ = io.WriteString(w, "SSH-2.0-OpenSSH_9.6\r\n") }, driver.CodeInternal, "not a sandboxio guest"},
		"an end":            {func(io.Writer) {}, driver.CodeGone, "ended"},
		"half a greeting":   {func(w io.Writer) { _, _ = io.WriteString(w, "sandbxio\x00\x01\x00\x00") }, driver.CodeGone, "ended"},
		"a length of 4 GiB": {func(w io.Writer) { _, _ = io.WriteString(w, "sandbxio\x00\x01\xff\xff\xff\xff") }, driver.CodeInternal, ""},
		"a refusal": {func(w io.Writer) {
			_ = wire.WriteHello(w, Protocol, &wire.GuestHello{Failure: wire.Failure{Code: "conflict", Text: "configured already"}})
		}, driver.CodeConflict, "configured already"},
		"a refusal in colour": {func(w io.Writer) {
			_ = wire.WriteHello(w, Protocol, &wire.GuestHello{Failure: wire.Failure{Code: "\x1b[31m", Text: "\x1b]0;title\x07"}})
		}, driver.CodeInternal, "\uFFFD]0;title"},
	} {
		t.Run(name, func(t *testing.T) {
			host, inside := net.Pipe()
			go func() {
				_, _ = wire.ReadHello(inside, &wire.HostHello{})
				c.answer(inside)
				_ = inside.Close()
			}()
			_, err := Connect(limited(t), host, Options{Backend: "fake", Sandbox: "box"})
			if driver.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) || strings.ContainsAny(fmt.Sprint(err), "\x1b\x07") {
				t.Errorf("%v", err)
			}
			if _, err := host.Write([]byte{0}); err == nil {
				t.Error("the connection is still open")
			}
		})
	}
}

func TestWhatIsTooLargeToSendIsRefused(t *testing.T) {
	c := connect(t, script(nil, nil))
	_, err := c.Start(limited(t), driver.Cmd{Args: []string{strings.Repeat("x", 5<<20)}, Timeout: time.Second})
	if driver.CodeOf(err) != driver.CodeInvalid {
		t.Errorf("arguments: %v", err)
	}
	host, inside := net.Pipe()
	defer inside.Close()
	_, err = Connect(limited(t), host, Options{Configure: true, Env: map[string]string{"A": strings.Repeat("x", 2<<20)}})
	if driver.CodeOf(err) != driver.CodeInvalid {
		t.Errorf("env: %v", err)
	}
}

func TestAGreetingEndsWithItsContext(t *testing.T) {
	host, inside := net.Pipe()
	defer inside.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = wire.ReadHello(inside, &wire.HostHello{}); cancel() }()
	if _, err := Connect(ctx, host, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// script answers an exec with events and frames.
func script(events []wire.Event, frames []byte) func(wire.Op, *yamux.Stream) {
	return func(op wire.Op, s *yamux.Stream) {
		switch op {
		case wire.OpExec:
			_ = wire.Read(s, &wire.Exec{})
			for _, e := range events {
				_ = wire.Write(s, &e)
			}
		case wire.OpData:
			_ = wire.Read(s, &wire.Data{})
			_, _ = s.Write(frames)
		default:
		}
	}
}

var cmdTrue = driver.Cmd{Args: []string{"true"}, Timeout: time.Second}

func TestEventsOutOfOrderAreAnErrorAndNeverAnExit(t *testing.T) {
	started := wire.Event{Kind: wire.EventStarted, ID: 1}
	for name, events := range map[string][]wire.Event{
		"an exit before the start":   {{Kind: wire.EventExited}},
		"stdin closed before it":     {{Kind: wire.EventStdinClosed}},
		"a start twice":              {started, started},
		"a failure after the start":  {started, {Kind: wire.EventFailed}},
		"done, which answers others": {started, {Kind: wire.EventDone}},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, script(events, nil))
			p, err := c.Start(limited(t), cmdTrue)
			if err == nil {
				_, err = p.Wait(limited(t))
			}
			if driver.CodeOf(err) != driver.CodeInternal {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestM50M51M64ALostConnectionIsNeverAnExitOfZero(t *testing.T) {
	c := connect(t, script([]wire.Event{{Kind: wire.EventStarted, ID: 1}}, wire.AppendFrame(nil, wire.TagStdout, []byte("part"))))
	p, err := c.Start(limited(t), driver.Cmd{Args: []string{"true"}, Timeout: time.Second, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	if chunk, err := p.Recv(limited(t)); err != nil || string(chunk.Data) != "part" {
		t.Fatalf("%q, %v", chunk.Data, err)
	}
	_ = c.Close()
	if e, err := p.Wait(limited(t)); driver.CodeOf(err) != driver.CodeGone {
		t.Errorf("wait: %+v, %v", e, err)
	}
	if _, err := p.Recv(limited(t)); driver.CodeOf(err) != driver.CodeGone {
		t.Errorf("recv: %v", err)
	}
	if _, err := p.Stdin().Write([]byte("x")); driver.CodeOf(err) != driver.CodeGone {
		t.Errorf("stdin: %v", err)
	}
	if err := p.Kill(limited(t)); driver.CodeOf(err) != driver.CodeGone {
		t.Errorf("kill: %v", err)
	}
	if _, err := c.Files().Stat(limited(t), "x"); driver.CodeOf(err) != driver.CodeGone {
		t.Errorf("files: %v", err)
	}
}

func TestOutputAfterAnExitIsKept(t *testing.T) {
	frames := wire.AppendFrame(nil, wire.TagStdout, []byte("out"))
	frames = wire.AppendFrame(frames, wire.TagStderr, []byte("err"))
	frames = wire.AppendFrame(frames, wire.TagEnd, nil)
	c := connect(t, script([]wire.Event{{Kind: wire.EventStarted, ID: 1}, {Kind: wire.EventExited, Exit: wire.Exit{Signal: 40, OOM: 9}}}, frames))
	p, err := c.Start(limited(t), cmdTrue)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := p.Wait(limited(t)); err != nil || e.Code != 168 || e.Signal != "SIG40" || e.OOM != nil {
		t.Fatalf("%+v, %v", e, err)
	}
	var got []string
	for {
		chunk, err := p.Recv(limited(t))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, chunk.Stream.String()+" "+string(chunk.Data))
	}
	if strings.Join(got, ",") != "stdout out,stderr err" {
		t.Errorf("%q", got)
	}
	if _, err := p.Recv(limited(t)); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := p.Stdin().Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("stdin nobody asked for: %v", err)
	}
}

func TestAnInterruptedRecvLosesNothing(t *testing.T) {
	more := make(chan struct{})
	frame := wire.AppendFrame(nil, wire.TagStdout, []byte("0123456789"))
	c := connect(t, func(op wire.Op, s *yamux.Stream) {
		switch op {
		case wire.OpExec:
			_ = wire.Read(s, &wire.Exec{})
			_ = wire.Write(s, &wire.Event{Kind: wire.EventStarted, ID: 1})
		case wire.OpData:
			_ = wire.Read(s, &wire.Data{})
			for _, b := range frame { // cut everywhere, also in the header
				<-more
				_, _ = s.Write([]byte{b})
			}
			_, _ = s.Write(wire.AppendFrame(nil, wire.TagEnd, nil))
		default:
		}
	})
	p, err := c.Start(limited(t), cmdTrue)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	sent := 0
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		chunk, err := p.Recv(ctx)
		cancel()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		got.Write(chunk.Data)
		if err != nil && sent < len(frame) {
			more <- struct{}{}
			sent++
		}
	}
	if got.String() != "0123456789" {
		t.Errorf("%q", got.String())
	}
}

func TestAStartThatNobodyConfirmsIsLeaked(t *testing.T) {
	hold := make(chan struct{})
	c := connect(t, func(wire.Op, *yamux.Stream) { <-hold })
	defer close(hold)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := c.Start(ctx, cmdTrue)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, driver.CodeLeaked) {
		t.Errorf("%v", err)
	}
}

func TestFailuresAreErrorsOfTheirKind(t *testing.T) {
	for kind, want := range map[wire.Kind]error{wire.KindNotExist: fs.ErrNotExist, wire.KindExist: fs.ErrExist, wire.KindPermission: fs.ErrPermission} {
		c := connect(t, func(_ wire.Op, s *yamux.Stream) {
			_ = wire.Read(s, &wire.FileRequest{})
			_ = wire.Write(s, &wire.FileReply{Failure: wire.Failure{Code: "denied", Text: "no\x1b[2Jway", Kind: kind}})
		})
		_, err := c.Files().Stat(limited(t), "a/../b")
		var p *fs.PathError
		if !errors.Is(err, want) || driver.CodeOf(err) != driver.CodeDenied || !errors.As(err, &p) || p.Path != "/work/b" || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%v", err)
		}
	}
}

func TestAHelperThatSaysTooMuchIsCutOff(t *testing.T) {
	entry := wire.FileInfo{Name: strings.Repeat("n", 255), Link: strings.Repeat("l", 4000)}
	c := connect(t, func(_ wire.Op, s *yamux.Stream) {
		_ = wire.Read(s, &wire.FileRequest{})
		for wire.Write(s, &wire.FileReply{Infos: []wire.FileInfo{entry, entry}}) == nil {
		}
	})
	if _, err := c.Files().List(limited(t), "."); driver.CodeOf(err) != driver.CodeInvalid {
		t.Errorf("an endless directory: %v", err)
	}
}

func TestFramesThatAGuestNeverSendsEndTheConnection(t *testing.T) {
	for name, frame := range map[string][]byte{
		"a stream of its own":       {0, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0},
		"a stream under our number": {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0},
		"a ping":                    {0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"a frame of 4 GiB":          {0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff},
		"an even stream":            {0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1},
		"another version":           {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
		"an unknown kind":           {0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			host, inside := net.Pipe()
			go func() {
				_, _ = wire.ReadHello(inside, &wire.HostHello{})
				_ = wire.WriteHello(inside, Protocol, &wire.GuestHello{})
				go func() { _, _ = io.Copy(io.Discard, inside) }()
				_, _ = inside.Write(frame)
			}()
			c, err := Connect(limited(t), host, Options{})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-c.Done():
			case <-limited(t).Done():
				t.Error("the connection stays")
			}
			_ = inside.Close()
		})
	}
}

func TestNamesArePOSIXWhateverTheHostIs(t *testing.T) {
	for in, want := range map[string]string{".": "/work", "a": "/work/a", "/a/../b": "/b", `C:\x`: `/work/C:\x`, "../etc": "/etc", "/": "/", "a/": "/work/a", "a//b": "/work/a/b"} {
		if got, err := resolve("name", in); got != want || err != nil {
			t.Errorf("%q is %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "a\x00b", strings.Repeat("x", 5000)} {
		if _, err := resolve("name", in); driver.CodeOf(err) != driver.CodeInvalid {
			t.Errorf("%.10q: %v", in, err)
		}
	}
}

func TestADigestIsTheReleasesOrThePinned(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, dir)
	}
	if _, err := Digest(); driver.CodeOf(err) != driver.CodeInvalid || !strings.Contains(err.Error(), "sandboxio setup docker") {
		t.Errorf("nothing pinned: %v", err)
	}
	want := "sha256:" + strings.Repeat("ab", 32)
	for _, bad := range []string{"", "sha256:", "sha512:" + strings.Repeat("ab", 32), "sha256:" + strings.Repeat("AB", 32), want + "\n"} {
		if _, err := WritePin(bad); driver.CodeOf(err) != driver.CodeInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := WritePin("sha256:" + strings.Repeat("00", 32)); err != nil {
		t.Fatal(err)
	}
	if _, err := WritePin(want); err != nil {
		t.Fatal(err)
	}
	if got, err := Digest(); got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	name, err := pin.File(pinned)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if err := os.WriteFile(name, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Digest(); driver.CodeOf(err) != driver.CodeInvalid {
		t.Errorf("a spoilt pin: %v", err)
	}
	ReleaseDigest = "sha256:" + strings.Repeat("cd", 32)
	t.Cleanup(func() { ReleaseDigest = "" })
	if got, err := Digest(); got != ReleaseDigest || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
