package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
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

// However often names are asked for, an address that gives out credentials is
// told.
func TestARecordTellsAnAddressInAFloodOfNames(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	var d driver.Denials
	for i := range 100 {
		d.Told = append(d.Told, driver.Denial{Host: fmt.Sprintf("x%d.example.com", i), Reason: "host", Count: 9})
	}
	d.Told = append(d.Told, driver.Denial{Host: "z.example.com", Addr: netip.MustParseAddr("169.254.169.254"), Port: 80, Reason: "host", Count: 1})
	l := lying{b, func(ctx context.Context, s driver.Spec, b driver.Backend) (driver.Sandbox, error) {
		sb, err := b.Create(ctx, s)
		return denying{sb, &d}, err
	}}
	s := &sink{}
	if _, err := sandbox.New(l, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}}).Run(t.Context(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.records {
		if r.Op == "run" && (len(r.Denied) != 32 || r.Denied[31].Port != 80 || r.Denied[0].Count != 9) {
			t.Errorf("%d kinds: %+v", len(r.Denied), r.Denied)
		}
	}
}

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

// What only the creator's process counts is no zero in another's records.
func TestARecordSaysThatRefusalsAreNotKnownHere(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	made := create(t, b)
	s := &sink{}
	sb, err := sandbox.New(b, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}}).Attach(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"proxied", "a.example.com:443"}}); err != nil {
		t.Fatal(err)
	}
	if d, err := sb.Denied(t.Context()); err != nil || !d.Unknown {
		t.Errorf("%+v, %v", d, err)
	}
	i := slices.IndexFunc(s.records, func(r sandbox.Record) bool { return r.Op == "run" })
	if i < 0 || !slices.ContainsFunc(s.records[i].Warnings, func(w string) bool { return strings.Contains(w, "not known here") }) {
		t.Errorf("%+v", s.records)
	}
}

// create makes a sandbox with a proxy, and gives its id.
func create(t *testing.T, b driver.Backend) string {
	t.Helper()
	sb, err := sandbox.New(b, sandbox.Options{Unguarded: "a test"}).Create(t.Context(), sandbox.Spec{Network: sandbox.Network{Mode: driver.Proxy, Learn: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() })
	return sb.ID()
}

// A backend tells a bounded number of kinds apart; which, may change.
func TestEachRefusalIsCountedOnceWhileKindsMove(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	var d driver.Denials
	l := lying{b, func(ctx context.Context, s driver.Spec, b driver.Backend) (driver.Sandbox, error) {
		sb, err := b.Create(ctx, s)
		return denying{sb, &d}, err
	}}
	s := &sink{}
	sb, err := sandbox.New(l, sandbox.Options{Unguarded: "a test", Sinks: []sandbox.Sink{s}}).Create(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	kinds := func(n, count int) []driver.Denial {
		var out []driver.Denial
		for i := range n {
			out = append(out, driver.Denial{Host: fmt.Sprintf("x%d.example.com", i), Reason: "host", Count: count})
		}
		return out
	}
	for _, c := range []struct {
		now     driver.Denials
		refused int
		denied  int
	}{
		{driver.Denials{Told: kinds(30, 1000)}, 30_000, 30},
		{driver.Denials{Told: kinds(23, 1000), Other: 7016}, 16, 0},
		{driver.Denials{Told: append(kinds(30, 1000), driver.Denial{Host: "a.example.com", Count: 1}, driver.Denial{Host: "b.example.com", Count: 1}), Other: 114}, 100, 2},
		{driver.Denials{Told: append(kinds(30, 1000), driver.Denial{Host: "c.example.com", Count: 9}), Other: 107}, 0, 1},
		{driver.Denials{Told: kinds(3, 7)}, 0, 0}, // what a backend must not say
		{driver.Denials{Told: kinds(30, 1000), Other: 118}, 2, 0},
	} {
		d = c.now
		if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"true"}}); err != nil {
			t.Fatal(err)
		}
		r := s.records[len(s.records)-1]
		if r.Refused != c.refused || len(r.Denied) != c.denied {
			t.Errorf("%d refused and %d told, want %d and %d", r.Refused, len(r.Denied), c.refused, c.denied)
		}
		for _, one := range r.Denied {
			if one.Count <= 0 {
				t.Errorf("%+v", one)
			}
		}
	}
}

func TestALogTellsAKindThatWasCountedBefore(t *testing.T) {
	t.Parallel()
	var buf strings.Builder
	log := sandbox.LogSink{Logger: slog.New(slog.NewTextHandler(&buf, nil))}
	if err := log.Record(t.Context(), sandbox.Record{Op: "run", Denied: []sandbox.Denial{{Host: "late.example.com", Count: 1}}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(buf.String(), "late.example.com") {
		t.Error(buf.String())
	}
}
