package prove

import (
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
)

// Mode is what a sandbox is under.
type Mode string

// The modes: no rules, and the two mechanisms of an allowlist.
const (
	Deny        Mode = "deny"
	Transparent Mode = "transparent"
	Proxy       Mode = "proxy"
)

// Modes lists them.
func Modes() []Mode { return []Mode{Deny, Transparent, Proxy} }

// Attempt is one way out that is tried.
type Attempt struct {
	Name string
	Text string
	// Modes in which it says something else than another attempt; nil means
	// all.
	Modes []Mode
	// Sign is what must not leave, if not the attempt's own.
	Sign string
}

// In reports whether the attempt is made in a mode.
func (a Attempt) In(m Mode) bool { return a.Modes == nil || slices.Contains(a.Modes, m) }

// Controls are what is allowed and must come through, by mode.
func Controls(m Mode) []string {
	switch m {
	case Deny:
	case Transparent:
		return []string{"control-name", "control-tls", "control-retry", "control-http", "control-cidr", "control-wild"}
	case Proxy:
		return []string{"control-tls", "control-retry", "control-http", "control-cidr", "control-wild"}
	}
	return nil
}

// canaries are attempts that show, from where nothing is enforced, that a canary
// is there and heard: before the attempts, and after them.
var canaries = []struct{ name, attempt, text string }{
	{"canary-router", "tcp-ssh", "the canary that has every address"},
	{"canary-router6", "tcp6", "the same by IPv6"},
	{"canary-names", "dns-other-udp", "the canaries' name server"},
	{"canary-neighbour", "near-container", "the canary on the other network"},
	{"canary-engine-host", "engine-host", "the canary in the engine's own network"},
}

var twoModes = []Mode{Transparent, Proxy}

