package docker

import (
	"fmt"
	"reflect"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// closedNetwork is the mechanism of the default deny.
const closedNetwork = "network mode none: no interface but loopback"

// reach is how a sandbox's network is enforced: as a whole, and rule by rule.
type reach struct {
	by    string
	rules []driver.Mechanism
}

// checkNetwork decides without I/O whether the network can be enforced. All
// problems are joined, each with its Field.
func (b *Backend) checkNetwork(spec driver.Spec) (reach, error) {
	var errs []error
	n := spec.Network
	for i, p := range n.Expose {
		errs = append(errs, driver.Unsupported(fmt.Sprintf("network.expose[%d]", i), fmt.Sprintf("port %d cannot be exposed: nothing reaches a sandbox from outside here", p), "remove it"))
	}
	r := reach{by: closedNetwork, rules: []driver.Mechanism{}}
	if len(n.Egress) > 0 {
		err := canonical(n.Egress)
		if err == nil {
			r.rules, err = egress.Mechanisms(n)
		}
		errs = append(errs, err)
	}
	var err error
	switch {
	case proxied(n):
		r.by, err = b.checkProxy(spec)
	case routed(n) && driver.Join(errs...) == nil:
		r.by, err = b.checkTransparent(spec)
	}
	errs = append(errs, err)
	return r, driver.Join(errs...)
}

// canonical refuses rules in any other form than driver.Canonical's.
func canonical(rules []driver.Rule) error {
	same, err := driver.Canonical(rules)
	if err == nil && !reflect.DeepEqual(same, rules) {
		err = driver.Invalid("network.egress", "the rules are not canonical", "pass them through driver.Canonical")
	}
	return err
}
