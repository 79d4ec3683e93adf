package networkpolicy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// document is a policy as text, for import and identity. Its field order is
// part of the digest.
type document struct {
	Name   string      `json:"name"`
	Egress []rule      `json:"egress"`
	Expose []uint16    `json:"expose"`
	Mode   driver.Mode `json:"mode"`
	Learn  bool        `json:"learn"`
}

type rule struct {
	Host  string   `json:"host,omitempty"`
	CIDR  string   `json:"cidr,omitempty"`
	Ports []uint16 `json:"ports"`
	Why   string   `json:"why,omitempty"`
}

// encode writes a canonical network as one line of JSON.
func encode(name string, n driver.Network) string {
	d := document{Name: name, Egress: []rule{}, Expose: append([]uint16{}, n.Expose...), Mode: n.Mode, Learn: n.Learn}
	for _, r := range n.Egress {
		w := rule{Host: r.Host, Ports: r.Ports, Why: r.Why}
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

// digest identifies what the policy allows, whatever it is called.
func digest(n driver.Network) string {
	sum := sha256.Sum256([]byte(encode("", n)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// decode reads what encode writes, and what a person writes in its place.
// Unknown fields are refused. Code: invalid.
func decode(text string) (name string, n driver.Network, err error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	var d document
	if err := dec.Decode(&d); err != nil {
		return "", n, driver.Invalid("id", "not a network policy: "+err.Error(), `pass one JSON object, as {"name":"pypi","egress":[{"host":"pypi.org","ports":[443]}]}`)
	}
	if _, err := dec.Token(); err != io.EOF {
		return "", n, driver.Invalid("id", "there is something after the JSON object", "pass one object")
	}
	if err := naming.Validate(d.Name); err != nil {
		return "", n, err
	}
	n = driver.Network{Expose: d.Expose, Mode: d.Mode, Learn: d.Learn}
	var errs []error
	for i, w := range d.Egress {
		r := driver.Rule{Host: w.Host, Ports: w.Ports, Why: w.Why}
		if w.CIDR != "" {
			var err error
			r.Prefix, err = driver.ParseCIDR(fmt.Sprintf("network.egress[%d].cidr", i), w.CIDR)
			errs = append(errs, err)
		}
		n.Egress = append(n.Egress, r)
	}
	return d.Name, n, driver.Join(errs...)
}
