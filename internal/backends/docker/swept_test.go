package docker

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestACreatorIsToldThatItsContainerWasTakenAway(t *testing.T) {
	for _, detached := range []bool{false, true} {
		for _, call := range []string{"copy", "attach", "start"} {
			if detached && call == "attach" {
				continue
			}
			f := newFake(t)
			f.fault = func(c string, _ http.ResponseWriter) fault {
				if c == call {
					f.mu.Lock()
					clear(f.containers)
					f.mu.Unlock()
				}
				return none
			}
			spec := testSpec("one")
			spec.Detached = detached
			_, err := f.open(t).Create(limited(t, 20*time.Second), spec)
			var e *driver.Error
			if !errors.As(err, &e) || e.Code != driver.CodeConflict || !strings.Contains(err.Error(), "removed before it was started, as a sweep does") || e.Hint == "" {
				t.Errorf("at %s, detached %v: %v", call, detached, err)
			}
		}
	}
}

// What fails while it is there was not taken away, and says what it is.
func TestACreatorThatFailsByItselfIsNotToldOfSweeps(t *testing.T) {
	for _, call := range []string{"copy", "attach", "start"} {
		f := newFake(t)
		f.fault = func(c string, _ http.ResponseWriter) fault {
			if c == call {
				return refuse
			}
			return none
		}
		if _, err := f.open(t).Create(limited(t, 20*time.Second), testSpec("one")); err == nil || strings.Contains(err.Error(), "sweep") {
			t.Errorf("at %s: %v", call, err)
		}
	}
}

func TestAnAddressPoolThatRulesOpenIsRefused(t *testing.T) {
	t.Parallel()
	for pool, ok := range map[string]bool{
		"198.18.0.0/15": true, "198.19.255.240/28": true, "10.64.0.0/12": true, "172.16.0.0/12": true, "100.64.0.0/16": true, "192.168.7.0/24": true,
		"203.0.113.0/24": false, "8.0.0.0/8": false, "172.0.0.0/8": false, "127.0.0.0/8": false, "169.254.0.0/16": false, "224.0.0.0/8": false,
	} {
		if err := (Options{AddressPool: pool}).validateEgress(); (err == nil) != ok {
			t.Errorf("%s: %v", pool, err)
		}
	}
}
