package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// endpoint is one place where an engine may answer, and why we look there.
type endpoint struct {
	host   string
	certs  string // directory with ca.pem, cert.pem, key.pem; "" = no TLS
	source string // for people: "DOCKER_HOST", "context colima", …
}

// environment is what resolution reads of the world.
type environment struct {
	getenv func(string) string
	home   string
	goos   string
}

// candidates lists where to look. What was named explicitly, in options, by
// DOCKER_HOST or by a context, stands alone: when it does not answer, another
// engine must not quietly take its place.
func (o Options) candidates(env environment) ([]endpoint, error) {
	one := func(host, certs, source string) ([]endpoint, error) {
		e, err := o.secure(endpoint{host, certs, source}, env)
		if err != nil {
			return nil, err
		}
		return []endpoint{e}, nil
	}
	if o.Host != "" {
		return one(o.Host, o.Certs, "the host option")
	}
	if host := env.getenv("DOCKER_HOST"); host != "" {
		return one(host, o.Certs, "DOCKER_HOST")
	}
	name, source := env.getenv("DOCKER_CONTEXT"), "DOCKER_CONTEXT"
	if name == "" {
		name, source = currentContext(env), "the current context"
	}
	if name != "" && name != "default" {
		host, certs, err := readContext(env, name)
		if err != nil {
			return nil, driver.Invalid(source, fmt.Sprintf("context %q: %v", name, err), "docker context ls, then docker context use <name>")
		}
		return one(host, certs, fmt.Sprintf("%s %q", source, name))
	}
	return knownSockets(env), nil
}

// secure decides on TLS for a TCP endpoint: certificates, or plain where it
// was asked for or cannot leave the machine.
func (o Options) secure(e endpoint, env environment) (endpoint, error) {
	if err := validateHost(e.source, e.host); err != nil {
		return e, err
	}
	rest, tcp := strings.CutPrefix(e.host, "tcp://")
	if !tcp {
		e.certs = ""
		return e, nil
	}
	if o.Plain {
		e.certs = ""
		return e, nil
	}
	if e.certs == "" {
		e.certs = env.getenv("DOCKER_CERT_PATH")
	}
	if e.certs == "" {
		h, _, _ := net.SplitHostPort(rest)
		if ip := net.ParseIP(h); h != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return e, driver.Invalid(e.source, fmt.Sprintf("%s has no TLS certificates: whoever is on the way would be root on that host", e.host),
				"export DOCKER_CERT_PATH=<directory with ca.pem, cert.pem, key.pem>, or ask for it: ?tls=false in an address, plain = true in Terraform")
		}
	}
	return e, nil
}

func dockerConfig(env environment) string {
	if dir := env.getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	if env.home == "" {
		return ""
	}
	return filepath.Join(env.home, ".docker")
}

// currentContext reads the docker command's configuration; one that is absent
// or unreadable has no current context, as for the docker command itself.
func currentContext(env environment) string {
	dir := dockerConfig(env)
	if dir == "" {
		return ""
	}
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return ""
	}
	var c struct{ CurrentContext string }
	if json.Unmarshal(b, &c) != nil {
		return ""
	}
	return c.CurrentContext
}

// readContext reads one context of the docker command's store, where a
// context's directory is named by the digest of its name.
func readContext(env environment, name string) (host, certs string, err error) {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	dir := filepath.Join(dockerConfig(env), "contexts")
	b, err := os.ReadFile(filepath.Join(dir, "meta", id, "meta.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", errors.New("no such context")
	}
	if err != nil {
		return "", "", err
	}
	var meta struct {
		Endpoints map[string]struct {
			Host          string
			SkipTLSVerify bool
		}
	}
	if err := json.Unmarshal(b, &meta); err != nil {
		return "", "", fmt.Errorf("meta.json: %w", err)
	}
	e, ok := meta.Endpoints["docker"]
	if !ok || e.Host == "" {
		return "", "", errors.New("it has no docker endpoint")
	}
	if e.SkipTLSVerify {
		return "", "", errors.New("it skips TLS verification, which is refused")
	}
	certs = filepath.Join(dir, "tls", id, "docker")
	if _, err := os.Stat(filepath.Join(certs, "cert.pem")); err != nil {
		certs = ""
	}
	return e.Host, certs, nil
}

// knownSockets lists where engines of common installations listen: the
// system's, a rootless one, Desktop, OrbStack, Rancher Desktop, and every
// profile of Colima, whose path has moved between versions.
func knownSockets(env environment) []endpoint {
	if env.goos == "windows" {
		return []endpoint{{host: "npipe:////./pipe/docker_engine", source: "the usual pipe"}}
	}
	paths := []string{"/var/run/docker.sock"}
	if dir := env.getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		paths = append(paths, filepath.Join(dir, "docker.sock"))
	}
	if h := env.home; h != "" {
		paths = append(paths, filepath.Join(h, ".docker/run/docker.sock"), filepath.Join(h, ".docker/desktop/docker.sock"),
			filepath.Join(h, ".orbstack/run/docker.sock"), filepath.Join(h, ".rd/docker.sock"), filepath.Join(h, ".colima/default/docker.sock"))
		more, _ := filepath.Glob(filepath.Join(h, ".colima/*/docker.sock"))
		slices.Sort(more)
		paths = append(append(paths, more...), filepath.Join(h, ".colima/docker.sock"))
	}
	var out []endpoint
	for _, p := range paths {
		e := endpoint{host: "unix://" + p, source: "a usual socket"}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}
