package egress

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// How rules are enforced, as driver.Mechanism.By has it.
const (
	ByIPSet = "ip-set"
	ByName  = "dns+sni+ip"
	ByProxy = "proxy"
)

// Mechanisms tells how each rule of a canonical network is enforced by a
// gateway or proxy of ours in the network's mode, in the order of the rules,
// and where that ends. What cannot be enforced is refused: all such rules
// joined, each with its Field; that of a host's port is a [MuteError]. Codes:
// unsupported.
func Mechanisms(n driver.Network) ([]driver.Mechanism, error) {
	out := make([]driver.Mechanism, 0, len(n.Egress))
	var errs []error
	for i, r := range n.Egress {
		at := fmt.Sprintf("network.egress[%d]", i)
		if r.Host != "" {
			errs = append(errs, mute(at+".ports", r)...)
		}
		if n.Mode == driver.Transparent && r.Prefix.IsValid() && r.Prefix.Addr().Is6() {
			errs = append(errs, driver.Unsupported(at+".cidr", fmt.Sprintf("%s is IPv6, which a transparent gateway has none of", r.Prefix),
				`use an IPv4 CIDR or a host; or, for a sandbox that is not detached, as Terraform's are, set mode to "proxy"`))
		}
		out = append(out, mechanism(r, n.Mode))
	}
	if len(errs) > 0 {
		return nil, driver.Join(errs...)
	}
	return out, nil
}

// MuteError says that a rule for a host has a port on which no host is named.
type MuteError struct {
	Port    uint16
	Service string
}

func (e *MuteError) Error() string {
	return fmt.Sprintf("port %d is %s, which names no host that could be checked, as TLS and HTTP do", e.Port, e.Service)
}

// mute refuses the ports of a host's rule on which no host is named. A policy
// may deny a port to every rule, so that a CIDR is no more than a possibility.
func mute(field string, r driver.Rule) []error {
	var errs []error
	for _, port := range r.Ports {
		if service, ok := speechless[port]; ok {
			errs = append(errs, &driver.Error{Code: driver.CodeUnsupported, Field: field, Err: &MuteError{port, service},
				Hint: fmt.Sprintf("%s; only a rule for a CIDR can have port %d, if the policy allows it (SBX-NET-010)", Without(r, port), port)})
		}
	}
	return errs
}

// Without says how a canonical rule for a host gets rid of a port on which no
// host is named.
func Without(r driver.Rule, port uint16) string {
	return without(r, port, func(p uint16) bool { _, mute := speechless[p]; return mute })
}

// without says how a canonical rule gets rid of a port, which is one of the bad
// ones. The rule goes as a whole if they are all that it has: without ports it
// would mean the default ones.
func without(r driver.Rule, port uint16, bad func(uint16) bool) string {
	for _, p := range r.Ports {
		if !bad(p) {
			return fmt.Sprintf("take port %d out of the rule for %s", port, r.Target())
		}
	}
	return "remove the rule for " + r.Target()
}

func mechanism(r driver.Rule, mode driver.Mode) driver.Mechanism {
	m := driver.Mechanism{Name: r.String(), By: ByIPSet, Limits: "TCP only; whatever the addresses serve on these ports is reached"}
	if mode == driver.Proxy {
		m.By = ByProxy
	}
	if r.Host == "" {
		return m
	}
	if mode == driver.Transparent {
		m.By = ByName
	}
	m.Limits = "only what names the host, by TLS (SNI) or by HTTP/1 (Host); a server that serves other names too can be asked for them inside TLS (domain fronting)"
	if r.Host[0] == '*' {
		m.Limits += "; whoever runs the zone can be sent data in the names that are asked for"
	}
	if mode == driver.Proxy {
		m.Limits += "; programs that know no proxy get nothing"
	}
	return m
}

// speechless are ports by custom of protocols in which the client does not
// begin with the name of the server, be it that the server speaks first.
// Source: the IANA service name and port number registry. What is not here may
// speak TLS or HTTP, and is refused by its first byte if it does not.
var speechless = map[uint16]string{
	20: "FTP", 21: "FTP", 22: "SSH", 23: "Telnet", 25: "SMTP", 43: "whois", 53: "DNS", 69: "TFTP", 79: "finger", 88: "Kerberos", 109: "POP2", 110: "POP3",
	111: "portmapper", 113: "ident", 119: "NNTP", 123: "NTP", 135: "MS RPC", 137: "NetBIOS", 138: "NetBIOS", 139: "NetBIOS", 143: "IMAP", 161: "SNMP",
	162: "SNMP", 179: "BGP", 194: "IRC", 389: "LDAP", 445: "SMB", 464: "Kerberos", 512: "rexec", 513: "rlogin", 514: "rsh", 515: "LPD", 543: "klogin", 544: "kshell",
	548: "AFP", 587: "SMTP submission", 873: "rsync", 1080: "SOCKS", 1194: "OpenVPN", 1433: "SQL Server", 1521: "Oracle Net", 1723: "PPTP",
	1883: "MQTT", 2049: "NFS", 3306: "MySQL", 3389: "RDP", 4222: "NATS", 5432: "PostgreSQL", 5672: "AMQP", 5900: "VNC", 6379: "Redis", 6667: "IRC",
	9042: "Cassandra", 9418: "git", 11211: "memcached", 27017: "MongoDB",
}

// Speechless lists the ports on which a rule for a host is refused, in order.
func Speechless() []uint16 {
	out := make([]uint16, 0, len(speechless))
	for p := range speechless {
		out = append(out, p)
	}
	slices.SortFunc(out, cmp.Compare[uint16])
	return out
}
