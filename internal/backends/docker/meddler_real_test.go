//go:build dockertest

package docker

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// meddler passes the engine's API on, and does to each call what it is told to.
type meddler struct {
	proxy  *httputil.ReverseProxy
	fault  func(call string) fault                                // nil is none
	before func(call string, r *http.Request, body []byte) []byte // gives the body that is sent on; nil leaves it

	mu   sync.Mutex
	seen []string
}

// cut is a fault more than the fake engine has: of an answer the first half
// arrives.
var cut = fault(-1)

// faults are those of one call.
var faults = map[string]fault{"refused": refuse, "dropped": drop, "answer lost": lose, "answer cut": cut}

func (m *meddler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A client sends again what it may when a connection that it had open ends
	// without an answer. With one for each call every fault is met.
	w.Header().Set("Connection", "close")
	var body []byte
	if r.Method == http.MethodPost && r.Header.Get("Upgrade") == "" {
		body, _ = io.ReadAll(r.Body)
	}
	call := m.note(callOf(r, body))
	if body != nil {
		if m.before != nil {
			body = m.before(call, r, body)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	how := none
	if m.fault != nil {
		how = m.fault(call)
	}
	switch how {
	case refuse:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"message": "refused by the test"}`)
	case drop:
		panic(http.ErrAbortHandler)
	case lose:
		m.proxy.ServeHTTP(nowhere{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	case cut:
		rec := httptest.NewRecorder()
		m.proxy.ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		m.proxy.ServeHTTP(w, r)
	}
}

// note gives a call the number that it has among those of its name.
func (m *meddler) note(call string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 1
	for _, c := range m.seen {
		if strings.HasPrefix(c, call+" #") {
			n++
		}
	}
	call = fmt.Sprintf("%s #%d", call, n)
	m.seen = append(m.seen, call)
	return call
}

// calls are those that came, in order.
func (m *meddler) calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen)
}

// anew counts from the next call on.
func (m *meddler) anew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = nil
}

var (
	version = regexp.MustCompile(`^/v[0-9.]+/`)
	ofOne   = regexp.MustCompile(`^/(containers|networks|images|volumes|exec)/([^/]+)`)
	ofWhom  = regexp.MustCompile(`sandboxio-(look|inside|uplink|gateway)-`)
)

// callOf names a call by what it does, and not by what it does it to.
func callOf(r *http.Request, body []byte) string {
	path := version.ReplaceAllString(r.URL.Path, "/")
	path = ofOne.ReplaceAllStringFunc(path, func(s string) string {
		if strings.HasSuffix(s, "/create") || strings.HasSuffix(s, "/json") {
			return s
		}
		return s[:strings.LastIndex(s, "/")] + "/…"
	})
	call := r.Method + " " + path
	if strings.HasSuffix(path, "/create") {
		if m := ofWhom.FindStringSubmatch(r.URL.RawQuery + string(body)); m != nil {
			call += " of " + m[1]
		}
	}
	return call
}

// nowhere takes an answer, and a connection that becomes something else.
type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header         { return n.h }
func (n nowhere) WriteHeader(int)             {}
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	near, far := net.Pipe()
	_ = far.Close()
	return near, bufio.NewReadWriter(bufio.NewReader(near), bufio.NewWriter(near)), nil
}

// meddled is a backend on the engine under test with a meddler before it.
func meddled(t testing.TB, opts Options) (*Backend, *meddler) {
	t.Helper()
	m := &meddler{proxy: toward(needed(t, "SANDBOXIO_TEST_DOCKER"))}
	opts.Host = listening(t, m)
	b, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, m
}
