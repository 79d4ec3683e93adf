package wish

import (
	"fmt"
	"strings"
	"unicode"

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
	if strings.ContainsAny(host, " \t\r\n") {
		return host, nil // for driver.Canonical to refuse: several words are no name that somebody misspelt
	}
	name, wild := strings.CutPrefix(host, "*.")
	if isASCII(host) {
		if hasALabel(name) && !readable(name) {
			return "", driver.Invalid(field, fmt.Sprintf("%q has a label that stands for no name", host), `"xn--" begins the A-label of a name in another script, as "xn--bcher-kva.example"; write that name itself, or drop the "xn--"`)
		}
		return host, nil
	}
	for _, c := range host {
		if invisible(c) {
			return "", driver.Invalid(field, fmt.Sprintf("%+q contains the invisible character %U", host, c), "remove it")
		}
	}
	a, err := labels.ToASCII(name)
	if err != nil || hasALabel(a) && !readable(a) { // the latter of bytes that are no UTF-8
		return "", driver.Invalid(field, fmt.Sprintf("%+q is no domain name", host), `write it as an A-label, as "xn--bcher-kva.example"`)
	}
	if wild {
		a = "*." + a
	}
	return a, nil
}

// invisible are the characters that nobody sees who reads a name. IDNA leaves
// most of them out, so that two names which look the same, and differ in
// their bytes, would be one; joiners it keeps, where a script needs them.
func invisible(c rune) bool {
	const nonJoiner, joiner, blank = 0x200c, 0x200d, 0x2800 // the last of Braille
	return c == blank || c != nonJoiner && c != joiner && unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// hasALabel reports whether a label claims to be one.
func hasALabel(name string) bool {
	for l := range strings.SplitSeq(name, ".") {
		if len(l) > len("xn--") && strings.EqualFold(l[:4], "xn--") {
			return true
		}
	}
	return false
}

// readable reports whether an ASCII name is what its own reading is written as.
// One that is not could be taken for another name by whoever decodes it.
func readable(name string) bool {
	name = strings.ToLower(name)
	u, err := labels.ToUnicode(name)
	if err != nil {
		return false
	}
	a, err := labels.ToASCII(u)
	return err == nil && a == name
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
