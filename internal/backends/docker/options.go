package docker

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Options say which engine, and what its operator vouches for. The zero value
// finds the engine as the docker command does.
type Options struct {
	// Host is the engine's address: "unix:///var/run/docker.sock",
	// "tcp://host:2376", "npipe:////./pipe/docker_engine". Empty means
	// DOCKER_HOST, DOCKER_CONTEXT, the current context of the docker
	// command's configuration, then the known sockets, in this order.
	Host string

	// Certs is a directory with ca.pem, cert.pem and key.pem for a tcp Host.
	// Empty means DOCKER_CERT_PATH.
	Certs string

	// Plain allows a tcp Host without TLS. Whoever reaches such an engine is
	// root on its host, so it has to be asked for, except on loopback.
	Plain bool

	// Image is what an empty Spec.Image means.
	Image string

	// Runtime is the engine's runtime that sandboxes run on, by the name it
	// is registered under, as "runsc". Empty means the engine's default. A
	// name with "runsc" or "gvisor" in it promises the user-kernel tier: each
	// sandbox is probed from inside, and destroyed when it is less.
	Runtime string

	// StorageQuota says that the engine can cap a container's root (overlay2
	// on xfs with pquota, btrfs, zfs). Only then is profile compat offered;
	// the cap is verified from inside each sandbox.
	StorageQuota bool

	// AddressPool is the range, as "198.18.0.0/15", out of which each sandbox
	// with an allowlist gets two networks of eight addresses: private, shared or
	// reserved ones, which no rule opens without naming them. Empty means that
	// one, which is nobody's local network.
	AddressPool string

	// Uplink is the name of a network of the engine that gateways use as their
	// way out, where hosts reach the world by a network of their own. What else
	// is on it is a neighbour, which allowlists reach if they name it. Empty
	// means a network of its own for each gateway.
	Uplink string

	// DNS is the name server, as "192.0.2.53" or "192.0.2.53:5353", that
	// gateways ask. Empty means the first of the engine's host, or the engine
	// where that is not known or on the host itself.
	DNS string

	// KeeperSocket is the engine's socket on the engine's own host, for the
	// keeper container. Empty means the socket in Host, and for an engine
	// that is not reached by a local socket there is no default.
	KeeperSocket string

	// KeeperImage is the image a reaper schedule runs. Empty means the one
	// that setup made for this release.
	KeeperImage string
}

// credentialLike are words in a parameter's name that mean a secret.
var credentialLike = []string{"token", "secret", "password", "passwd", "credential", "auth", "apikey", "api_key", "key", "cert_pem", "user"}

// FromURL reads docker://[host[:port]][/socket][?parameter=…]:
//
//	docker://                       the engine that the docker command would use
//	docker:///var/run/docker.sock   a socket
//	docker://host:2376?certs=/dir   TLS; certs defaults to DOCKER_CERT_PATH
//	docker://127.0.0.1:2375         plain TCP, on loopback only
//	docker://host:2375?tls=false    plain TCP anywhere, because it says so
//
// Parameters: tls, certs, image, runtime, storage_quota, address_pool, uplink,
// dns, keeper_socket, keeper_image.
func FromURL(u *url.URL) (Options, error) {
	var o Options
	if u.Scheme != Name {
		return o, driver.Invalid("backend", fmt.Sprintf("scheme %q is not %q", u.Scheme, Name), "write docker://")
	}
	if u.User != nil {
		return o, driver.Invalid("backend", "credentials do not belong into an address", "put client certificates into a directory and set DOCKER_CERT_PATH")
	}
	if u.Opaque != "" || u.Fragment != "" || u.ForceQuery && u.RawQuery == "" {
		return o, driver.Invalid("backend", "not a docker address", "write docker://, docker:///var/run/docker.sock or docker://host:2376")
	}
	switch {
	case u.Host != "" && u.Path != "" && u.Path != "/":
		return o, driver.Invalid("backend", fmt.Sprintf("both host %q and path %q are given", u.Host, u.Path), "write docker://"+u.Host+" or docker://"+u.Path)
	case u.Host != "":
		o.Host = "tcp://" + u.Host
		if u.Port() == "" {
			return o, driver.Invalid("backend", fmt.Sprintf("host %q has no port", u.Host), "write docker://"+u.Host+":2376")
		}
	case u.Path != "" && u.Path != "/":
		if path.Clean(u.Path) != u.Path {
			return o, driver.Invalid("backend", fmt.Sprintf("socket path %q is not clean", u.Path), "write docker://"+path.Clean(u.Path))
		}
		o.Host = "unix://" + u.Path
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return o, driver.Invalid("backend", "malformed parameters", "write ?name=value&name=value")
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(query)) {
		errs = append(errs, o.set(name, query[name]))
	}
	if err := driver.Join(errs...); err != nil {
		return Options{}, err
	}
	return o, o.validate()
}

