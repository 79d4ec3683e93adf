//go:build dockertest

package docker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/reap"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// changing are the calls that make or change something on an engine.
var changing = regexp.MustCompile(`^(POST|PUT|DELETE) (/v[0-9.]+)?/`)

// passer passes the engine's API on, and calls back when it has answered the
// nth call that changes something, before the caller hears of it; of every such
// call when nth is zero.
type passer struct {
	proxy *httputil.ReverseProxy
	nth   int
	then  func()

	mu   sync.Mutex
	seen []string
}

func (p *passer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	due := false
	if changing.MatchString(call) {
		p.mu.Lock()
		p.seen = append(p.seen, call)
		due = p.nth == 0 || len(p.seen) == p.nth
		p.mu.Unlock()
	}
	if !due || strings.HasSuffix(r.URL.Path, "/attach") { // an attachment has no end
		if due {
			p.then()
		}
		p.proxy.ServeHTTP(w, r)
		return
	}
	p.proxy.ServeHTTP(late{w, p.then}, r)
}

// late calls before the first word of an answer is passed on.
type late struct {
	http.ResponseWriter
	then func()
}

func (l late) WriteHeader(code int) { l.then(); l.ResponseWriter.WriteHeader(code) }

// pass listens on a socket of its own for the real engine.
func pass(t testing.TB, engine string, nth int, then func()) (*passer, string) {
	t.Helper()
	p := &passer{nth: nth, then: then, proxy: toward(engine)}
	return p, listening(t, p)
}

// toward passes requests on to an engine.
func toward(engine string) *httputil.ReverseProxy {
	socket := strings.TrimPrefix(engine, "unix://")
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	// Nobody closes what it would keep open.
	proxy.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {}
	return proxy
}

// listening serves on a socket until the test's end.
func listening(t testing.TB, h http.Handler) (host string) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "d.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", at)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h} //nolint:gosec // it is for one process of ours
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() { _ = srv.Close(); served.Wait() })
	return "unix://" + at
}

// TestACreatorThatIsKilledLeavesNothingAfterASweep kills it after each call by
// which it makes something, until it has made all of it.
func TestACreatorThatIsKilledLeavesNothingAfterASweep(t *testing.T) {
	b, image := engine(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var steps, whole []string
	for nth := 1; ; nth++ {
		token := realSpec(t, image).Token
		started := make(chan *os.Process, 1)
		killed := make(chan struct{})
		once := sync.OnceFunc(func() { _ = (<-started).Kill(); close(killed) })
		p, host := pass(t, needed(t, "SANDBOXIO_TEST_DOCKER"), nth, once)
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "SANDBOXIO_TEST_OWNER="+token, "SANDBOXIO_TEST_NAME="+t.Name(), "SANDBOXIO_TEST_RULE=allowed.example", "SANDBOXIO_TEST_DOCKER="+host)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started <- cmd.Process
		made := make(chan bool, 1)
		go func() {
			buf := make([]byte, 128)
			n, _ := out.Read(buf)
			made <- n > 0
		}()
		finished := false
		select {
		case <-killed:
		case finished = <-made:
			once()
		case <-time.After(60 * time.Second):
			once()
			t.Fatal("it neither finished nor came to its end")
		}
		_ = cmd.Wait()
		p.mu.Lock()
		last := p.seen[min(nth, len(p.seen))-1]
		whole = p.seen
		p.mu.Unlock()
		steps = append(steps, last)

		// What goes by itself has a moment for it; then comes a sweep, by which
		// everything is old.
		gone := func() []string { return ofInstance(t, b, token) }
		for end := time.Now().Add(10 * time.Second); len(gone()) > 0 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if _, err := reap.Sweep(t.Context(), b, reap.Options{Kill: true, MaxAge: time.Nanosecond, Labels: map[string]string{driver.LabelInstance: token}}); err != nil && !errors.Is(err, driver.CodeNotFound) {
				t.Errorf("after %q: %v", last, err)
			}
		}
		if l := gone(); len(l) > 0 {
			t.Errorf("after %q: left %v", last, l)
		}
		if finished {
			break
		}
		if nth > 40 {
			t.Fatal("it is never done")
		}
	}
	t.Logf("killed after each of %q", steps)
	var creates int
	for _, s := range whole { // of the last time, which nothing cut short
		if strings.HasSuffix(s, "/create") {
			creates++
		}
	}
	if creates < 5 { // the look at the host, two networks, gateway and sandbox
		t.Errorf("of the %d calls %d create something", len(whole), creates)
	}
}

// ofInstance lists, past the driver, all that carries a sandbox's instance.
func ofInstance(t testing.TB, b *Backend, token string) []string {
	t.Helper()
	cli := raw(t, b)
	filters := client.Filters{}.Add("label", driver.LabelInstance+"="+token)
	cs, err := cli.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := cli.NetworkList(t.Context(), client.NetworkListOptions{Filters: filters})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range cs.Items {
		out = append(out, c.Names[0])
	}
	for _, n := range ns.Items {
		out = append(out, n.Name)
	}
	return out
}
