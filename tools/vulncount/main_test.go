package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	t.Parallel()
	const config = `{"config":{"protocol_version":"v1"}}`
	called := func(osv, module string) string {
		return `{"finding":{"osv":"` + osv + `","fixed_version":"v2","trace":[{"module":"` + module + `","version":"v1","package":"p","function":"F"}]}}`
	}
	for _, c := range []struct {
		name, in string
		ours     int
		fails    bool
	}{
		{"nothing found", config, 0, false},
		{"nothing scanned", ``, 0, true},
		{"no JSON", `govulncheck: no such flag`, 0, true},
		{"Go's own library", config + called("GO-1", "stdlib"), 0, false},
		{"a module", config + called("GO-1", "example.com/m"), 1, false},
		{"one vulnerability on two ways", config + called("GO-1", "example.com/m") + called("GO-1", "example.com/m"), 1, false},
		{"imported, not called", config + `{"finding":{"osv":"GO-1","trace":[{"module":"example.com/m","package":"p"}]}}`, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			ours, err := count(strings.NewReader(c.in), &out)
			if ours != c.ours || (err != nil) != c.fails {
				t.Errorf("got %d, %v\n%s", ours, err, out.String())
			}
		})
	}
}
