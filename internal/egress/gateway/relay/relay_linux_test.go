package relay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// gatewayArg makes a gateway of this program: see runGateway.
const gatewayArg = "gateway"

// TestMain is the relay of the crews that the tests open, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		os.Exit(Main())
	}
	if len(os.Args) == 3 && os.Args[1] == gatewayArg {
		if err := runGateway(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const limit = 20 * time.Second

var target = netip.MustParseAddrPort("203.0.113.1:443")

// front is a router that listens, and hands over to a crew.
type front struct {
	at    string
	crew  *Crew
	tally egress.Tally
	mu    sync.Mutex
	gone  int // connections that have ended
}

// serve makes a front to a server, until ctx ends.
func serve(ctx context.Context, o Options, server string) (*front, func(), error) {
	rule, err := driver.ParseRule("example.com")
	if err != nil {
		return nil, nil, err
	}
	policy, err := egress.Compile([]driver.Rule{rule}, egress.Options{})
	if err != nil {
		return nil, nil, err
	}
	var f front
	if f.crew, err = Open(ctx, o); err != nil {
		return nil, nil, err
	}
	var pins gateway.Pins
	pins.Pin("example.com", false, []netip.Addr{target.Addr()}, gateway.MaxTTL, time.Now())
	router := gateway.NewRouter(gateway.RouterOptions{Policy: policy, Pins: &pins, Denials: &f.tally, Conns: o.Conns,
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server)
		},
		Carry: func(ctx context.Context, p gateway.Passage, ended func(error)) {
			f.crew.Carry(ctx, p, func(err error) {
				ended(err)
				f.mu.Lock()
				f.gone++
				f.mu.Unlock()
			})
		}})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	f.at = l.Addr().String()
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { router.Serve(ctx, c, target) })
		}
	})
	return &f, func() {
		cancel()
		_ = l.Close()
		f.crew.Close()
		all.Wait()
	}, nil
}

func frontOf(t *testing.T, o Options, server string) *front {
	t.Helper()
	f, end, err := serve(t.Context(), o, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return f
}

func (f *front) ended() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}

// relays are the processes of a front's relays.
func (f *front) relays() []*os.Process {
	f.crew.mu.Lock()
	defer f.crew.mu.Unlock()
	var all []*os.Process
	for _, m := range f.crew.mates {
		all = append(all, m.process)
	}
	return all
}

func dial(t *testing.T, at string) *net.TCPConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(limit))
	return c.(*net.TCPConn) //nolint:forcetypeassert // it is one
}

// eventually waits for what other processes bring about.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(limit); !so(); <-tick.C {
		if time.Now().After(until) {
			t.Fatalf("it does not come to it that %s", what)
		}
	}
}

func plain(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// ask sends a request on a connection that stays open, and gives the answer.
func ask(t *testing.T, c net.Conn) string {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func alive(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "alive") }

// Go's own client and server: HTTP/1 and, inside TLS, HTTP/2.
func TestRealClientsGetThroughARelay(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Got", fmt.Sprint(n))
		_, _ = w.Write(bytes.Repeat([]byte("x"), size))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	for scheme, at := range map[string]string{"https": server.Listener.Addr().String(), "http": plain(t, server.Config.Handler.ServeHTTP)} {
		f := frontOf(t, Options{Conns: 100, Files: MinFiles}, at)
		pool := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs //nolint:forcetypeassert // it is one
		tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com", MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", f.at)
			}}
		client := &http.Client{Transport: tr, Timeout: time.Minute}
		for range 3 {
			resp, err := client.Post(scheme+"://example.com:443/", "text/plain", bytes.NewReader(make([]byte, size)))
			if err != nil {
				t.Fatal(scheme, err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err != nil || n != size || resp.Header.Get("X-Got") != fmt.Sprint(size) {
				t.Errorf("%s: %d bytes, %s got, %v", scheme, n, resp.Header.Get("X-Got"), err)
			}
		}
		if told, _ := f.tally.Denied(); len(told) > 0 {
			t.Errorf("denied %+v", told)
		}
		tr.CloseIdleConnections()
		eventually(t, "the slots are free", func() bool { return f.held() == 0 })
	}
}

