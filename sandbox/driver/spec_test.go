package driver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestResourcesResolve(t *testing.T) {
	defaults := driver.Resources{CPUMillis: 1000, MemoryMiB: 512, DiskMiB: 256, PIDs: 256}
	for _, c := range []struct {
		name   string
		in     driver.Resources
		want   driver.Resources
		fields []string
	}{
		{"zero means the defaults", driver.Resources{}, defaults, nil},
		{"what is set stays", driver.Resources{CPUMillis: 10, MemoryMiB: 16, DiskMiB: 4, PIDs: 32}, driver.Resources{CPUMillis: 10, MemoryMiB: 16, DiskMiB: 4, PIDs: 32}, nil},
		{"a negative cap is no way to unset it", driver.Resources{PIDs: -1}, driver.Resources{}, []string{"resources.pids"}},
		{"every problem is told", driver.Resources{CPUMillis: 1, MemoryMiB: 1, DiskMiB: 1, PIDs: 1}, driver.Resources{},
			[]string{"resources.cpu_millis", "resources.memory_mib", "resources.disk_mib", "resources.pids"}},
		{"bytes for MiB are a mistake", driver.Resources{MemoryMiB: 512 << 20}, driver.Resources{}, []string{"resources.memory_mib"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.in.Resolve()
			if diff := cmp.Diff(c.fields, fields(err)); diff != "" {
				t.Error(diff)
			}
			if err == nil && got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func fields(err error) []string {
	var out []string
	for _, p := range driver.Problems(err) {
		out = append(out, p.Field)
	}
	return out
}

func TestTrust(t *testing.T) {
	var zero driver.Trust
	if zero.Stated() || zero.IsTrusted() || zero.IsUntrusted() || zero.String() != "" || zero.Validate() != nil {
		t.Errorf("the zero value is %+v", zero)
	}
	if u := driver.Untrusted; !u.IsUntrusted() || !u.Stated() || u.IsTrusted() || u.Validate() != nil {
		t.Errorf("Untrusted is %+v", u)
	}
	if v := driver.Trusted("ours"); !v.IsTrusted() || v.Reason() != "ours" || v.Validate() != nil {
		t.Errorf("Trusted is %+v", v)
	}
	for _, c := range []struct {
		name, level, reason string
		ok                  bool
	}{
		{"unstated", "", "", true}, {"untrusted", "untrusted", "", true}, {"trusted with a reason", "trusted", "built here", true},
		{"trusted without one", "trusted", "", false}, {"trusted with a blank one", "trusted", " \t", false}, {"trusted with nothing to read", "trusted", "\u200b-", false},
		{"a reason for nothing", "", "x", false}, {"a reason for distrust", "untrusted", "x", false}, {"another level", "Trusted", "x", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := driver.ParseTrust(c.level, c.reason)
			if c.ok != (err == nil) || !c.ok && !errors.Is(err, driver.CodeInvalid) {
				t.Errorf("ParseTrust(%q, %q) = %+v, %v", c.level, c.reason, got, err)
			}
			if c.ok && (got.String() != c.level || got.Reason() != c.reason) {
				t.Errorf("got %q, %q", got, got.Reason())
			}
		})
	}
}

func TestIsolation(t *testing.T) {
	tiers := []driver.Isolation{driver.Unverified, driver.Container, driver.UserKernel, driver.MicroVM}
	for i, measured := range tiers {
		for j, floor := range tiers {
			if got, want := measured.Satisfies(floor), i >= j; got != want {
				t.Errorf("%v satisfies %v: %v", measured, floor, got)
			}
		}
		if back, err := driver.ParseIsolation(measured.String()); err != nil || back != measured {
			t.Errorf("%v is read back as %v, %v", measured, back, err)
		}
	}
	for _, s := range []string{"Container", "vm", "isolation(10)", " "} {
		if _, err := driver.ParseIsolation(s); !errors.Is(err, driver.CodeInvalid) {
			t.Errorf("ParseIsolation(%q): %v", s, err)
		}
	}
}

func TestValidateEnv(t *testing.T) {
	for _, c := range []struct {
		name, key, value string
		ok               bool
	}{
		{"a value with = (M100)", "A", "b=c=d", true}, {"a value with a line break (M100)", "A", "x\ny", true}, {"an empty value (M100)", "A", "", true},
		{"quotes and dollars stay (M101)", "A", `"'$x` + "`", true}, {"any bytes but NUL", "A", "\xff\xfe", true}, {"the longest value", "A", strings.Repeat("x", 128<<10-3), true},
		{"an empty name (M100)", "", "x", false}, {"a blank in a name (M100)", "A B", "1", false}, {"a name with =", "A=B", "1", false}, {"a digit first", "1A", "x", false},
		{"a NUL in a value (M100)", "A", "x\x00y", false}, {"a NUL in a name", "A\x00", "x", false}, {"too long", "A", strings.Repeat("x", 128<<10-2), false},
		{"a proxy (M31)", "HTTP_PROXY", "x", false}, {"a proxy in lower case (M31)", "https_proxy", "x", false}, {"all proxies (M31)", "ALL_PROXY", "x", false},
		{"no proxy (M31)", "No_Proxy", "x", false}, {"our own", "SANDBOXIO_X", "x", false}, {"our own in lower case", "sandboxio_x", "x", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := driver.ValidateEnv("env", map[string]string{c.key: c.value})
			if c.ok != (err == nil) || !c.ok && !errors.Is(err, driver.CodeInvalid) {
				t.Fatal(err)
			}
			if want := []string{fmt.Sprintf("env[%q]", c.key)}; err != nil && !cmp.Equal(fields(err), want) {
				t.Errorf("fields %q, want %q", fields(err), want)
			}
		})
	}
	if err := driver.ValidateEnv("secrets", map[string]string{"A": "canary\x00"}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a value is in the error: %v", err)
	}
}

func TestValidateLabels(t *testing.T) {
	for _, c := range []struct {
		name, key, value string
		ok               bool
	}{
		{"plain", "team", "data", true}, {"a path", "acme.dev/team", "a b", true}, {"an empty value", "a", "", true}, {"the longest", strings.Repeat("a", 63), strings.Repeat("x", 256), true},
		{"our prefix (M106)", "sandboxio.managed", "true", false}, {"our prefix in capitals (M106)", "SandboxIO.x", "1", false}, {"an empty name", "", "x", false},
		{"a name too long", strings.Repeat("a", 64), "x", false}, {"a name with =", "a=b", "x", false}, {"a dot at the end", "a.", "x", false},
		{"a value too long", "a", strings.Repeat("x", 257), false}, {"a line break", "a", "x\ny", false}, {"not ASCII", "a", "é", false}, {"not UTF-8", "a", "\xff", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := driver.ValidateLabels("labels", map[string]string{c.key: c.value})
			if c.ok != (err == nil) || !c.ok && !errors.Is(err, driver.CodeInvalid) {
				t.Error(err)
			}
		})
	}
}

func TestFactsSurviveTheirLabels(t *testing.T) {
	want := driver.Facts{Owner: "o", Instance: "i", Parent: "p", Template: "t", Policy: "y", Pool: "l", Reaper: "r", Tenant: "n", Session: "s"}
	native := want.Labels(driver.RoleSandbox, time.Unix(10, 0), time.Unix(20, 0))
	native["team"], native["sandboxio.unknown"] = "data", "x"
	got, own := driver.ParseLabels(native)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "data"}, own); diff != "" {
		t.Error(diff)
	}
	if native[driver.LabelManaged] != "true" || native[driver.LabelCreated] != "10" || native[driver.LabelMaxExpires] != "20" || native[driver.LabelRole] != "sandbox" {
		t.Errorf("labels are %v", native)
	}
}

