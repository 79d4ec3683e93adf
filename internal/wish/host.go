package wish

import (
	"fmt"
	"strings"

	"golang.org/x/net/idna"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// labels maps names to A-labels as browsers look them up, and leaves every
// other judgement to driver.Canonical.
var labels = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.VerifyDNSLength(false))

// Host gives a host in ASCII, as driver.Canonical wants it. Code: invalid.
func Host(field, host string) (string, error) {
	if len(host) > 4*253 { // no name of 253 ASCII characters is longer in UTF-8
		return "", driver.Invalid(field, fmt.Sprintf("a name of %d bytes is too long", len(host)), "host names are at most 253 characters")
	}
	if isASCII(host) {
		return host, nil
	}
	name, wild := strings.CutPrefix(host, "*.")
	a, err := labels.ToASCII(name)
	if err != nil {
		return "", driver.Invalid(field, fmt.Sprintf("%q is no domain name", host), `write it as an A-label, as "xn--bcher-kva.example"`)
	}
	if wild {
		a = "*." + a
	}
	return a, nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
