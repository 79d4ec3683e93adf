package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/cli"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
)

func TestInspectShowsASandboxAndWhatItWasRefused(t *testing.T) {
	t.Parallel()
	world := memory.Named("inspect")
	defer world.Close()
	b := memory.Open(memory.Options{World: world})
	defer b.Close()
	rt := sandbox.New(b, sandbox.Options{Unguarded: "a test", Owner: "me"})
	sb, err := rt.Create(t.Context(), sandbox.Spec{Tenant: "t1", Labels: map[string]string{"team": "search"}, Network: sandbox.Network{Mode: driver.Transparent, Learn: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	for _, to := range []string{"a.example.com:443", "a.example.com:443", "x\x1b\u202e.example.com:443", "203.0.113.9:22"} {
		if _, err := sb.Run(t.Context(), sandbox.Cmd{Args: []string{"fetch", to}}); err != nil {
			t.Fatal(err)
		}
	}
	show := func(more ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, "test", append([]string{"inspect", "--backend", "memory://inspect"}, more...))
		return code, out.String(), errs.String()
	}
	code, out, errs := show(sb.ID())
	for _, want := range []string{sb.ID(), "running", "me", "t1", "label team", "search", "4 requests", "a.example.com port 443", "no-rules, 2 times", "203.0.113.9 port 22", "x??.example.com"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not show %q", want)
		}
	}
	if code != 0 || errs != "" || strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("%d: %s%s", code, out, errs)
	}
	code, out, _ = show("--json", sb.ID())
	var r struct {
		Schema  string
		Refused int
		Facts   map[string]string
		Denied  []driver.Denial
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Schema != "sandboxio.inspect/v1" || r.Refused != 4 || len(r.Denied) != 3 || r.Facts["tenant"] != "t1" || r.Facts["owner"] != "me" {
		t.Errorf("%d, %v: %s", code, err, out)
	}
	own, err := rt.Create(t.Context(), sandbox.Spec{Network: sandbox.Network{Mode: driver.Proxy, Learn: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := own.Run(t.Context(), sandbox.Cmd{Args: []string{"proxied", "a.example.com:443"}}); err != nil {
		t.Fatal(err)
	}
	if d, err := own.Denied(t.Context()); err != nil || d.Unknown || len(d.Told) != 1 {
		t.Errorf("its creator knows %+v, %v", d, err)
	}
	const unknown = "not known here: in mode proxy it stands in the records of the process that created it"
	if code, out, errs := show(own.ID()); code != 0 || !strings.Contains(out, unknown) || strings.Contains(out, "0 requests") {
		t.Errorf("%d: %s%s", code, out, errs)
	}
	code, out, _ = show("--json", own.ID())
	for _, want := range []string{`"refused": null`, `"denied": null`, `"unknown": "in mode proxy`} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%d: %s does not say %s", code, out, want)
		}
	}
	if code, _, errs := show("nobody"); code != 1 || !strings.Contains(errs, "not-found") {
		t.Errorf("%d: %s", code, errs)
	}
}

func TestInspectFindsASandboxByWhatItsUserHas(t *testing.T) {
	t.Parallel()
	world := memory.Named("inspect-find")
	defer world.Close()
	b := memory.Open(memory.Options{World: world})
	defer b.Close()
	rt := sandbox.New(b, sandbox.Options{Unguarded: "a test", Owner: "me\x1b"})
	var ids []string
	for range 2 {
		sb, err := rt.Create(t.Context(), sandbox.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		defer sb.Close()
		ids = append(ids, sb.ID())
	}
	show := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := cli.Main(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, "test", append([]string{"inspect", "--backend", "memory://inspect-find", "--json"}, args...))
		return code, out.String(), errs.String()
	}
	var all struct {
		Schema    string
		Sandboxes []struct{ ID, Name, Owner string }
	}
	code, out, errs := show()
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 || all.Schema != "sandboxio.inspect.list/v1" || len(all.Sandboxes) != 2 {
		t.Fatalf("%d, %v: %s%s", code, err, out, errs)
	}
	one := all.Sandboxes[0]
	for _, name := range []string{one.ID, one.Name, "memory/" + one.ID, "memory/" + one.Name, one.ID[:12], "memory/" + one.ID[:12]} {
		if code, out, errs := show(name); code != 0 || !strings.Contains(out, `"id": "`+one.ID+`"`) {
			t.Errorf("%s: %d %s%s", name, code, out, errs)
		}
	}
	for name, want := range map[string]string{
		one.ID[:5]:         "12 digits are needed",
		"docker/" + one.ID: `of the backend "docker"`,
		"sandboxio-nobody": "no sandbox has the id or name",
	} {
		code, _, errs := show(name)
		if code != 1 || !strings.Contains(errs, want) || !strings.Contains(errs, "sandboxio inspect lists the sandboxes") {
			t.Errorf("%s: %d %s", name, code, errs)
		}
	}
	var text bytes.Buffer
	if code := cli.Main(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &text, Err: &text}, "test", []string{"inspect", "--backend", "memory://inspect-find"}); code != 0 {
		t.Error(code)
	}
	for _, id := range ids {
		if !strings.Contains(text.String(), id[:12]) || strings.Contains(text.String(), "\x1b") {
			t.Errorf("%s: %q", id, text.String())
		}
	}
}
