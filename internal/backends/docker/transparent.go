package docker

import "github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"

// checkTransparent decides whether a gateway of ours can enforce the rules,
// and gives the mechanism as a whole.
func (b *Backend) checkTransparent(spec driver.Spec) (string, error) {
	return "", noNetwork(spec.Network)
}
