package probe

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Server answers whatever comes over a connection, so that an attempt that got
// out goes on until it has said all.
type Server struct {
	Env Env
	TLS *tls.Config
}

// NewServer makes one with a certificate of its own.
func NewServer(env Env) (*Server, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Server{env, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}}, nil
}

// speaksFirst are ports whose servers do not wait for the client.
var speaksFirst = []uint16{22, 25, OpenPort}

// Serve answers one connection that came for a port, and closes it.
func (s *Server) Serve(c net.Conn, port uint16) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if slices.Contains(speaksFirst, port) {
		_, _ = io.WriteString(c, "alive\r\n")
	}
	s.speak(c, bufio.NewReader(c), port)
}

func (s *Server) speak(c net.Conn, r *bufio.Reader, port uint16) {
	first, err := r.Peek(1)
	switch {
	case err != nil:
	case port == 53:
		s.names(c, r)
	case first[0] == 0x16:
		t := tls.Server(&buffered{c, r}, s.TLS)
		if t.Handshake() == nil { //nolint:noctx // the connection has a deadline
			s.pages(t, bufio.NewReader(t), port)
		}
	case first[0] >= 'A' && first[0] <= 'Z':
		s.pages(c, r, port)
	default:
		_, _ = io.WriteString(c, "alive\r\n")
		_, _ = io.Copy(io.Discard, r)
	}
}

// pages answers HTTP requests. It is a proxy too, to itself.
func (s *Server) pages(c net.Conn, r *bufio.Reader, port uint16) {
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			_, _ = io.Copy(io.Discard, r)
			return
		}
		if req.Method == http.MethodConnect {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			s.speak(c, r, port)
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nalive\n"); err != nil {
			return
		}
	}
}

// names answers DNS over TCP.
func (s *Server) names(c net.Conn, r *bufio.Reader) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(r, q); err != nil {
			return
		}
		a := s.Answer(q)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}

const (
	typeA    = 1
	typeTXT  = 16
	typeAAAA = 28
)

// Answer answers a DNS question out of the world's zone; nil for what is none.
func (s *Server) Answer(q []byte) []byte {
	if len(q) < 17 {
		return nil
	}
	var labels []string
	at := 12
	for at < len(q) && q[at] != 0 {
		n := int(q[at])
		if n > 63 || at+1+n > len(q) {
			return nil
		}
		labels = append(labels, string(q[at+1:at+1+n]))
		at += 1 + n
	}
	if at+5 > len(q) {
		return nil
	}
	kind := binary.BigEndian.Uint16(q[at+1:])
	question := q[12 : at+5]
	var data [][]byte
	addrs := s.Env.Lookup(strings.Join(labels, "."))
	for _, a := range addrs {
		switch {
		case kind == typeA && a.Is4(), kind == typeAAAA && a.Is6():
			data = append(data, a.AsSlice())
		case kind == typeTXT:
			data = append(data, append([]byte{5}, "alive"...))
		}
	}
	code := byte(0)
	if len(addrs) == 0 {
		code = 3
	}
	out := append([]byte{q[0], q[1], 0x81, 0x80 | code, 0, 1, 0, byte(len(data)), 0, 0, 0, 0}, question...)
	for _, d := range data {
		out = append(out, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 60, 0, byte(len(d)))
		out = append(out, d...)
	}
	return out
}

// buffered is a connection whose first bytes were read already.
type buffered struct {
	net.Conn
	r io.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.r.Read(p) }
