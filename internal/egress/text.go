package egress

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Text is a network policy as JSON, for import and identity. The order of its
// fields is part of every digest.
type Text struct {
	Name   string      `json:"name"`
	Egress []TextRule  `json:"egress"`
	Expose []uint16    `json:"expose"`
	Mode   driver.Mode `json:"mode"`
	Learn  bool        `json:"learn"`
}

// TextRule is a rule of a Text; one of Host and CIDR is set.
type TextRule struct {
	Host  string   `json:"host,omitempty"`
	CIDR  string   `json:"cidr,omitempty"`
	Ports []uint16 `json:"ports"`
	Why   string   `json:"why,omitempty"`
}

// Encode writes a canonical network as one line of JSON.
func Encode(name string, n driver.Network) string {
	d := Text{Name: name, Egress: []TextRule{}, Expose: append([]uint16{}, n.Expose...), Mode: n.Mode, Learn: n.Learn}
	for _, r := range n.Egress {
		w := TextRule{Host: r.Host, Ports: r.Ports, Why: r.Why}
		if r.Host == "" {
			w.CIDR = r.Prefix.String()
		}
		d.Egress = append(d.Egress, w)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

// Digest identifies what a canonical network allows, whatever it is called, as
// "sha256:…": the same in a plan, in a state and in evidence.
func Digest(n driver.Network) string {
	sum := sha256.Sum256([]byte(Encode("", n)))
	return "sha256:" + hex.EncodeToString(sum[:])
}
