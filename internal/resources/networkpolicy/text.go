package networkpolicy

import (
	"fmt"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/naming"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/wish"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// decode reads what egress.Encode writes, and what a person writes in its place.
// Unknown fields are refused. Code: invalid.
func decode(text string) (name string, n driver.Network, err error) {
	var d egress.Text
	if err := wish.JSON([]byte(text), &d); err != nil {
		return "", n, driver.Invalid("id", "not a network policy: "+err.Error(), `pass one JSON object, as {"name":"pypi","egress":[{"host":"pypi.org","ports":[443]}]}`)
	}
	if err := naming.Validate(d.Name); err != nil {
		return "", n, err
	}
	n = driver.Network{Expose: d.Expose, Mode: d.Mode, Learn: d.Learn}
	var errs []error
	for i, w := range d.Egress {
		r := driver.Rule{Host: w.Host, Ports: w.Ports, Why: w.Why}
		if w.Ports != nil && len(w.Ports) == 0 {
			errs = append(errs, wish.NoPorts(fmt.Sprintf("network.egress[%d].ports", i)))
		}
		if w.CIDR != "" {
			var err error
			r.Prefix, err = driver.ParseCIDR(fmt.Sprintf("network.egress[%d].cidr", i), w.CIDR)
			errs = append(errs, err)
		}
		n.Egress = append(n.Egress, r)
	}
	return d.Name, n, driver.Join(errs...)
}
