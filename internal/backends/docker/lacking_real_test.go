//go:build dockertest

package docker

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// TestWhatAGatewayLacksIsRefused takes from a gateway, on its way to the engine,
// what it cannot do without: nothing comes of that but the fix.
func TestWhatAGatewayLacksIsRefused(t *testing.T) {
	plain, image := engine(t)
	for name, c := range map[string]struct {
		take func(t *testing.T, host map[string]any)
		says string
		hint string
	}{
		"a kernel with nftables": {withoutNetfilter, "the kernel of the engine's host does not take the packet filter",
			"on the engine's host: modprobe -a nf_tables "},
		"CAP_NET_ADMIN": {func(t *testing.T, host map[string]any) {
			t.Helper()
			all, _ := host["CapAdd"].([]any)
			rest := slices.DeleteFunc(slices.Clone(all), func(c any) bool { return c == "CAP_NET_ADMIN" })
			if len(rest) != len(all)-1 {
				t.Errorf("it is not among %v", all)
			}
			host["CapAdd"] = rest
		}, "the gateway lacks CAP_NET_ADMIN", "use an engine that grants CAP_NET_ADMIN to containers"},
	} {
		for _, detached := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", detached"}[detached], func(t *testing.T) {
				b, m := meddled(t, plain.opts)
				taken := 0
				m.before = func(call string, _ *http.Request, body []byte) []byte {
					if call != "POST /containers/create of gateway #1" {
						return body
					}
					taken++
					var made map[string]any
					if err := json.Unmarshal(body, &made); err != nil {
						t.Error(err)
						return body
					}
					host, _ := made["HostConfig"].(map[string]any)
					c.take(t, host)
					body, err := json.Marshal(made)
					if err != nil {
						t.Error(err)
					}
					return body
				}
				spec := realSpec(t, image)
				spec.Detached = detached
				spec.Network.Egress = rules(t, "allowed.example")
				began := time.Now()
				sb, err := b.Create(limited(t, time.Minute), spec)
				if err == nil {
					_ = sb.Kill(t.Context())
				}
				t.Logf("after %v: %v", time.Since(began).Round(time.Millisecond), err)
				if time.Since(began) > wayLimit/2 {
					t.Errorf("it took %v", time.Since(began))
				}
				e := driver.Problems(err)
				if taken != 1 || len(e) != 1 || e[0].Code != driver.CodeUnsupported || e[0].Field != "network" || e[0].Backend != Name || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("%v", err)
				}
				// A detached one has nobody to be its proxy.
				if !strings.HasPrefix(e[0].Hint, c.hint) || strings.Contains(e[0].Hint, `set mode to "proxy"`) == detached {
					t.Errorf("the hint is %q", e[0].Hint)
				}
				if l := ofInstance(t, plain, spec.Token); len(l) > 0 {
					t.Errorf("left: %v", l)
				}
			})
		}
	}
}

// withoutNetfilter has the kernel answer as one without nftables when a socket
// to it is asked for. Everything else is as we order it.
func withoutNetfilter(t *testing.T, host map[string]any) {
	t.Helper()
	const (
		netlink, netfilter = 16, 12 // AF_NETLINK, NETLINK_NETFILTER
		notSupported       = 93     // EPROTONOSUPPORT
	)
	opts, _ := host["SecurityOpt"].([]any)
	changed := false
	for i, o := range opts {
		text, ours := strings.CutPrefix(o.(string), "seccomp=") //nolint:forcetypeassert // we have made it
		if !ours {
			continue
		}
		var profile map[string]any
		if err := json.Unmarshal([]byte(text), &profile); err != nil {
			t.Error(err)
			return
		}
		compare := func(arg, value int, op string) map[string]any {
			return map[string]any{"index": arg, "value": value, "op": op}
		}
		calls, _ := profile["syscalls"].([]any)
		for _, c := range calls {
			c, _ := c.(map[string]any)
			args, _ := c["args"].([]any)
			if names, _ := c["names"].([]any); len(names) == 1 && names[0] == "socket" && len(args) == 1 && args[0].(map[string]any)["value"] == float64(netlink) { //nolint:forcetypeassert // as above
				c["args"] = append(args, compare(2, netfilter, "SCMP_CMP_NE"))
				changed = true
			}
		}
		profile["syscalls"] = append(calls, map[string]any{"names": []string{"socket"}, "action": "SCMP_ACT_ERRNO", "errnoRet": notSupported,
			"args": []any{compare(0, netlink, "SCMP_CMP_EQ"), compare(2, netfilter, "SCMP_CMP_EQ")}})
		b, err := json.Marshal(profile)
		if err != nil {
			t.Error(err)
		}
		opts[i] = "seccomp=" + string(b)
	}
	if !changed {
		t.Error("our filter has no rule for netlink sockets to change")
	}
}