func (o *Options) set(name string, values []string) error {
	at := "backend." + name
	if len(values) != 1 {
		return driver.Invalid(at, "given more than once", "give it once")
	}
	v := values[0]
	flag := func(to *bool, negate bool) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return driver.Invalid(at, fmt.Sprintf("%q is neither true nor false", v), name+"=true or "+name+"=false")
		}
		*to = b != negate
		return nil
	}
	switch name {
	case "tls":
		return flag(&o.Plain, true)
	case "storage_quota":
		return flag(&o.StorageQuota, false)
	case "certs":
		o.Certs = v
	case "image":
		o.Image = v
	case "runtime":
		o.Runtime = v
	case "address_pool":
		o.AddressPool = v
	case "uplink":
		o.Uplink = v
	case "dns":
		o.DNS = v
	case "keeper_socket":
		o.KeeperSocket = v
	case "keeper_image":
		o.KeeperImage = v
	default:
		for _, word := range credentialLike {
			if strings.Contains(strings.ToLower(name), word) {
				return driver.Invalid(at, "credentials do not belong into an address", "put client certificates into a directory and set DOCKER_CERT_PATH")
			}
		}
		return driver.Invalid(at, "unknown parameter", "use tls, certs, image, runtime, storage_quota, address_pool, uplink, dns, keeper_socket or keeper_image")
	}
	return nil
}

// validate is what both a DSN and a Go caller's Options must pass; no I/O.
func (o Options) validate() error {
	var errs []error
	if o.Host != "" {
		errs = append(errs, validateHost("host", o.Host))
	}
	if o.Certs != "" && o.Plain {
		errs = append(errs, driver.Invalid("certs", "TLS certificates for a connection without TLS", "remove certs or tls=false"))
	}
	if o.Image != "" {
		if _, err := driver.ParseImage(o.Image); err != nil {
			errs = append(errs, err)
		}
	}
	if o.Runtime != "" && !runtimeName.MatchString(o.Runtime) {
		errs = append(errs, driver.Invalid("runtime", fmt.Sprintf("%q is no name of a runtime", o.Runtime), `use a name that docker info lists under "Runtimes", as runsc`))
	}
	if o.KeeperImage != "" {
		if _, err := driver.ParseImage(o.KeeperImage); err != nil {
			errs = append(errs, driver.Invalid("keeper_image", fmt.Sprintf("%q is no image", o.KeeperImage), hintSetup))
		}
	}
	errs = append(errs, o.validateEgress())
	if o.KeeperSocket != "" && !cleanAbsolute(o.KeeperSocket) {
		errs = append(errs, driver.Invalid("keeper_socket", fmt.Sprintf("%q is not an absolute, clean path", o.KeeperSocket), "keeper_socket=/var/run/docker.sock"))
	}
	return driver.Join(errs...)
}

