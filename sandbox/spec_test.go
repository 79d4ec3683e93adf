package sandbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var fakeInfo = driver.Info{Name: "docker", DefaultImage: "base"}

func TestZeroSpecIsStrict(t *testing.T) {
	t.Parallel()
	o, err := Spec{}.resolve(fakeInfo)
	if err != nil {
		t.Fatal(err)
	}
	if o.Image != "base" || o.Lifetime != 300*time.Second || o.Profile != Strict || o.Network.Egress != nil || o.Detached ||
		o.Resources != (Resources{CPUMillis: 1000, MemoryMiB: 512, DiskMiB: 256, PIDs: 256}) {
		t.Errorf("not strict: %+v", o)
	}
}

func TestSpecResolve(t *testing.T) {
	t.Parallel()
	tm := full()
	untrusted := full()
	untrusted.Trust = Trust{}
	for _, c := range []struct {
		name  string
		spec  Spec
		field string // "" = accepted
	}{
		{"no image where there is no default", Spec{}, "image"},
		{"a malformed image", Spec{Image: "a b"}, "image"},
		{"a negative lifetime", Spec{Image: pinned, Lifetime: -1}, "lifetime"},
		{"a lifetime without end", Spec{Image: pinned, Lifetime: 1 << 62}, "lifetime"},
		{"a fraction of a second", Spec{Image: pinned, Lifetime: time.Millisecond}, ""},
		{"trust without reason", Spec{Image: pinned, Trust: Trusted("")}, "trust"},
		{"a profile there is not", Spec{Image: pinned, Profile: 9}, "profile"},
		{"an empty allowlist", Spec{Image: pinned, Network: Network{Egress: []Rule{}}}, ""},
		{"a template alone", Spec{Template: &tm}, ""},
		{"a template of another backend", Spec{Template: &Template{Name: "x", Backend: "other", Image: pinned}}, "template"},
		{"another image than the template's", Spec{Template: &tm, Image: "other:1"}, "image"},
		{"a shorter life than the template's", Spec{Template: &tm, Lifetime: time.Second}, ""},
		{"a longer life than the template's", Spec{Template: &tm, Lifetime: time.Hour}, "lifetime"},
		{"more memory than the template's", Spec{Template: &tm, Resources: Resources{MemoryMiB: 4096}}, "resources.memory_mib"},
		{"less memory than the template's", Spec{Template: &tm, Resources: Resources{MemoryMiB: 32}}, ""},
		{"compat under a strict template", Spec{Template: &tm, Profile: Compat}, "profile"},
		{"another mode than the template's", Spec{Template: &tm, Network: Network{Mode: driver.Proxy}}, "network.mode"},
		{"a network of its own", Spec{Template: &tm, Network: Network{Egress: []Rule{{Host: "evil.example"}}}}, "network"},
		{"learning under a template", Spec{Template: &tm, Network: Network{Learn: true}}, "network"},
		{"vouching for an unstated template", Spec{Template: &untrusted, Trust: Trusted("me")}, "trust"},
		{"distrusting a trusted template", Spec{Template: &tm, Trust: Untrusted}, ""},
		{"another value for the template's variable", Spec{Template: &tm, Env: map[string]string{"MODE": "x"}}, `env["MODE"]`},
		{"a variable in place of a secret", Spec{Template: &tm, Env: map[string]string{"TOKEN": "x"}}, `env["TOKEN"]`},
		{"a control character in tenant", Spec{Image: pinned, Tenant: "a\nb"}, "tenant"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := c.spec.resolve(driver.Info{Name: "docker"})
			if c.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, CodeInvalid) {
				t.Fatalf("got %v, want invalid", err)
			}
			if p := driver.Problems(err); p[0].Field != c.field || p[0].Hint == "" {
				t.Errorf("field %q hint %q, want field %q", p[0].Field, p[0].Hint, c.field)
			}
		})
	}
}

func TestTrustRaisesTheFloor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec Spec
		want Isolation
	}{
		{Spec{}, Unverified},
		{Spec{Trust: Trusted("why")}, Unverified},
		{Spec{Trust: Untrusted}, UserKernel},
		{Spec{Trust: Untrusted, MultiTenant: true}, MicroVM},
		{Spec{Trust: Untrusted, Isolation: MicroVM}, MicroVM},
		{Spec{Isolation: Container}, Container},
	} {
		o, err := c.spec.resolve(fakeInfo)
		if err != nil || o.Isolation != c.want {
			t.Errorf("%+v: floor %v (%v), want %v", c.spec, o.Isolation, err, c.want)
		}
	}
}

func TestCmdResolveRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cmd   Cmd
		field string
	}{
		{"no program", Cmd{}, "args"},
		{"an empty program", Cmd{Args: []string{""}}, "args"},
		{"a NUL in an argument", Cmd{Args: []string{"a", "b\x00"}}, "args[1]"},
		{"an argument the kernel refuses", Cmd{Args: []string{"a", longText(128 << 10)}}, "args[1]"},
		{"a negative timeout", Cmd{Args: []string{"a"}, Timeout: -1}, "timeout"},
		{"a negative bound of output", Cmd{Args: []string{"a"}, MaxOutput: -1}, "max_output"},
		{"a name without letters", Cmd{Args: []string{"a"}, Env: map[string]string{"": "x"}}, `env[""]`},
		{"a name with a blank", Cmd{Args: []string{"a"}, Env: map[string]string{"A B": "x"}}, `env["A B"]`},
		{"a NUL in a value", Cmd{Args: []string{"a"}, Env: map[string]string{"A": "x\x00"}}, `env["A"]`},
		{"a secret that is also a variable", Cmd{Args: []string{"a"}, Env: map[string]string{"A": "x"}, Secrets: map[string]Secret{"A": NewSecret("y")}}, `secrets["A"]`},
		{"detached in an owned sandbox", Cmd{Args: []string{"a"}, Detached: true}, "detached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := c.cmd.resolve(false)
			if p := driver.Problems(err); len(p) == 0 || p[0].Field != c.field || p[0].Code != CodeInvalid {
				t.Errorf("got %v, want invalid at %q", err, c.field)
			}
		})
	}
	if o, err := (Cmd{Args: []string{"a"}}).resolve(false); err != nil || o.Timeout != 300*time.Second || o.Stdin {
		t.Errorf("zero Cmd: %+v, %v", o, err)
	}
}

func longText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return string(b)
}

func TestAProgramsExitStatusHasNoCode(t *testing.T) {
	failed := (&Result{Exit: Exit{Code: 1}}).Err()
	leak := &Error{Code: CodeLeaked}
	for _, c := range []struct {
		name string
		err  error
		want Code
	}{
		{"alone", failed, ""},
		{"wrapped", fmt.Errorf("the tests: %w", failed), ""},
		{"beside a leak", errors.Join(failed, leak), CodeLeaked},
		{"beside a bug", errors.Join(failed, &Error{Code: CodeInternal}), CodeInternal},
		{"status 0", (&Result{}).Err(), ""},
		{"another error", errors.New("x"), CodeInternal},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