// held is how many connections the relays have.
func (f *front) held() int {
	f.crew.mu.Lock()
	defer f.crew.mu.Unlock()
	n := 0
	for _, m := range f.crew.mates {
		n += len(m.held)
	}
	return n
}

func TestWhatWasReadAheadIsHandedOver(t *testing.T) {
	t.Parallel()
	const head = "POST /2 HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n"
	const body = "\r\n3\r\nend\r\n0\r\n\r\n"
	first := "GET / HTTP/1.1\r\nHost: example.com\r\nX: " + strings.Repeat("x", 6000) + "\r\n\r\n"
	words, want := first+head+body, first+head+"Connection: close\r\n"+body
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := frontOf(t, Options{Conns: 10, Files: MinFiles}, l.Addr().String())
	c := dial(t, f.at)
	if _, err := io.WriteString(c, words); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(server)
	if err != nil || string(got) != want {
		t.Errorf("the server got %q, %v", got, err)
	}
	_, _ = io.WriteString(server, "the answer")
	_ = server.Close()
	if back, err := io.ReadAll(c); err != nil || string(back) != "the answer" {
		t.Errorf("the client got %q, %v", back, err)
	}
	eventually(t, "the slot is free", func() bool { return f.held() == 0 && f.ended() == 1 })
}

func TestARelayTellsWhatItRefuses(t *testing.T) {
	t.Parallel()
	var served sync.Map
	f := frontOf(t, Options{Conns: 10, Files: MinFiles}, plain(t, func(w http.ResponseWriter, r *http.Request) {
		served.Store(r.Host, true)
		alive(w, r)
	}))
	c := dial(t, f.at)
	if got := ask(t, c); got != "alive" {
		t.Errorf("the client got %q", got)
	}
	if _, err := io.WriteString(c, "GET /secret-path HTTP/1.1\r\nHost: evil.example\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if back, _ := io.ReadAll(c); len(back) > 0 {
		t.Errorf("the client got %q", back)
	}
	eventually(t, "it is told", func() bool { return f.ended() == 1 })
	told, _ := f.tally.Denied()
	if len(told) != 1 || told[0].Reason != egress.OtherHost || told[0].Host != "example.com" || told[0].Addr != target.Addr() || told[0].Port != target.Port() {
		t.Errorf("denied %+v", told)
	}
	if _, ok := served.Load("evil.example"); ok {
		t.Error("the server got it")
	}
	if f.held() != 0 {
		t.Error("a slot is still taken")
	}
}

func TestAKilledRelayIsReplacedAndItsConnectionsEnd(t *testing.T) {
	t.Parallel()
	f := frontOf(t, Options{Conns: 10, Files: MinFiles}, plain(t, alive))
	var all []*net.TCPConn
	for range 5 {
		c := dial(t, f.at)
		ask(t, c)
		all = append(all, c)
	}
	was := f.relays()
	if len(was) != 1 || f.held() != 5 {
		t.Fatalf("%d relays hold %d", len(was), f.held())
	}
	if err := was[0].Kill(); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it goes on: %d, %v", n, err)
		}
	}
	eventually(t, "the slots are free", func() bool { return f.held() == 0 && f.ended() == 5 })
	if got := ask(t, dial(t, f.at)); got != "alive" {
		t.Errorf("the client got %q", got)
	}
	if now := f.relays(); len(now) != 1 || now[0].Pid == was[0].Pid {
		t.Errorf("%v after %v", now, was)
	}
	if told, _ := f.tally.Denied(); len(told) > 0 {
		t.Errorf("denied %+v", told)
	}
}

func TestAnIdleRelayIsReplacedBeforeItIsNeeded(t *testing.T) {
	t.Parallel()
	f := frontOf(t, Options{Conns: 10, Files: MinFiles}, plain(t, alive))
	f.crew.mu.Lock()
	f.crew.mates[0].since = time.Now().Add(-2 * lasting)
	f.crew.mu.Unlock()
	was := f.relays()[0]
	if err := was.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is another one", func() bool { now := f.relays(); return len(now) == 1 && now[0].Pid != was.Pid })
}

// A program that allows 1024 files holds more connections than that, by relays
// that allow as many.
func TestMoreConnectionsThanAProcessMayHaveFiles(t *testing.T) {
	t.Parallel()
	const n = 1200
	p := startGateway(t, plain(t, alive))
	for range n {
		c := dial(t, p.at)
		if got := ask(t, c); got != "alive" {
			t.Fatalf("the client got %q", got)
		}
	}
	if relays := p.relays(); len(relays) < 3 {
		t.Errorf("%d relays", len(relays))
	}
}

