package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// fakeEngine answers the Engine API as far as this package uses it, over a
// real unix socket, and fails where a test wants it to. It proves how we
// handle an engine, never that a control works.
type fakeEngine struct {
	t    *testing.T
	host string

	api, minAPI string                                         // versions it announces and accepts
	info        map[string]any                                 // overrides of /info
	images      map[string]*container.Config                   // by reference or id
	fault       func(call string, w http.ResponseWriter) fault // before a call
	after       func(call string)                              // after a call took effect
	report      func(guest.Report) guest.Report                // changes what the guest attests
	guestDies   bool                                           // the guest ends instead of answering
	refuses     func() bool                                    // the guest does not move the deadline
	warnings    []string                                       // of create
	volumes     map[string]fakeVolume
	binary      []byte // what the helper volume holds

	mu         sync.Mutex
	containers map[string]*fakeContainer
	networks   []network.Summary // listed in any order
	calls      []string
	next       int
}

type fakeVolume struct {
	Name, Driver, CreatedAt, Mountpoint string
	Options                             map[string]string
}

type fakeContainer struct {
	ID, Name string
	Config   container.Config
	Host     container.HostConfig
	State    container.ContainerState
	Created  time.Time
	execs    []string
	deadline time.Time // PID 1's; fakeEngine.mu
	exited   chan struct{}
	once     sync.Once
}

type fault int

const (
	none     fault = iota
	refuse         // 500, without effect
	drop           // the connection closes, without effect
	lose           // the effect happens, the answer is lost
	hang           // nothing happens until the client goes away
	answered       // the hook has answered itself
)

// fakeGuest is what stands for the guest's binary.
var fakeGuest = []byte("not really a program")

func newFake(t *testing.T) *fakeEngine {
	t.Helper()
	f := &fakeEngine{
		t: t, api: "1.41", minAPI: "1.24", binary: fakeGuest,
		images:     map[string]*container.Config{testImage: {}},
		containers: map[string]*fakeContainer{},
	}
	digest := digestOf(fakeGuest)
	f.volumes = map[string]fakeVolume{volumeName(digest): {Name: volumeName(digest), Driver: "local", CreatedAt: "2026-01-01T00:00:00Z", Mountpoint: "/m"}}
	pinGuest(t, digest)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	f.host = "unix://" + socket
	srv := &http.Server{Handler: f}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()
		f.mu.Lock()
		all := slices.Collect(maps.Values(f.containers))
		f.mu.Unlock()
		for _, c := range all {
			c.end()
		}
	})
	return f
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// pinGuest makes digest the one this test's program trusts, for guest and
// gateway.
func pinGuest(t *testing.T, digest string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	_, gerr := guest.WritePin(digest)
	_, err := boot.WritePin(digest)
	if err := errors.Join(gerr, err); err != nil {
		t.Fatal(err)
	}
}

