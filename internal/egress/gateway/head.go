package gateway

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// head is the head of one HTTP/1 request, read and found to have one meaning.
type head struct {
	method   string
	target   string // in origin form, or "*"
	version  string
	to       authority
	absolute bool // the request line named the server, as one to a proxy does
	fields   []field
	body
}

// body is where a request's body ends. It lasts longer than its head.
type body struct {
	chunked bool
	length  int64
}

type field struct{ name, value string }

const (
	maxFields    = 256
	maxMethod    = 32
	methodTunnel = "CONNECT"
	http10       = "HTTP/1.0"
	http11       = "HTTP/1.1"
)

// readHead reads the head of a request. io.EOF, and nothing else, says that
// the client ended where it may: between requests.
func readHead(r *bufio.Reader) (*head, error) {
	line, err := readLine(r, MaxHead)
	if err != nil {
		return nil, err
	}
	h, target, err := requestLine(line)
	if err != nil {
		return nil, err
	}
	for left := MaxHead - len(line); ; {
		if line, err = readLine(r, left); err != nil {
			return nil, whole(err)
		}
		if line == "" {
			break
		}
		left -= len(line) + len("\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) || !isFieldValue(value) || left < 0 || len(h.fields) == maxFields {
			return nil, refuse(egress.BadHTTP, "a field is malformed, folded, or one too many")
		}
		h.fields = append(h.fields, field{name, strings.Trim(value, " \t")})
	}
	if err := h.framing(); err != nil {
		return nil, err
	}
	return h, h.address(target)
}

func requestLine(line string) (*head, string, error) {
	h := &head{}
	var target string
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		return nil, "", refuse(egress.BadHTTP, "the request line has not three parts")
	}
	h.method, target, h.version = parts[0], parts[1], parts[2]
	switch {
	case h.method == "PRI" || h.version == "HTTP/2.0":
		return nil, "", refuse(egress.Upgrade, "HTTP/2 without TLS")
	case !isToken(h.method) || len(h.method) > maxMethod || !isVisible(target) || target == "" || strings.Contains(target, "#"):
		return nil, "", refuse(egress.BadHTTP, "the method or the target is malformed")
	case h.version != http11 && h.version != http10:
		return nil, "", refuse(egress.BadHTTP, "the version is neither HTTP/1.1 nor HTTP/1.0")
	}
	return h, target, nil
}

// values of a field, in order.
func (h *head) values(name string) []string {
	var out []string
	for _, f := range h.fields {
		if strings.EqualFold(f.name, name) {
			out = append(out, f.value)
		}
	}
	return out
}

// decisive are the fields that say where a request goes and where it ends.
var decisive = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade"}

// framing finds out where the body ends, in the one way there is to read it.
func (h *head) framing() error {
	for _, f := range h.fields {
		for _, d := range decisive {
			// To some servers the two are one.
			if strings.Contains(f.name, "_") && strings.EqualFold(strings.ReplaceAll(f.name, "_", "-"), d) {
				return refuse(egress.BadHTTP, "a field is spelt almost as %s", d)
			}
		}
	}
	if len(h.values("Upgrade")) > 0 || len(h.values("HTTP2-Settings")) > 0 {
		return refuse(egress.Upgrade, "")
	}
	for _, v := range h.values("Connection") {
		for option := range strings.SplitSeq(v, ",") {
			// What is named here may be taken out on the way: nothing that has
			// a meaning here may be.
			switch strings.ToLower(strings.Trim(option, " \t")) {
			case "close", "keep-alive", "te", "proxy-connection":
			case "upgrade":
				return refuse(egress.Upgrade, "")
			default:
				return refuse(egress.BadHTTP, "Connection names another field")
			}
		}
	}
	codings, lengths := h.values("Transfer-Encoding"), h.values("Content-Length")
	switch {
	case len(codings) > 0 && len(lengths) > 0:
		return refuse(egress.BadHTTP, "Transfer-Encoding and Content-Length both")
	case len(codings) > 1 || len(lengths) > 1:
		return refuse(egress.BadHTTP, "several lengths")
	case len(codings) == 1:
		if h.version != http11 || !strings.EqualFold(codings[0], "chunked") {
			return refuse(egress.BadHTTP, "a transfer encoding that is not chunked")
		}
		h.chunked = true
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 63)
		if err != nil {
			return refuse(egress.BadHTTP, "a length that is no number")
		}
		h.length = int64(n)
	}
	if len(h.values("Trailer")) > 0 {
		return refuse(egress.BadHTTP, "trailing fields")
	}
	for _, v := range h.values("Expect") {
		if !strings.EqualFold(v, "100-continue") {
			return refuse(egress.BadHTTP, "it expects what nobody knows")
		}
	}
	return nil
}

