package docker

import (
	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// routed reports whether a sandbox gets a gateway.
func routed(n driver.Network) bool {
	return n.Mode == driver.Transparent && (len(n.Egress) > 0 || n.Learn)
}

// checkTransparent decides whether a gateway of ours can enforce the rules,
// and gives the mechanism as a whole.
func (b *Backend) checkTransparent(spec driver.Spec) (string, error) {
	if _, err := (boot.Config{Rules: spec.Network.Egress}).Args(); err != nil {
		return "", err
	}
	return "a bridge network of its own, whose only router is a gateway that drops what no rule allows", nil
}