func (f *fakeEngine) open(t *testing.T) *Backend {
	t.Helper()
	b, err := Open(t.Context(), Options{Host: f.host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	b.createGrace, b.searchLimit = 200*time.Millisecond, 200*time.Millisecond
	return b
}

// hook sets what happens around calls, while calls may be under way.
func (f *fakeEngine) hook(before func(call string, w http.ResponseWriter) fault, after func(call string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.after = before, after
}

// left lists the containers the engine still has.
func (f *fakeEngine) left() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.containers {
		out = append(out, c.Name)
	}
	return out
}

func (f *fakeEngine) called() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (c *fakeContainer) end() { c.once.Do(func() { close(c.exited) }) }

var routes = []struct {
	call string
	re   *regexp.Regexp
}{
	{"ping", regexp.MustCompile(`^(?:GET|HEAD) /_ping$`)},
	{"info", regexp.MustCompile(`^GET /info$`)},
	{"image", regexp.MustCompile(`^GET /images/(.+)/json$`)},
	{"volume", regexp.MustCompile(`^GET /volumes/(.+)$`)},
	{"create", regexp.MustCompile(`^POST /containers/create$`)},
	{"copy", regexp.MustCompile(`^GET /containers/([^/]+)/archive$`)},
	{"attach", regexp.MustCompile(`^POST /containers/([^/]+)/attach$`)},
	{"start", regexp.MustCompile(`^POST /containers/([^/]+)/start$`)},
	{"wait", regexp.MustCompile(`^POST /containers/([^/]+)/wait$`)},
	{"rename", regexp.MustCompile(`^POST /containers/([^/]+)/rename$`)},
	{"remove", regexp.MustCompile(`^DELETE /containers/([^/]+)$`)},
	{"inspect", regexp.MustCompile(`^GET /containers/([^/]+)/json$`)},
	{"list", regexp.MustCompile(`^GET /containers/json$`)},
	{"networks", regexp.MustCompile(`^GET /networks$`)},
	{"logs", regexp.MustCompile(`^GET /containers/([^/]+)/logs$`)},
	{"exec", regexp.MustCompile(`^POST /containers/([^/]+)/exec$`)},
	{"execstart", regexp.MustCompile(`^POST /exec/([^/]+)/start$`)},
}

var versioned = regexp.MustCompile(`^/v(\d+\.\d+)(/.*)$`)

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := r.URL.Path
	version := ""
	if m := versioned.FindStringSubmatch(p); m != nil {
		version, p = m[1], m[2]
	}
	for _, route := range routes {
		m := route.re.FindStringSubmatch(r.Method + " " + p)
		if m == nil {
			continue
		}
		f.mu.Lock()
		f.calls = append(f.calls, route.call)
		before, after := f.fault, f.after
		f.mu.Unlock()
		if version != "" && minor(version) < minor(f.minAPI) {
			f.fail(w, 400, fmt.Sprintf("client version %s is too old. Minimum supported API version is %s", version, f.minAPI))
			return
		}
		if version != "" && minor(version) > minor(f.api) {
			f.fail(w, 400, fmt.Sprintf("client version %s is too new. Maximum supported API version is %s", version, f.api))
			return
		}
		do := none
		if before != nil {
			do = before(route.call, w)
		}
		arg := ""
		if len(m) > 1 {
			arg = m[1]
		}
		switch do {
		case refuse:
			f.fail(w, 500, "injected")
			return
		case answered:
			return
		case none:
		case drop:
			abort(w)
			return
		case hang:
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		case lose:
			f.serve(route.call, arg, httpDiscard{http.Header{}}, r)
			abort(w)
			return
		}
		f.serve(route.call, arg, w, r)
		if after != nil {
			after(route.call)
		}
		return
	}
	f.t.Errorf("the fake engine does not know %s %s", r.Method, p)
	f.fail(w, 404, "page not found")
}

type httpDiscard struct{ h http.Header }

func (d httpDiscard) Header() http.Header         { return d.h }
func (d httpDiscard) Write(b []byte) (int, error) { return len(b), nil }
func (d httpDiscard) WriteHeader(int)             {}

func minor(v string) int {
	_, m, _ := strings.Cut(v, ".")
	n, _ := strconv.Atoi(m)
	return n
}

func abort(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}

func (f *fakeEngine) fail(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": text})
}

func (f *fakeEngine) reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fakeEngine) find(id string) *fakeContainer {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		if c.ID == id || c.Name == id {
			return c
		}
	}
	return nil
}

func (f *fakeEngine) serve(call, arg string, w http.ResponseWriter, r *http.Request) {
	var c *fakeContainer
	switch call {
	case "copy", "attach", "start", "wait", "remove", "inspect", "logs", "exec", "rename":
		if c = f.find(arg); c == nil {
			f.fail(w, 404, "No such container: "+arg)
			return
		}
	}
	switch call {
	case "ping":
		w.Header().Set("Api-Version", f.api)
		w.Header().Set("Ostype", "linux")
	case "info":
		info := map[string]any{"MemoryLimit": true, "SwapLimit": true, "PidsLimit": true, "CpuCfsQuota": true, "SecurityOptions": []string{"name=seccomp,profile=default"},
			"SystemTime": time.Now().Format(time.RFC3339Nano), "KernelVersion": "6.1.0-fake", "Architecture": "x86_64"}
		maps.Copy(info, f.info)
		f.reply(w, info)
	case "image":
		cfg, ok := f.images[arg]
		if !ok {
			f.fail(w, 404, "No such image: "+arg)
			return
		}
		id := arg
		if !strings.HasPrefix(id, "sha256:") {
			id = digestOf([]byte(arg))
		}
		f.reply(w, map[string]any{"Id": id, "Config": cfg})
	case "volume":
		v, ok := f.volumes[arg]
		if !ok {
			f.fail(w, 404, "no such volume: "+arg)
			return
		}
		f.reply(w, v)
	case "create":
		f.create(w, r)
	case "copy":
		if f.binary == nil {
			f.fail(w, 404, "Could not find the file "+guest.Binary)
			return
		}
		stat, _ := json.Marshal(container.PathStat{Name: "sandboxio-guest", Size: int64(len(f.binary)), Mode: 0o755})
		w.Header().Set("X-Docker-Container-Path-Stat", base64.StdEncoding.EncodeToString(stat))
		var buf bytes.Buffer
		t := tar.NewWriter(&buf)
		_ = t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "sandboxio-guest", Mode: 0o755, Size: int64(len(f.binary))})
		_, _ = t.Write(f.binary)
		_ = t.Close()
		_, _ = w.Write(buf.Bytes())
	case "start":
		c.State = container.StateRunning
		w.WriteHeader(http.StatusNoContent)
	case "rename":
		f.rename(c, r.URL.Query().Get("name"), w)
	case "attach":
		f.hijack(w, c)
	case "exec":
		if c.State != container.StateRunning {
			f.fail(w, 409, "Container "+c.ID+" is not running")
			return
		}
		f.mu.Lock()
		id := fmt.Sprintf("%s-e%d", c.ID, len(c.execs))
		c.execs = append(c.execs, id)
		f.mu.Unlock()
		f.reply(w, map[string]string{"Id": id})
	case "execstart":
		c := f.find(strings.SplitN(arg, "-e", 2)[0])
		_, _ = io.Copy(io.Discard, r.Body)
		f.hijack(w, c)
	case "wait":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-c.exited:
			_ = json.NewEncoder(w).Encode(map[string]int{"StatusCode": 70})
		case <-r.Context().Done():
		}
	case "remove":
		f.mu.Lock()
		delete(f.containers, c.ID)
		f.mu.Unlock()
		c.end()
		w.WriteHeader(http.StatusNoContent)
	case "inspect":
		f.mu.Lock()
		v := c.inspect()
		f.mu.Unlock()
		f.reply(w, v)
	case "logs":
		text := "keeper started\n"
		head := []byte{1, 0, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint32(head[4:], uint32(len(text)))
		w.Header().Set("Content-Type", "application/vnd.docker.multiplexed-stream")
		_, _ = w.Write(append(head, text...))
	case "networks":
		f.mu.Lock()
		defer f.mu.Unlock()
		rand.Shuffle(len(f.networks), func(i, j int) { f.networks[i], f.networks[j] = f.networks[j], f.networks[i] })
		f.reply(w, append([]network.Summary{}, f.networks...))
	case "list":
		f.mu.Lock()
		defer f.mu.Unlock()
		out := []map[string]any{}
		for _, c := range f.containers {
			out = append(out, c.summary())
		}
		f.reply(w, out)
	}
}

