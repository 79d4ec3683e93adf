package egress_test

import (
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// Nobody is told to open what is protected, whichever reason the refusal has.
func TestTheFixForAProtectedAddressIsNeverARuleForIt(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"169.254.169.254:443": "scoped secret", "[fd00:ec2::254]:80": "scoped secret", "[::ffff:169.254.169.254]:80": "scoped secret", "169.254.1.1:443": "scoped secret",
		"10.0.0.1:443": "SBX-NET-005", "100.64.0.1:443": "SBX-NET-005", "127.0.0.1:443": "the sandbox itself", "[::1]:443": "the sandbox itself",
		"224.0.0.1:443": "no connection", "0.0.0.0:443": "no connection", "240.0.0.1:443": "no connection",
	} {
		r, err := egress.ParseRequest("request", request)
		if err != nil {
			t.Fatal(err)
		}
		for name, list := range map[string][]string{
			"no rules": nil, "another rule": {"example.com"}, "another port": {"169.254.169.254:22", "10.0.0.0/8:22", "127.0.0.0/8:22"}, "all addresses": {"0.0.0.0/0", "::/0"},
		} {
			e := compile(t, list...).Explain(r)
			if e.Allowed || !strings.Contains(e.Fix, want) || e.Missing != nil {
				t.Errorf("%s with %s: %s", request, name, e.Fix)
			}
		}
	}
	if e := compile(t).Explain(egress.Request{Host: "example.com", Port: 443}); e.Fix != "add a rule for example.com:443, if it is meant" || e.Missing == nil || e.Missing.String() != "example.com:443" {
		t.Errorf("got %s, %v", e.Fix, e.Missing)
	}
}
