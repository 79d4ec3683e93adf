package driver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reservedEnv are names that a sandbox's own machinery sets or that would
// steer it around an egress proxy. Compared without regard to case.
var reservedEnv = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"}

// ValidateEnv refuses names and values that cannot reach a program unchanged,
// or that are reserved. Values may hold '=', newlines and any byte but NUL, up
// to 128 KiB, the kernel's limit for one string.
func ValidateEnv(field string, env map[string]string) error {
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(env)) {
		at := fmt.Sprintf("%s[%q]", field, k)
		if err := ValidateEnvName(at, k); err != nil {
			errs = append(errs, err)
		}
		switch v := env[k]; {
		case strings.IndexByte(v, 0) >= 0:
			errs = append(errs, Invalid(at, "the value contains a NUL byte", "pass binary data in a file"))
		case len(k)+len(v)+2 > 128<<10:
			errs = append(errs, Invalid(at, fmt.Sprintf("the value has %d bytes", len(v)), "values are below 128 KiB; pass large data in a file or by stdin"))
		}
	}
	return Join(errs...)
}

// ValidateEnvName refuses what is not a portable name (a letter or '_', then
// letters, digits, '_') and reserved names.
func ValidateEnvName(at, k string) error {
	ok := k != "" && !('0' <= k[0] && k[0] <= '9')
	for i := range len(k) {
		ok = ok && (alnum(k[i]) || k[i] == '_')
	}
	if !ok {
		return Invalid(at, fmt.Sprintf("%q is not a variable name", k), "names are letters, digits and '_', not beginning with a digit")
	}
	if slices.Contains(reservedEnv, strings.ToUpper(k)) || strings.HasPrefix(strings.ToUpper(k), "SANDBOXIO_") {
		return Invalid(at, fmt.Sprintf("%q is reserved", k), "proxies and sandboxio's own variables are set by the sandbox; remove it")
	}
	return nil
}