// An image's labels are no caller's: they would show as drift, and enlist a
// sandbox where a caller's labels count.
func TestLabelsOfAnImageAreToldFromTheCallers(t *testing.T) {
	s := order()
	s.Labels = map[string]string{"team": "data", "a/b": ""}
	native := s.NativeLabels(time.Unix(10, 0), time.Unix(20, 0))
	native["org.opencontainers.image.revision"] = "x"
	facts, own := driver.ParseLabels(native)
	if diff := cmp.Diff(s.Labels, own); diff != "" || facts != s.Facts {
		t.Error(diff, facts)
	}
	if driver.HasLabels(driver.OwnLabels(native), map[string]string{"org.opencontainers.image.revision": "x"}) ||
		!driver.HasLabels(driver.OwnLabels(native), map[string]string{"team": "data", driver.LabelInstance: s.Token}) {
		t.Errorf("own labels are %v", driver.OwnLabels(native))
	}
	s.Labels = nil
	native = s.NativeLabels(time.Unix(10, 0), time.Unix(20, 0))
	native["image"] = "x"
	if _, own := driver.ParseLabels(native); len(own) != 0 {
		t.Errorf("no labels become %v", own)
	}
}

func TestHasLabels(t *testing.T) {
	have := map[string]string{"a": "1", "b": ""}
	for _, c := range []struct {
		name string
		want map[string]string
		ok   bool
	}{
		{"nothing is asked", nil, true}, {"one of two", map[string]string{"a": "1"}, true}, {"an empty value", map[string]string{"b": ""}, true},
		{"another value", map[string]string{"a": "2"}, false}, {"an empty value is not absence", map[string]string{"c": ""}, false}, {"all are needed (M108)", map[string]string{"a": "1", "c": "1"}, false},
	} {
		if got := driver.HasLabels(have, c.want); got != c.ok {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A secret prints itself in no way there is.
func TestSecretHides(t *testing.T) {
	const canary = "canary-7f3a"
	s := driver.NewSecret(canary)
	holder := struct {
		S driver.Secret
		P *driver.Secret
		M map[string]driver.Secret
		s driver.Secret // fmt cannot call its methods
		m map[string]*driver.Secret
	}{s, &s, map[string]driver.Secret{"k": s}, s, map[string]*driver.Secret{"k": &s}}
	var text strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%08b", "%c", "%U", "%w"} {
		for _, x := range []any{s, &s, holder, &holder, []driver.Secret{s}} {
			fmt.Fprintf(&text, verb, x)
		}
	}
	b, err := json.Marshal(holder)
	text.Write(b)
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", "s", s, "h", holder)
	slog.New(slog.NewJSONHandler(&text, nil)).Info("x", "s", s, "h", holder)
	if err != nil || strings.Contains(text.String(), canary) || strings.Contains(text.String(), fmt.Sprintf("%x", canary)) {
		t.Errorf("%v, printed: %s", err, text.String())
	}
	if got := (driver.Secret{}).Reveal(); got != "" {
		t.Errorf("the zero secret is %q", got)
	}
	if s.Reveal() != canary {
		t.Error("and it is not given back")
	}
}

func order() driver.Spec {
	return driver.Spec{Token: "t1", Facts: driver.Facts{Instance: "t1"}, Image: "memory:probe", Lifetime: time.Minute,
		Resources: driver.Resources{CPUMillis: 1000, MemoryMiB: 512, DiskMiB: 256, PIDs: 256}}
}

func TestSpecValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong func(*driver.Spec)
		field string // "" = accepted
	}{
		{"a complete order", func(s *driver.Spec) {}, ""},
		{"canonical rules", func(s *driver.Spec) {
			s.Network.Egress, _ = driver.Canonical([]driver.Rule{{Host: "a.example"}, {Prefix: netip.MustParsePrefix("10.0.0.0/8")}})
		}, ""},
		{"no token", func(s *driver.Spec) { s.Token, s.Facts.Instance = "", "" }, "token"},
		{"a token that climbs", func(s *driver.Spec) { s.Token = "../x"; s.Facts.Instance = s.Token }, "token"},
		{"another instance", func(s *driver.Spec) { s.Facts.Instance = "t2" }, "facts.instance"},
		{"no image", func(s *driver.Spec) { s.Image = "" }, "image"},
		{"no lifetime", func(s *driver.Spec) { s.Lifetime = 0 }, "lifetime"},
		{"a negative lifetime", func(s *driver.Spec) { s.Lifetime = -time.Second }, "lifetime"},
		{"parts of a second", func(s *driver.Spec) { s.Lifetime = 1500 * time.Millisecond }, "lifetime"},
		{"a lifetime without end", func(s *driver.Spec) { s.Lifetime = driver.MaxLifetime + time.Second }, "lifetime"},
		{"a cap unset", func(s *driver.Spec) { s.Resources.PIDs = 0 }, "resources"},
		{"a cap out of bounds", func(s *driver.Spec) { s.Resources.PIDs = 1 }, "resources.pids"},
		{"a rule that is not canonical", func(s *driver.Spec) { s.Network.Egress = []driver.Rule{{Host: "A.example"}} }, "network.egress"},
		{"a rule that is none", func(s *driver.Spec) { s.Network.Egress = []driver.Rule{{Host: "*"}} }, "network.egress[0].host"},
		{"a reserved variable", func(s *driver.Spec) { s.Env = map[string]string{"HTTP_PROXY": "x"} }, `env["HTTP_PROXY"]`},
		{"a reserved label", func(s *driver.Spec) { s.Labels = map[string]string{"sandboxio.role": "x"} }, `labels["sandboxio.role"]`},
		{"a tier that is none", func(s *driver.Spec) { s.Isolation = 5 }, "isolation"},
		{"a profile that is none", func(s *driver.Spec) { s.Profile = 9 }, "profile"},
		{"a mode that is none", func(s *driver.Spec) { s.Network.Mode = 9 }, "network.mode"},
		{"trust without a reason", func(s *driver.Spec) { s.Trust = driver.Trusted("") }, "trust"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := order()
			c.wrong(&s)
			err := s.Validate()
			if c.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, driver.CodeInvalid) || !cmp.Equal(fields(err), []string{c.field}) {
				t.Errorf("%v; fields %q, want %q", err, fields(err), c.field)
			}
		})
	}
}

