package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// world is an environment of its own: variables and a home directory.
func world(t *testing.T, vars map[string]string) environment {
	t.Helper()
	return environment{getenv: func(k string) string { return vars[k] }, home: t.TempDir(), goos: "linux"}
}

func write(t *testing.T, content string, elem ...string) {
	t.Helper()
	name := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func dockerContext(t *testing.T, dir, name, meta string) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	write(t, meta, dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json")
}

func TestM145TheEngineIsFoundAsTheDockerCommandFindsIt(t *testing.T) {
	meta := `{"Name":"colima","Endpoints":{"docker":{"Host":"unix:///colima.sock","SkipTLSVerify":false}}}`
	other := `{"Name":"other","Endpoints":{"docker":{"Host":"unix:///other.sock"}}}`
	for _, c := range []struct {
		name    string
		host    string
		vars    map[string]string
		config  string
		want    string // host; "" = the known sockets
		refused string
	}{
		{name: "nothing said: the known sockets"},
		{name: "the current context of the configuration", config: `{"currentContext":"colima"}`, want: "unix:///colima.sock"},
		{name: "DOCKER_CONTEXT beats the configuration", config: `{"currentContext":"colima"}`, vars: map[string]string{"DOCKER_CONTEXT": "other"}, want: "unix:///other.sock"},
		{name: "DOCKER_HOST beats contexts", config: `{"currentContext":"colima"}`, vars: map[string]string{"DOCKER_CONTEXT": "other", "DOCKER_HOST": "unix:///env.sock"}, want: "unix:///env.sock"},
		{name: "an explicit host beats all", host: "unix:///mine.sock", config: `{"currentContext":"colima"}`, vars: map[string]string{"DOCKER_HOST": "unix:///env.sock"}, want: "unix:///mine.sock"},
		{name: "the context default is no context", config: `{"currentContext":"colima"}`, vars: map[string]string{"DOCKER_CONTEXT": "default"}},
		{name: "a broken configuration has no context", config: `{`},
		{name: "a context that is not there", vars: map[string]string{"DOCKER_CONTEXT": "nope"}, refused: "no such context"},
		{name: "a context that skips verification", vars: map[string]string{"DOCKER_CONTEXT": "lax"}, refused: "skips TLS"},
		{name: "a context without an engine", vars: map[string]string{"DOCKER_CONTEXT": "empty"}, refused: "no docker endpoint"},
		{name: "DOCKER_HOST over ssh", vars: map[string]string{"DOCKER_HOST": "ssh://h"}, refused: "ssh"},
		{name: "plain TCP from DOCKER_HOST", vars: map[string]string{"DOCKER_HOST": "tcp://10.0.0.1:2375"}, refused: "TLS"},
		{name: "plain TCP on loopback", vars: map[string]string{"DOCKER_HOST": "tcp://127.0.0.1:2375"}, want: "tcp://127.0.0.1:2375"},
		{name: "TCP with certificates", vars: map[string]string{"DOCKER_HOST": "tcp://10.0.0.1:2376", "DOCKER_CERT_PATH": "/c"}, want: "tcp://10.0.0.1:2376"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := world(t, c.vars)
			dir := filepath.Join(env.home, ".docker")
			dockerContext(t, dir, "colima", meta)
			dockerContext(t, dir, "other", other)
			dockerContext(t, dir, "lax", `{"Endpoints":{"docker":{"Host":"tcp://h:2376","SkipTLSVerify":true}}}`)
			dockerContext(t, dir, "empty", `{"Endpoints":{}}`)
			if c.config != "" {
				write(t, c.config, dir, "config.json")
			}
			got, err := Options{Host: c.host}.candidates(env)
			if c.refused != "" {
				if !errors.Is(err, driver.CodeInvalid) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(got) < 3 || got[0].host != "unix:///var/run/docker.sock" {
					t.Errorf("got %v", got)
				}
				return
			}
			if len(got) != 1 || got[0].host != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestM148SocketsOfEveryColimaProfileAreTried(t *testing.T) {
	env := world(t, map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"})
	for _, p := range []string{".colima/default/docker.sock", ".colima/work/docker.sock", ".colima/docker.sock"} {
		write(t, "", env.home, p)
	}
	got, err := Options{}.candidates(env)
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, e := range got {
		hosts = append(hosts, e.host)
	}
	for _, p := range []string{"/run/user/7/docker.sock", env.home + "/.colima/default/docker.sock", env.home + "/.colima/work/docker.sock", env.home + "/.colima/docker.sock", env.home + "/.orbstack/run/docker.sock"} {
		if !slices.Contains(hosts, "unix://"+p) {
			t.Errorf("%s is not tried: %v", p, hosts)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(hosts)))) != len(hosts) {
		t.Errorf("tried twice: %v", hosts)
	}
}

func TestM147ASocketWithoutAListenerIsPassedOver(t *testing.T) {
	f := newFake(t)
	env := world(t, nil)
	dead := filepath.Join(env.home, ".docker/run/docker.sock")
	if err := os.MkdirAll(filepath.Dir(dead), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close() // the file stays, nobody listens
	live := filepath.Join(env.home, ".colima/x/docker.sock")
	if err := os.MkdirAll(filepath.Dir(live), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(strings.TrimPrefix(f.host, "unix://"), live); err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(knownSockets(env), func(e endpoint) bool { return !strings.HasPrefix(e.host, "unix://"+env.home) })
	b := open(Options{}, env)
	b.candidates = func() ([]endpoint, error) { return list, nil }
	if _, err := b.Now(limited(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := b.endpoint.Load().host; got != "unix://"+live {
		t.Errorf("chose %s", got)
	}

	// And when nobody answers anywhere, the error names all that was tried.
	b = open(Options{}, env)
	b.candidates = func() ([]endpoint, error) { return list[:2], nil }
	_, err = b.Now(limited(t, 10*time.Second))
	if !errors.Is(err, driver.CodeUnavailable) || !strings.Contains(err.Error(), dead) || !strings.Contains(err.Error(), list[1].host) || !strings.Contains(err.Error(), hintStart) {
		t.Errorf("%v", err)
	}
}

func TestAnEngineThatIsDownIsAnErrorWithinSeconds(t *testing.T) {
	dir := t.TempDir()
	mute := filepath.Join(dir, "mute")
	l, err := net.Listen("unix", mute)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it listens and never answers
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refusing.Close()
	whys := map[string]string{"no socket": "no such file or directory", "a mute socket": "something listens but does not answer within 3s", "a closed port": "nobody listens there"}
	for name, host := range map[string]string{"no socket": "unix://" + filepath.Join(dir, "none"), "a mute socket": "unix://" + mute, "a closed port": "tcp://" + refusing.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			b, err := Open(t.Context(), Options{Host: host})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			calls := map[string]func() error{
				"create": func() error { return second(b.Create(t.Context(), testSpec("x"))) },
				"attach": func() error { return second(b.Attach(t.Context(), strings.Repeat("0", 64))) },
				"delete": func() error { return b.DeleteSchedule(t.Context(), "x") },
				"list": func() error {
					for _, err := range b.List(t.Context(), nil) {
						return err
					}
					return nil
				},
			}
			if name == "a mute socket" { // each call takes its time
				calls = map[string]func() error{"create": calls["create"]}
			}
			for what, call := range calls {
				if err := call(); !errors.Is(err, driver.CodeUnavailable) || !strings.Contains(err.Error(), hintStart) || !strings.HasSuffix(err.Error(), host+" (the host option): "+whys[name]+" ("+hintStart+")") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if d := time.Since(began); d > 2*pingLimit {
				t.Errorf("it took %v", d)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestM150M151TheVersionIsNegotiated(t *testing.T) {
	for _, c := range []struct {
		name, api, min string
		speaks         string // the version we use; "" = refused
		hint           string
	}{
		{name: "engine 20.10", api: "1.41", min: "1.12", speaks: "1.41"},
		{name: "engine 28", api: "1.51", min: "1.24", speaks: "1.51"},
		{name: "engine 29.0, which takes nothing below 1.44", api: "1.52", min: "1.44", speaks: "1.52"},
		{name: "engine 29.5, which takes 1.40 and later", api: "1.54", min: "1.40", speaks: "1.54"},
		{name: "a newer engine than this client", api: "1.70", min: "1.44", speaks: "1.57"},
		{name: "an engine that takes newer clients only", api: "1.80", min: "1.70", hint: "upgrade sandboxio"},
		{name: "engine 19.03", api: "1.40", min: "1.12", hint: "upgrade Docker Engine"},
		{name: "an ancient engine", api: "1.24", min: "1.12", hint: "upgrade Docker Engine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.api, f.minAPI = c.api, c.min
			b := f.open(t)
			_, err := b.Now(limited(t, 10*time.Second))
			if c.speaks == "" {
				if !errors.Is(err, driver.CodeUnsupported) || !strings.Contains(err.Error(), c.hint) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := b.cli.Load().ClientVersion(); got != c.speaks {
				t.Errorf("speaks %s", got)
			}
		})
	}
}