// ends reports whether the request has to be the last of its connection: it has
// a body, which there are servers that do not read, and take for the next
// request.
func (b body) ends() bool { return b.chunked || b.length > 0 }

// address finds out where the request goes: what the target and Host say must
// be one thing.
func (h *head) address(target string) error {
	hosts := h.values("Host")
	if len(hosts) > 1 || len(hosts) == 0 && h.method != methodTunnel {
		return refuse(egress.BadHTTP, "%d Host fields", len(hosts))
	}
	var err error
	if h.method == methodTunnel {
		if h.to, err = parseAuthority(target); err != nil {
			return err
		}
		if h.to.port == 0 || h.chunked || h.length > 0 {
			return refuse(egress.BadHTTP, "CONNECT without a port, or with a body")
		}
		if len(hosts) == 1 {
			return h.agrees(hosts[0], h.to.port)
		}
		return nil
	}
	switch {
	case target[0] == '/', target == "*" && h.method == "OPTIONS":
		h.target = target
		h.to, err = parseAuthority(hosts[0])
		return err
	case len(target) > len("http://") && strings.EqualFold(target[:len("http://")], "http://"):
		rest := target[len("http://"):]
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		h.absolute = true
		h.target = rest[end:]
		if h.target == "" || h.target[0] != '/' {
			h.target = "/" + h.target
		}
		if h.to, err = parseAuthority(rest[:end]); err != nil {
			return err
		}
		if h.to.port == 0 {
			h.to.port = 80 // what the URL means, wherever it was sent
		}
		return h.agrees(hosts[0], 80)
	}
	return refuse(egress.BadHTTP, "the target is neither a path nor a URL of http")
}

// agrees checks that Host says the same as the target, where port is what a
// missing one means.
func (h *head) agrees(host string, port uint16) error {
	a, err := parseAuthority(host)
	if err != nil {
		return err
	}
	if !a.same(h.to, port) {
		return refuse(egress.BadHTTP, "the target and Host differ")
	}
	return nil
}

// send writes the request's head to its server: in origin form, with one Host,
// without what was meant for a proxy, and if it is to be the last of its
// connection, saying so. Expect stays here: with it, whether a body follows
// would be the server's to say.
func (h *head) send(w io.Writer, last bool) error {
	var b strings.Builder
	b.WriteString(h.method + " " + h.target + " " + h.version + "\r\n")
	for _, f := range h.fields {
		name := strings.ToLower(f.name)
		if strings.HasPrefix(name, "proxy-") || name == "expect" || last && (name == "connection" || name == "keep-alive") {
			continue
		}
		b.WriteString(f.name + ": " + f.value + "\r\n")
	}
	if last {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// send writes the body, read to its end and not a byte further. src is what r
// reads from, if it is a connection.
func (b body) send(w io.Writer, r *bufio.Reader, src net.Conn) error {
	if !b.chunked {
		return pass(w, r, src, b.length)
	}
	for {
		line, err := readLine(r, 16)
		if err != nil {
			return whole(err)
		}
		n, err := strconv.ParseUint(line, 16, 63)
		if err != nil {
			return refuse(egress.BadHTTP, "a chunk that begins with something else than its size")
		}
		if _, err := io.WriteString(w, strconv.FormatUint(n, 16)+"\r\n"); err != nil {
			return err
		}
		if err := pass(w, r, src, int64(n)); err != nil {
			return err
		}
		end, err := readLine(r, 0)
		if err != nil {
			return whole(err)
		}
		if end != "" {
			return refuse(egress.BadHTTP, "something follows a chunk")
		}
		if _, err := io.WriteString(w, "\r\n"); err != nil || n == 0 {
			return err
		}
	}
}
