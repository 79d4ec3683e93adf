package probe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"
)

// try is one attempt under way.
type try struct {
	context.Context
	Env
}

const patience = 1200 * time.Millisecond

// tcp connects to an address, whatever the mode.
func (t *try) tcp(addr netip.Addr, port uint16) (net.Conn, error) {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(t, "tcp", netip.AddrPortFrom(addr, port).String())
	if err == nil {
		err = c.SetDeadline(time.Now().Add(patience))
	}
	return c, err
}

// open opens a connection to a host in the way that the mode has: by the proxy,
// or to the address.
func (t *try) open(host string, addr netip.Addr, port uint16) (net.Conn, error) {
	if t.Proxy == "" {
		if host != "" { // who asks first is not refused for not having asked
			_, _ = t.ask(question(host, typeA, 1))
		}
		return t.tcp(addr, port)
	}
	if host == "" {
		host = addr.String()
		if addr.Is6() {
			host = "[" + host + "]"
		}
	}
	return t.tunnel(fmt.Sprintf("%s:%d", host, port))
}

// tunnel asks the proxy for a connection, with these very words.
func (t *try) tunnel(authority string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(t.Proxy)
	if err != nil {
		return nil, err
	}
	c, err := t.tcp(at.Addr(), at.Port())
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority, authority); err != nil {
		return nil, err
	}
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // what follows is the tunnel
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy says %s", res.Status)
	}
	return &buffered{c, r}, nil
}

// say writes words and reads what comes.
func say(c net.Conn, err error, words ...string) (string, error) {
	if err != nil {
		return "", err
	}
	defer c.Close()
	for _, w := range words {
		if _, err := io.WriteString(c, w); err != nil {
			return "", err
		}
	}
	var b [512]byte
	n, err := c.Read(b[:])
	if err != nil && n == 0 {
		return "", err
	}
	return strings.ToValidUTF8(string(b[:n]), "?"), nil
}

// beyond writes words that begin with a request which is allowed, and tells the
// answer to that one apart from what comes of the others.
func beyond(c net.Conn, err error, words ...string) (string, error) {
	if err != nil {
		return "", err
	}
	defer c.Close()
	for _, w := range words {
		if _, err := io.WriteString(c, w); err != nil {
			return "", err
		}
	}
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	said := "to the first request: " + res.Status + "; to the other: "
	if err != nil {
		return said + err.Error(), nil
	}
	b, err := io.ReadAll(io.LimitReader(r, 512))
	switch {
	case len(b) > 0:
		said += strings.ToValidUTF8(string(b), "?")
	case err != nil:
		said += err.Error()
	default:
		said += "nothing, and the end of the connection"
	}
	return said, nil
}

// hello is the first that a TLS client says, with the sign in it.
func (t *try) hello(name string) (string, error) {
	return captureHello(t, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{t.Sign}}) //nolint:gosec // the canary has no name
}