func TestInfoSupports(t *testing.T) {
	full := driver.Info{Name: "x", Capabilities: driver.Capabilities(), Isolation: driver.Container}
	everything := order()
	everything.Detached, everything.MultiTenant, everything.Network.Learn = true, true, true
	everything.Network.Expose = []uint16{80}
	everything.Network.Egress, _ = driver.Canonical([]driver.Rule{{Host: "a.example"}, {Prefix: netip.MustParsePrefix("10.0.0.0/8")}})
	everything.Isolation = driver.Container
	if err := full.Supports(everything); err != nil {
		t.Error(err)
	}
	err := driver.Info{Name: "x"}.Supports(everything)
	want := []string{"profile", "detached", "multi_tenant", "network.expose", "network.learn", "network.egress[0].cidr", "network.egress[1].host", "isolation"}
	if diff := cmp.Diff(want, fields(err)); diff != "" || driver.CodeOf(err) != driver.CodeUnsupported {
		t.Error(err, diff)
	}
	everything.Profile = driver.Compat
	if got := fields(driver.Info{}.Supports(everything)); got[0] != "profile" {
		t.Errorf("compat undeclared gives %q", got)
	}
}

func TestCmdValidate(t *testing.T) {
	ok := func() driver.Cmd { return driver.Cmd{Args: []string{"true", ""}, Timeout: time.Second} }
	for _, c := range []struct {
		name  string
		wrong func(*driver.Cmd)
		field string
	}{
		{"a complete command", func(c *driver.Cmd) {}, ""},
		{"no program", func(c *driver.Cmd) { c.Args = nil }, "args"},
		{"an empty program", func(c *driver.Cmd) { c.Args = []string{""} }, "args"},
		{"a NUL in an argument", func(c *driver.Cmd) { c.Args[1] = "a\x00b" }, "args[1]"},
		{"no timeout (M55)", func(c *driver.Cmd) { c.Timeout = 0 }, "timeout"},
		{"a negative timeout (M56)", func(c *driver.Cmd) { c.Timeout = -1 }, "timeout"},
		{"a NUL in the directory", func(c *driver.Cmd) { c.Dir = "a\x00" }, "dir"},
		{"a reserved variable", func(c *driver.Cmd) { c.Env = map[string]string{"no_proxy": "*"} }, `env["no_proxy"]`},
		{"a reserved secret", func(c *driver.Cmd) { c.Secrets = map[string]driver.Secret{"A B": driver.NewSecret("x")} }, `secrets["A B"]`},
		{"a secret that is in env too", func(c *driver.Cmd) {
			c.Env, c.Secrets = map[string]string{"A": "x"}, map[string]driver.Secret{"A": driver.NewSecret("x")}
		}, `secrets["A"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := ok()
			c.wrong(&cmd)
			err := cmd.Validate()
			if c.field == "" && err != nil || c.field != "" && !cmp.Equal(fields(err), []string{c.field}) {
				t.Errorf("%v; want field %q", err, c.field)
			}
		})
	}
}