// Catalogue lists the attempts.
func Catalogue() []Attempt {
	var out []Attempt
	add := func(modes []Mode, pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, Attempt{Name: pairs[i], Text: pairs[i+1], Modes: modes})
		}
	}
	add(nil,
		"tcp-ssh", "SSH to an address that no rule names",
		"tcp-smtp", "SMTP to it",
		"tcp-http", "HTTP to it",
		"tcp-https", "HTTPS to it, by a name that no rule has",
		"tcp-dot", "DNS over TLS to it",
		"tcp-docker-api", "a Docker API on it",
		"tcp-socks", "a SOCKS proxy on it",
		"tcp-postgres", "PostgreSQL on it",
		"tcp-smb", "a file share on it",
		"tcp-redis", "Redis on it",
		"tcp-git", "a Git server on it",
		"tcp-irc", "a chat server on it",
		"tcp-kubernetes", "a Kubernetes API on it",
		"tcp-telnet", "Telnet to it",
		"tcp-ldap", "a directory on it",
		"tcp-mysql", "MySQL on it",
		"tcp-rdp", "a remote desktop on it",
		"tcp-mqtt", "a message broker on it",
		"tcp-high", "a high port of it",
		"proxy-env", "an HTTP proxy on it, set in the environment",
		"tcp-mapped", "an IPv4 address written as an IPv6 one",
		"tcp-fast-open", "data in the first packet of TCP",
		"tcp-multipath", "multipath TCP",
		"tcp-source-route", "a source route in the IP header",
		"cidr-other-port", "another port of an address that a rule names",
		"cidr-neighbour", "the address after the one that a rule names",
		"host-other-port", "another port of a host that a rule names",
		"udp-high", "UDP to a high port",
		"udp-quic", "QUIC",
		"udp-ntp", "NTP",
		"udp-wireguard", "WireGuard",
		"udp-tftp", "TFTP",
		"udp-snmp", "SNMP",
		"udp-syslog", "syslog",
		"udp-stun", "STUN",
		"udp-sip", "SIP",
		"udp-fragmented", "UDP in fragments",
		"udp-to-cidr", "UDP to an address that a rule opens for TCP",
		"udp-to-host", "QUIC to a host that a rule opens for TCP",
		"icmp-echo", "ICMP to an address that no rule names",
		"icmp-to-host", "ICMP to a host that a rule opens for TCP",
		"tcp6", "TCP over IPv6",
		"udp6", "UDP over IPv6",
		"icmp6", "ICMP over IPv6",
		"meta-link-local", "the metadata service at 169.254.169.254",
		"meta-containers", "the container credentials at 169.254.170.2",
		"meta-shared", "the metadata service at 100.100.100.200",
		"private-range", "an address in a private range",
		"public-doh", "DNS over HTTPS at a public resolver",
		"near-container", "a container on another network of the engine",
		"near-udp", "UDP to it",
		"engine-host", "the engine's host, by its address on that network",
		"engine-host-udp", "UDP to it",
		"dns-other-udp", "a name server of the program's choice, UDP",
		"dns-other-tcp", "a name server of the program's choice, TCP",
		"dns-public", "a public name server",
	)
	add(nil,
		"udp-broadcast", "a broadcast",
		"udp-mdns", "multicast DNS",
		"udp-ssdp", "SSDP",
		"link6-all", "all nodes of the link, IPv6",
	)
	add(nil,
		"tcp-mark", "a mark on the packets, as the gateway's own have",
		"tcp-transparent", "a socket that may have any address",
		"raw-icmp", "a raw ICMP socket",
		"raw-gre", "a GRE packet",
		"raw-ipip", "IP in IP",
		"raw-6in4", "IPv6 in IPv4",
		"raw-sctp", "an SCTP packet",
		"raw-esp", "an IPsec packet",
		"raw-handmade", "an IP packet made by hand",
		"packet-spoofed", "a packet past the kernel, from another's address",
		"packet-frame", "an Ethernet frame past the kernel",
		"address-added", "one more address on the interface",
		"namespace-init", "the network namespace of PID 1",
	)
	add(nil,
		"dns-tunnel", "a name that no rule has, as a question",
		"dns-tunnel-aaaa", "its IPv6 address",
		"dns-tunnel-txt", "its TXT records",
		"dns-tunnel-tcp", "the same over TCP",
		"dns-programs-own", "the same as programs ask",
		"file-resolv-conf", "the same after an edit of /etc/resolv.conf",
	)
	add([]Mode{Transparent},
		"dns-below-host", "a name below one that is allowed alone",
		"dns-type-ns", "NS records of an allowed name",
		"dns-type-cname", "CNAME records of it",
		"dns-type-null", "NULL records of it",
		"dns-type-ptr", "PTR records of it",
		"dns-type-mx", "MX records of it",
		"dns-type-txt", "TXT records of it",
		"dns-type-srv", "SRV records of it",
		"dns-type-https", "HTTPS records of it",
		"dns-type-any", "all records of it",
		"dns-class-ch", "another class",
		"dns-option", "data in an EDNS option",
		"dns-trailing", "data after the question",
		"dns-two-questions", "two questions in one packet",
		"dns-update", "a dynamic update",
	)
	out = append(out, Attempt{Name: "dns-case", Text: "data in upper and lower case", Modes: []Mode{Transparent}, Sign: probe.Shouting[:7]})
	add(twoModes,
		"pin-tls", "an address of the program's choice, by the TLS name of an allowed host",
		"pin-http", "the same by HTTP",
		"file-hosts", "the same after an edit of /etc/hosts",
		"rebind-meta", "an allowed name that leads to a metadata service",
		"rebind-tls", "the same by TLS",
		"rebind-mapped", "an allowed name that leads there by an IPv6 address",
		"rebind-private", "an allowed name that leads to a private range",
		"rebind-mixed", "an allowed name that leads to both",
	)
	add(twoModes,
		"sni-denied", "TLS to an allowed host that names another",
		"sni-none", "TLS to an allowed host that names none",
		"sni-hidden", "TLS that hides the name (Encrypted ClientHello)",
		"sni-records", "a ClientHello in several records",
		"sni-twice", "a ClientHello with two names",
		"sni-below-host", "TLS for a name below the allowed one",
		"sni-longer", "TLS for a name that begins like the allowed one",
		"sni-retry", "a second ClientHello, which the server asks for, that names another",
		"host-no-protocol", "neither TLS nor HTTP to an allowed host",
		"host-ssh-on-https", "SSH on the port for HTTPS of an allowed host",
	)
	add(twoModes,
		"http-host", "HTTP to an allowed host that names another",
		"http-host-address", "HTTP that names an address",
		"http-host-decimal", "the address as one number",
		"http-host-hex", "the address in hexadecimal",
		"http-host-octal", "the address in octal",
		"http-host-short", "the address with three parts",
		"http-host-mapped", "the address as an IPv6 one",
		"http-host-port", "the allowed name with another port",
		"http-host-user", "the allowed name as a user's",
		"http-host-metadata", "the name of a metadata service",
		"http-host-none", "HTTP/1.0 that names no host",
		"http-host-twice", "two Host fields",
		"http-host-spaced", "a Host field with a space before the colon",
		"http-host-folded", "a Host field that goes on in the next line",
		"http-absolute", "an absolute URL of another host",
		"http-second", "a second request on the connection",
		"http-pipelined", "a second request in the same packet",
		"http-connect", "CONNECT to an allowed host",
		"http-upgrade", "a WebSocket without TLS",
		"http-upgrade-h2c", "HTTP/2 by an upgrade",
		"http-two", "HTTP/2 without TLS",
		"http-smuggle-both", "a body with two lengths, one of them in chunks",
		"http-smuggle-twice", "a body with two lengths",
		"http-smuggle-spelt", "an unknown transfer coding",
		"http-smuggle-spaced", "a transfer coding with a space before the colon",
	)
	add([]Mode{Proxy},
		"proxy-name", "CONNECT to a name that no rule has",
		"proxy-name-upper", "the name in upper case",
		"proxy-name-dot", "the name with a final dot",
		"proxy-name-longer", "a name that begins like the allowed one",
		"proxy-name-below", "a name below one that is allowed alone",
		"proxy-user", "the allowed name as a user's",
		"proxy-nul", "a NUL in the name",
		"proxy-address", "CONNECT to an address that no rule names",
		"proxy-decimal", "the address as one number",
		"proxy-hex", "the address in hexadecimal",
		"proxy-octal", "the address in octal",
		"proxy-short", "the address with three parts",
		"proxy-mapped", "the address as an IPv6 one",
		"proxy-get", "a URL of a host that no rule has",
		"proxy-get-mismatch", "a URL of an allowed host, and the Host field of another",
		"proxy-get-user", "a URL with the allowed host as its user",
		"proxy-get-ftp", "a URL of another scheme",
		"proxy-get-second", "a second URL on the connection",
		"proxy-nested", "CONNECT inside of CONNECT",
	)
	return out
}
