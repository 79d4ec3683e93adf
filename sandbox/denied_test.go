package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestEachRefusalIsInOneRecord(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	s := &sink{}
	rt := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}})
	sb, err := rt.Create(t.Context(), sandbox.Spec{Network: sandbox.Network{Mode: driver.Proxy, Learn: true}})
	if err != nil {
		t.Fatal(err)
	}
	try := func(to string, secrets map[string]sandbox.Secret) {
		t.Helper()
		if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"proxied", to}, Secrets: secrets}); err != nil {
			t.Fatal(err)
		}
	}
	try("a.example.com:443", nil)
	try("a.example.com:443", nil)
	try("203.0.113.9:22", nil)
	try("hunter2hunter2.evil.example:443", map[string]sandbox.Secret{"KEY": sandbox.NewSecret("HUNTER2hunter2")})
	try("b\x1b\u202e.example.com:443", nil)
	if d, err := sb.Denied(t.Context()); err != nil || len(d.Told) != 4 {
		t.Errorf("%+v, %v", d, err)
	}
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	var told []string
	total := 0
	for _, r := range s.records {
		total += r.Refused
		for _, d := range r.Denied {
			target := d.Host
			if d.Addr.IsValid() {
				target = d.Addr.String()
			}
			told = append(told, r.Op+" "+target)
		}
		text, err := json.Marshal(r)
		if err != nil || strings.Contains(strings.ToLower(string(text)), "hunter2") || strings.Contains(string(text), "\x1b") || strings.Contains(string(text), `\u001b`) {
			t.Errorf("%v: %s", err, text)
		}
	}
	want := "run a.example.com, run a.example.com, run 203.0.113.9, run [secret].evil.example, run b\uFFFD\uFFFD.example.com"
	if got := strings.Join(told, ", "); got != want || total != 5 {
		t.Errorf("%d: %s", total, got)
	}
}

// denying tells what it is told to.
type denying struct {
	driver.Sandbox
	d *driver.Denials
}

func (d denying) Denied(context.Context) (driver.Denials, error) { return *d.d, nil }

func TestARecordTellsTheMostFrequentKindsAndCountsAll(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	d := driver.Denials{Told: []driver.Denial{{Host: "often.example.com", Reason: "host", Count: 3}}, Other: 7}
	for i := range 100 {
		d.Told = slices.Insert(d.Told, 0, driver.Denial{Host: fmt.Sprintf("x%d.example.com", i), Reason: "host", Count: 1})
	}
	l := lying{b, func(ctx context.Context, s driver.Spec, b driver.Backend) (driver.Sandbox, error) {
		sb, err := b.Create(ctx, s)
		return denying{sb, &d}, err
	}}
	s := &sink{}
	if _, err := sandbox.New(l, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}}).Run(t.Context(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.records {
		if r.Op == "run" && (len(r.Denied) != 32 || r.Denied[0].Host != "often.example.com" || r.Denied[0].Count != 3 || r.Refused != 110) {
			t.Errorf("%d kinds of %d: %+v", len(r.Denied), r.Refused, r.Denied)
		}
		if r.Op != "run" && r.Refused != 0 {
			t.Errorf("%s tells again", r.Op)
		}
	}
}
