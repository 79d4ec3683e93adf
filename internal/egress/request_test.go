package egress_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"EXAMPLE.com.:443": "example.com:443", "203.0.113.9:22": "203.0.113.9:22", "[2001:DB8::1]:443": "[2001:db8::1]:443", "[::ffff:10.0.0.1]:1": "10.0.0.1:1",
	} {
		got, err := egress.ParseRequest("request", in)
		if err != nil || got.String() != want {
			t.Errorf("ParseRequest(%q) = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "example.com", "example.com:", "example.com:0", "203.0.113.9:0", "example.com:70000", "example.com:https", "*.example.com:443", "::1:443", "bücher.example:443", "https://example.com:443", "https://example.com/", "example.com:443/a", "u@example.com:443", "10.0.0.0/8:443", "127.1:80", "localhost:80"} {
		got, err := egress.ParseRequest("request", in)
		var e *driver.Error
		if !errors.As(err, &e) || e.Code != driver.CodeInvalid || e.Field != "request" || e.Hint == "" || got != (egress.Request{}) {
			t.Errorf("ParseRequest(%q) = %v, %v", in, got, err)
		}
	}
}

func TestAURLIsNotTakenForAPort(t *testing.T) {
	t.Parallel()
	_, err := egress.ParseRequest("request", "https://example.com/")
	if p := driver.Problems(err); len(p) != 1 || p[0].Err.Error() != `"https://example.com/" is not a host name` {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoRequestIsToldApart(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"2001:db8::1:443":    {"is an IPv6 address without brackets", `write "[2001:db8::1]:443"`},
		"2001:db8::1":        {"has no port", `write "[2001:db8::1]:443"`},
		"2001:db8::abcd":     {"has no port", `write "[2001:db8::abcd]:443"`},
		"::1":                {"has no port", `write "[::1]:443"`},
		"[2001:db8::1]":      {"has no port", `write "[2001:db8::1]:443"`},
		"example.com:443:80": {"has more than one colon", `as "example.com:443"`},
		"example.com:80,443": {`has the port "80,443"`, "one port, a number between 1 and 65535"},
		"example.com:https":  {`has the port "https"`, "one port, a number between 1 and 65535"},
		"example.com":        {"has no port", `as "example.com:443"`},
	} {
		_, err := egress.ParseRequest("request", in)
		p := driver.Problems(err)
		if len(p) != 1 || !strings.Contains(p[0].Err.Error(), want[0]) || !strings.Contains(p[0].Hint, want[1]) {
			t.Errorf("ParseRequest(%q) = %v; want %q", in, err, want)
		}
	}
}
