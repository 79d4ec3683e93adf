package cli

import (
	"encoding/json"
	"fmt"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	jsonFix     = `write {"egress": [{"host": "example.com", "ports": [443]}]}`
	jsonRuleFix = `write {"host": "example.com", "ports": [443]} or {"cidr": "203.0.113.0/24", "ports": [443]}`
)

// jsonRule is a rule as sandboxio_network_policy has it.
type jsonRule struct {
	Host  string   `json:"host"`
	CIDR  string   `json:"cidr"`
	Ports *[]int64 `json:"ports"`
	Why   string   `json:"why"`
}

// jsonAllowlist reads a list of rules, or an object with one in "egress": none
// there, and null, are a list without rules.
func jsonAllowlist(from string, text []byte) (allowlist, error) {
	l := allowlist{from: from}
	var d struct { // what a network policy and its canonical form have
		Egress []json.RawMessage `json:"egress"`
		Name   string            `json:"name"`
		Expose []int64           `json:"expose"`
		Mode   string            `json:"mode"`
		Learn  bool              `json:"learn"`
	}
	var into any = &d
	if text[0] == '[' {
		into = &d.Egress
	}
	if err := wish.JSON(text, into); err != nil {
		return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: %v", from, err), jsonFix)
	}
	l.name = d.Name
	var err error
	if l.mode, err = driver.ParseMode(d.Mode); err != nil {
		return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: mode: %+q is no mode", from, d.Mode), `use "transparent" or "proxy"`)
	}
	for i, n := range d.Expose {
		port, err := wish.Port("expose", n)
		if err != nil {
			return allowlist{}, driver.Invalid("file", fmt.Sprintf("%s: expose[%d]: %d is not a port", from, i, n), "list ports between 1 and 65535")
		}
		l.expose = append(l.expose, port)
	}
	for i, raw := range d.Egress {
		var j jsonRule
		var r driver.Rule
		err := wish.JSON(raw, &j)
		if err != nil {
			err = driver.Invalid("rule", err.Error(), jsonRuleFix)
		} else {
			r, err = j.rule()
		}
		l.add(fmt.Sprintf("%s: egress[%d]", from, i), r, err)
	}
	return l, nil
}

func (j jsonRule) rule() (driver.Rule, error) {
	r := driver.Rule{Why: j.Why}
	var errs []error
	if j.Ports != nil && len(*j.Ports) == 0 {
		errs = append(errs, wish.NoPorts("rule.ports"))
	}
	if j.Ports != nil {
		for _, n := range *j.Ports {
			port, err := wish.Port("rule.ports", n)
			r.Ports = append(r.Ports, port)
			errs = append(errs, err)
		}
	}
	var err error
	if j.Host != "" {
		r.Host, err = wish.Host("rule.host", j.Host)
		errs = append(errs, err)
	}
	if j.CIDR != "" {
		r.Prefix, err = driver.ParseCIDR("rule.cidr", j.CIDR)
		errs = append(errs, err)
	}
	if err := driver.Join(errs...); err != nil {
		return r, err
	}
	return r, wish.Rule("rule", r)
}