func TestNothingPassesOnceTheGatewayIsKilled(t *testing.T) {
	t.Parallel()
	p := startGateway(t, plain(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	c := dial(t, p.at)
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, 4<<20); err != nil {
		t.Fatal(err)
	}
	relays := p.relays()
	if len(relays) == 0 {
		t.Fatal("there is no relay")
	}
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	eventually(t, "the relays are gone", func() bool { return !slices.ContainsFunc(relays, running) })
	// What was on its way arrives, and then nothing: there is nobody.
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it goes on")
	}
}

// running reports whether a process does anything yet: one that has ended, but
// that nobody has waited for, has nothing open.
func running(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

// other is a gateway in a process of its own.
type other struct {
	cmd *exec.Cmd
	at  string
}

func startGateway(t *testing.T, server string) *other {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", gatewayArg, server)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	at, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &other{cmd, strings.TrimSpace(at)}
}

// runGateway serves in front of a server until its stdin ends, as one who may
// have as few files open as a gateway can do with. It writes where it listens.
func runGateway(server string) error {
	files := unix.Rlimit{Cur: MinFiles, Max: MinFiles}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files.Cur, Max: files.Max}); err != nil {
		return err
	}
	f, end, err := serve(context.Background(), Options{Conns: 10_000, Files: MinFiles}, server)
	if err != nil {
		return err
	}
	defer end()
	fmt.Println(f.at)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// relays are the processes that it has started.
func (o *other) relays() []string {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", o.cmd.Process.Pid))
	var all []string
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		all = append(all, strings.Fields(string(b))...)
	}
	return all
}

func TestARelayHasNothingThatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	f := frontOf(t, Options{Conns: 10, Files: MinFiles, Memory: 1 << 30}, plain(t, alive))
	pid := f.relays()[0].Pid
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err == nil && strings.TrimRight(string(env), "\x00") != "GOMEMLIMIT=1073741824" {
		t.Errorf("its environment is %q", env)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil && !errors.Is(err, os.ErrPermission) {
		t.Fatal(err)
	}
	sockets := 0
	for _, file := range files {
		at, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, file.Name()))
		if inherited, _ := os.Readlink("/proc/self/fd/" + file.Name()); inherited == at {
			continue // from who runs the tests
		}
		kind, _, _ := strings.Cut(at, ":")
		switch {
		case kind == "socket":
			sockets++
		case kind != "anon_inode" && kind != "/dev/null" && !strings.HasPrefix(at, "/sys/fs/cgroup/"): // of Go's runtime
			t.Errorf("%s is open", at)
		}
	}
	if sockets != 1 {
		t.Errorf("%d sockets are open", sockets)
	}
}

func TestACrewNeedsFiles(t *testing.T) {
	t.Parallel()
	if c, err := Open(t.Context(), Options{Conns: 1, Files: MinFiles - 1}); err == nil {
		c.Close()
		t.Error("it is opened")
	}
}

func TestAfterTheEndNothingIsTaken(t *testing.T) {
	t.Parallel()
	c, err := Open(t.Context(), Options{Conns: 1, Files: MinFiles})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Close()
	a, b := pair(t)
	var ended []error
	c.Carry(t.Context(), gateway.Passage{Client: a, Server: b}, func(err error) { ended = append(ended, err) })
	if len(ended) != 1 || !errors.Is(ended[0], errClosed) {
		t.Errorf("%v", ended)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the client is left open: %v", err)
	}
}

func TestWhatCannotBeHandedOverIsRefused(t *testing.T) {
	t.Parallel()
	c, err := Open(t.Context(), Options{Conns: 1, Files: MinFiles})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 { // and its slot is free again
		a, b := net.Pipe()
		var ended []error
		c.Carry(t.Context(), gateway.Passage{Client: a, Server: b}, func(err error) { ended = append(ended, err) })
		if len(ended) != 1 || !errors.Is(ended[0], errNoRelay) {
			t.Errorf("%v", ended)
		}
	}
}

// pair is two connections that lead nowhere.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a = dial(t, l.Addr().String())
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return a, b
}