func (f *fakeEngine) rename(c *fakeContainer, name string, w http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Name == name {
		f.fail(w, 400, "Renaming a container with the same name as its current name")
		return
	}
	for _, other := range f.containers {
		if other.Name == name {
			f.fail(w, 409, `Conflict. The container name "/`+name+`" is already in use`)
			return
		}
	}
	c.Name = name
	w.WriteHeader(http.StatusNoContent)
}

func (f *fakeEngine) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		container.Config
		HostConfig container.HostConfig
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		f.fail(w, 400, err.Error())
		return
	}
	if _, ok := f.images[body.Image]; !ok {
		f.fail(w, 404, "No such image: "+body.Image)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	c := &fakeContainer{ID: fmt.Sprintf("%064x", f.next), Name: r.URL.Query().Get("name"), Config: body.Config, Host: body.HostConfig,
		State: container.StateCreated, Created: time.Now(), exited: make(chan struct{})}
	if boot, err := guest.ParseBoot(c.Config.Cmd); err == nil {
		c.deadline = c.Created.Add(boot.Lifetime)
	}
	f.containers[c.ID] = c
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"Id": c.ID, "Warnings": f.warnings})
}

func (c *fakeContainer) mounts() []map[string]any {
	var out []map[string]any
	for _, m := range c.Host.Mounts {
		out = append(out, map[string]any{"Type": m.Type, "Name": m.Source, "Destination": m.Target, "RW": !m.ReadOnly})
	}
	return out
}

func (c *fakeContainer) inspect() map[string]any {
	path := ""
	if len(c.Config.Entrypoint) > 0 {
		path = c.Config.Entrypoint[0]
	}
	return map[string]any{"Id": c.ID, "Name": "/" + c.Name, "Path": path, "Args": c.Config.Cmd, "Created": c.Created.Format(time.RFC3339Nano), "Image": c.Config.Image,
		"State": map[string]any{"Status": c.State, "Running": c.State == container.StateRunning, "FinishedAt": c.Created.Format(time.RFC3339Nano)}, "Config": c.Config, "Mounts": c.mounts()}
}

func (c *fakeContainer) summary() map[string]any {
	return map[string]any{"Id": c.ID, "Names": []string{"/" + c.Name}, "Image": c.Config.Image, "Command": strings.Join(append(append([]string(nil), c.Config.Entrypoint...), c.Config.Cmd...), " "),
		"Labels": c.Config.Labels, "State": c.State, "Created": c.Created.Unix(), "Mounts": c.mounts()}
}

const testImage = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// testSpec is an order with everything resolved.
func testSpec(token string) driver.Spec {
	r, err := driver.Resources{}.Resolve()
	if err != nil {
		panic(err)
	}
	return driver.Spec{Token: token, Image: testImage, Lifetime: time.Minute, Resources: r, Trust: driver.Trusted("our own test"),
		Facts: driver.Facts{Instance: token, Owner: "owner"}, Labels: map[string]string{"team": "a"}}
}

// limited gives a context that ends a test that hangs, with its own message.
func limited(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