func captureHello(ctx context.Context, cfg *tls.Config) (string, error) {
	inside, outside := net.Pipe()
	defer outside.Close()
	if cfg.ServerName == "" {
		cfg.InsecureSkipVerify = true
	}
	go func() { _ = tls.Client(inside, cfg).HandshakeContext(ctx); _ = inside.Close() }()
	var head [5]byte
	if _, err := io.ReadFull(outside, head[:]); err != nil {
		return "", err
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	_, err := io.ReadFull(outside, body)
	return string(head[:]) + string(body), err
}

// extensionsAt is where the extensions of a ClientHello of one record begin,
// with their length.
func extensionsAt(h []byte) int {
	at := 9 + 2 + 32 // record, handshake, version, random
	at += 1 + int(h[at])
	at += 2 + int(binary.BigEndian.Uint16(h[at:]))
	return at + 1 + int(h[at])
}

// extension is one of a ClientHello.
func extension(kind uint16, data []byte) []byte {
	ext := binary.BigEndian.AppendUint16(nil, kind)
	return append(binary.BigEndian.AppendUint16(ext, uint16(len(data))), data...)
}

// extended is a ClientHello of one record with other extensions.
func extended(h, exts []byte) string {
	at := extensionsAt(h)
	out := append(binary.BigEndian.AppendUint16(bytes.Clone(h[:at]), uint16(len(exts))), exts...)
	binary.BigEndian.PutUint16(out[3:], uint16(len(out)-5))
	binary.BigEndian.PutUint16(out[7:], uint16(len(out)-9))
	return string(out)
}

// extend adds an extension to a ClientHello of one record.
func extend(hello string, kind uint16, data []byte) string {
	h := []byte(hello)
	return extended(h, append(bytes.Clone(h[extensionsAt(h)+2:]), extension(kind, data)...))
}

// changed has other data in extensions of a ClientHello of one record.
func changed(hello string, data map[uint16][]byte) string {
	h := []byte(hello)
	var out []byte
	for exts := h[extensionsAt(h)+2:]; len(exts) > 0; {
		kind, end := binary.BigEndian.Uint16(exts), 4+int(binary.BigEndian.Uint16(exts[2:]))
		is, ok := data[kind]
		if !ok {
			is = exts[4:end]
		}
		out, exts = append(out, extension(kind, is)...), exts[end:]
	}
	return extended(h, out)
}

// naming is the extension server_name.
func naming(name string) []byte {
	d := binary.BigEndian.AppendUint16(nil, uint16(len(name)+3))
	return append(binary.BigEndian.AppendUint16(append(d, 0), uint16(len(name))), name...)
}

// secure says a ClientHello and waits for what the server says.
func (t *try) secure(c net.Conn, err error, hello string, herr error) (string, error) {
	if herr != nil {
		return "", herr
	}
	said, err := say(c, err, hello)
	if err == nil {
		if said[0] == 0x15 {
			return "", fmt.Errorf("TLS alert %s", hex.EncodeToString([]byte(said)))
		}
		said = "a TLS server answered"
	}
	return said, err
}

// request is an HTTP request with the sign in its path.
func (t *try) request(host string, more ...string) string {
	return "GET /" + t.Sign + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(more, "") + "\r\n"
}

// plain is one without.
const plain = "GET / HTTP/1.1\r\nHost: " + Host + "\r\n\r\n"

// router is the default route's.
func router() (netip.Addr, error) {
	b, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return netip.Addr{}, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 2 && f[1] == "00000000" && f[2] != "00000000" {
			raw, err := hex.DecodeString(f[2])
			if err == nil && len(raw) == 4 {
				return netip.AddrFrom4([4]byte{raw[3], raw[2], raw[1], raw[0]}), nil
			}
		}
	}
	return netip.Addr{}, errors.New("there is no default route")
}

// resolver is the sandbox's own.
func (t *try) resolver() (netip.Addr, error) {
	if t.Server.IsValid() {
		return t.Server, nil
	}
	return router()
}

// udp sends one datagram and waits for an answer.
func (t *try) udp(to netip.AddrPort, payload []byte) ([]byte, error) {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(t, "udp", to.String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(payload); err != nil {
		return nil, err
	}
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	return buf[:n], err
}

// question is a DNS question.
func question(name string, kind, class uint16) []byte {
	q := []byte{0x5b, 0x58, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	q = append(q, 0)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(q, kind), class)
}

// ask asks the sandbox's own resolver.
func (t *try) ask(q []byte) (string, error) {
	at, err := t.resolver()
	if err != nil {
		return "", err
	}
	return answered(t.udp(netip.AddrPortFrom(at, 53), q))
}

func answered(reply []byte, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if len(reply) < 12 || reply[3]&15 != 0 || reply[6] == 0 && reply[7] == 0 {
		return "", fmt.Errorf("the resolver says no: %x", reply[:min(12, len(reply))])
	}
	return "the resolver answered", nil
}

// framed asks over TCP.
func (t *try) framed(at netip.Addr, q []byte) (string, error) {
	c, err := t.tcp(at, 53)
	if err != nil {
		return "", err
	}
	return say(c, nil, string(binary.BigEndian.AppendUint16(nil, uint16(len(q))))+string(q))
}
