package probe

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Extensions of a ClientHello, and what else the records of a server are told
// apart by.
const (
	extServerName = 0
	extKeyShare   = 51

	recordChange    = 20 // of ciphers: in TLS 1.3 it means nothing
	recordHandshake = 22
	messageAnswer   = 2 // ServerHello, or HelloRetryRequest
)

// retryRandom is what a HelloRetryRequest has for its random (RFC 8446, 4.1.3).
var retryRandom = sha256.Sum256([]byte("HelloRetryRequest"))

// again opens TLS to the allowed host, has its server ask for a second
// ClientHello, and says the one that f makes of it.
func again(f func(t *try, second string) string) attempt {
	return func(t *try) (string, error) {
		first, second, err := t.hellos()
		if err != nil {
			return "", err
		}
		c, err := t.open(Host, t.Allowed, 443)
		if err != nil {
			return "", err
		}
		defer c.Close()
		return retried(c, first, f(t, second))
	}
}

// hellos are two ClientHellos of one connection for the allowed host. The first
// has no key, so that a server of TLS 1.3 asks for one. The sign is in the key
// of the second alone, which may be any 32 bytes.
func (t *try) hellos() (first, second string, err error) {
	h, err := captureHello(t, &tls.Config{ServerName: Host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}}) //nolint:gosec // the canary has no name
	if err != nil {
		return "", "", err
	}
	key := append([]byte{0, 36, 0, byte(tls.X25519), 0, 32}, t.Sign+t.Sign...)
	second = "\x16\x03\x03" + changed(h, map[uint16][]byte{extKeyShare: key})[3:] // the version of all records but the first
	return changed(h, map[uint16][]byte{extKeyShare: {0, 0}}), second, nil
}

// unchanged is the second ClientHello as a server expects it.
func unchanged(_ *try, second string) string { return second }

// renamed is one that names a host that no rule has, by the sign.
func renamed(t *try, second string) string {
	return changed(second, map[uint16][]byte{extServerName: naming(t.evil())})
}

// retried says the second only to a server that has asked for it: after an
// answer for good it would be no ClientHello any more, to anybody.
func retried(c io.ReadWriter, first, second string) (string, error) {
	if _, err := io.WriteString(c, first); err != nil {
		return "", err
	}
	said, err := serverRecord(c)
	if err != nil {
		return "", err
	}
	const random = 4 + 2 // header and version of the message
	if len(said) < random+len(retryRandom) || said[0] != messageAnswer || !bytes.Equal(said[random:random+len(retryRandom)], retryRandom[:]) {
		return "", errors.New("the server does not ask for a second ClientHello")
	}
	if _, err := io.WriteString(c, second); err != nil {
		return "", err
	}
	if _, err := serverRecord(c); err != nil {
		return "", fmt.Errorf("after the second ClientHello: %w", err)
	}
	return "a TLS server answered the second ClientHello", nil
}

// serverRecord reads what a record of a handshake holds.
func serverRecord(r io.Reader) ([]byte, error) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint16(head[3:]))
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, err
		}
		switch head[0] {
		case recordChange:
		case recordHandshake:
			return body, nil
		default:
			return nil, fmt.Errorf("a record of type %d: %x", head[0], body[:min(len(body), 32)])
		}
	}
}