// validateHost refuses what this client cannot speak to, ssh above all, which
// would need the ssh command.
func validateHost(field, host string) error {
	scheme, rest, ok := strings.Cut(host, "://")
	if strings.ContainsAny(host, "@?#") && scheme != "unix" && scheme != "ssh" { // not quoted: it may be a password
		return driver.Invalid(field, "an engine's address has no user, password or query", "tcp://host:2376, and certificates in DOCKER_CERT_PATH")
	}
	if !ok || rest == "" {
		return driver.Invalid(field, fmt.Sprintf("%q is no engine address", host), "unix:///var/run/docker.sock or tcp://host:2376")
	}
	switch scheme {
	case "unix":
		if !cleanAbsolute(rest) {
			return driver.Invalid(field, fmt.Sprintf("socket path %q is not absolute and clean", rest), "unix:///var/run/docker.sock")
		}
	case "npipe":
	case "tcp":
		h, port, err := net.SplitHostPort(strings.TrimSuffix(rest, "/"))
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || h == "" || perr != nil || n == 0 {
			if strings.Contains(rest, "/") {
				return driver.Invalid(field, "an engine's address has no path", "tcp://host:2376")
			}
			return driver.Invalid(field, fmt.Sprintf("%q is not host:port", rest), "tcp://host:2376")
		}
	case "ssh":
		return driver.Invalid(field, "engines are not reached over ssh by this client",
			"ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST, then docker:///tmp/docker.sock")
	default:
		return driver.Invalid(field, fmt.Sprintf("scheme %q is not known", scheme), "use unix, tcp or npipe")
	}
	return nil
}

func cleanAbsolute(p string) bool { return path.IsAbs(p) && path.Clean(p) == p }

// validateEgress checks what gateways are made with.
func (o Options) validateEgress() error {
	var errs []error
	if o.AddressPool != "" {
		p, err := netip.ParsePrefix(o.AddressPool)
		if err != nil || !p.Addr().Is4() || p != p.Masked() || p.Bits() < 8 || p.Bits() > subnetBits-1 {
			errs = append(errs, driver.Invalid("address_pool", fmt.Sprintf("%q is no IPv4 range of 16 addresses or more", o.AddressPool), "address_pool="+defaultPool.String()))
		} else if !setAside(p) {
			errs = append(errs, driver.Invalid("address_pool", o.AddressPool+" is public, and a rule for 0.0.0.0/0 would open other sandboxes' networks in it", "address_pool="+defaultPool.String()))
		}
	}
	if o.Uplink != "" && !networkName.MatchString(o.Uplink) {
		errs = append(errs, driver.Invalid("uplink", fmt.Sprintf("%q is no network's name", o.Uplink), "docker network ls lists them"))
	}
	if o.DNS != "" {
		if _, err := parseServer(o.DNS); err != nil {
			errs = append(errs, driver.Invalid("dns", fmt.Sprintf("%q is no IPv4 address", o.DNS), "dns=192.0.2.53"))
		}
	}
	return driver.Join(errs...)
}

// setAside reports whether no rule opens a range that does not name it.
func setAside(p netip.Prefix) bool {
	usable := []driver.Class{driver.ClassPrivate, driver.ClassShared, driver.ClassReserved}
	return slices.ContainsFunc(driver.Protected(), func(r driver.Range) bool {
		return slices.Contains(usable, r.Class) && r.Prefix.Bits() <= p.Bits() && r.Prefix.Contains(p.Addr())
	})
}

// pool is AddressPool, checked before.
func (o Options) pool() netip.Prefix {
	if p, err := netip.ParsePrefix(o.AddressPool); err == nil {
		return p
	}
	return defaultPool
}

// parseServer reads an address with or without a port.
func parseServer(s string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		s = netip.AddrPortFrom(a, 53).String()
	}
	ap, err := netip.ParseAddrPort(s)
	if err == nil && (!ap.Addr().Is4() || ap.Port() == 0) {
		err = fmt.Errorf("%q is no IPv4 address with a port", s)
	}
	return ap, err
}
