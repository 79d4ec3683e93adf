package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestCheckRefusesWhatCannotBeEnforced(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*driver.Spec)
		code   driver.Code
		fields []string
	}{
		{"a host on a port of a protocol that names none", func(s *driver.Spec) { s.Network.Egress = []driver.Rule{{Host: "example.com", Ports: []uint16{22}}} }, driver.CodeUnsupported, []string{"network.egress[0].ports"}},
		{"every rule is named", func(s *driver.Spec) {
			s.Network.Egress = []driver.Rule{{Prefix: netip.MustParsePrefix("2001:db8::/32"), Ports: []uint16{443}}, {Host: "a.example", Ports: []uint16{25}}}
		}, driver.CodeUnsupported, []string{"network.egress[0].cidr", "network.egress[1].ports"}},
		{"more rules than a gateway can be told", func(s *driver.Spec) { s.Network.Egress = manyRules(driver.MaxRules) }, driver.CodeUnsupported, []string{"network.egress"}},
		{"an exposed port", func(s *driver.Spec) { s.Network.Expose = []uint16{80} }, driver.CodeUnsupported, []string{"network.expose[0]"}},

		{"a user-space kernel", func(s *driver.Spec) { s.Isolation = driver.UserKernel }, driver.CodeUnsupported, []string{"isolation"}},
		{"a virtual machine", func(s *driver.Spec) { s.Isolation = driver.MicroVM }, driver.CodeUnsupported, []string{"isolation"}},
		{"many tenants", func(s *driver.Spec) { s.MultiTenant = true }, driver.CodeUnsupported, []string{"multi_tenant"}},
		{"a writable root without a quota", func(s *driver.Spec) { s.Profile = driver.Compat }, driver.CodeUnsupported, []string{"profile"}},
		{"an unknown profile", func(s *driver.Spec) { s.Profile = 9 }, driver.CodeUnsupported, []string{"profile"}},
		{"no image", func(s *driver.Spec) { s.Image = "" }, driver.CodeInvalid, []string{"image"}},
		{"a malformed image", func(s *driver.Spec) { s.Image = "a b" }, driver.CodeInvalid, []string{"image"}},
		{"no lifetime", func(s *driver.Spec) { s.Lifetime = 0 }, driver.CodeInvalid, []string{"lifetime"}},
		{"a negative lifetime", func(s *driver.Spec) { s.Lifetime = -time.Second }, driver.CodeInvalid, []string{"lifetime"}},
		{"a lifetime in parts of seconds", func(s *driver.Spec) { s.Lifetime = 1500 * time.Millisecond }, driver.CodeInvalid, []string{"lifetime"}},
		{"an endless lifetime", func(s *driver.Spec) { s.Lifetime = driver.MaxLifetime + time.Second }, driver.CodeInvalid, []string{"lifetime"}},
		{"an unset cap", func(s *driver.Spec) { s.Resources.PIDs = 0 }, driver.CodeInvalid, []string{"resources"}},
		{"a cap out of bounds", func(s *driver.Spec) { s.Resources.MemoryMiB = 1 }, driver.CodeInvalid, []string{"resources.memory_mib"}},
		{"a token that is no name", func(s *driver.Spec) { s.Token = "../x" }, driver.CodeInvalid, []string{"token"}},
		{"a reserved label", func(s *driver.Spec) { s.Labels = map[string]string{"sandboxio.role": "keeper"} }, driver.CodeInvalid, []string{`labels["sandboxio.role"]`}},
		{"a reserved variable", func(s *driver.Spec) { s.Env = map[string]string{"HTTP_PROXY": "x"} }, driver.CodeInvalid, []string{`env["HTTP_PROXY"]`}},
		{"several at once", func(s *driver.Spec) {
			s.Image, s.Isolation, s.Network.Expose = "", driver.MicroVM, []uint16{80}
		}, driver.CodeInvalid, []string{"image", "isolation", "network.expose[0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(Options{}, world(t, nil))
			spec := testSpec("one")
			c.change(&spec)
			_, err := b.Check(spec)
			if driver.CodeOf(err) != c.code {
				t.Errorf("code %q: %v", driver.CodeOf(err), err)
			}
			var fields []string
			for _, p := range driver.Problems(err) {
				fields = append(fields, p.Field)
				if p.Hint == "" {
					t.Errorf("no fix for %s", p.Field)
				}
			}
			for _, f := range c.fields {
				if !slices.Contains(fields, f) {
					t.Errorf("%s is not named in %v", f, fields)
				}
			}
			// And Create refuses it before any I/O.
			b.candidates = func() ([]endpoint, error) { t.Error("it looked for an engine"); return nil, errors.New("no") }
			if _, err := b.Create(t.Context(), spec); driver.CodeOf(err) != c.code {
				t.Errorf("create: %v", err)
			}
		})
	}
}

func TestCheckTellsTheMechanismOfEveryCap(t *testing.T) {
	b := open(Options{StorageQuota: true}, world(t, nil))
	spec := testSpec("one")
	spec.Trust = driver.Trust{}
	for _, profile := range []driver.Profile{driver.Strict, driver.Compat} {
		spec.Profile = profile
		p, err := b.Check(spec)
		if err != nil {
			t.Fatal(err)
		}
		caps := map[string]string{}
		for _, m := range p.Caps {
			caps[m.Name] = m.By
		}
		for name, by := range map[string]string{"cpu": "100000/100000", "memory": "768 MiB", "disk": "tmpfs", "pids": "256", "lifetime": "guest", "root": map[driver.Profile]string{driver.Strict: "read-only", driver.Compat: "quota"}[profile], "syscalls": "seccomp"} {
			if !strings.Contains(caps[name], by) {
				t.Errorf("%s: %q does not say %q", name, caps[name], by)
			}
		}
		if p.Isolation != driver.Container || !strings.Contains(p.Network, "none") || len(p.Warnings) != 0 {
			t.Errorf("%+v", p)
		}
	}
}

func TestCapabilitiesAreWhatIsKept(t *testing.T) {
	for _, quota := range []bool{false, true} {
		info := open(Options{StorageQuota: quota}, world(t, nil)).Info()
		if info.Can(driver.CanCompat) != quota || info.Can(driver.CanMultiTenant) || !info.Can(driver.CanEgressHost) || !info.Can(driver.CanEgressCIDR) || info.Can(driver.CanExpose) || !info.Can(driver.CanExtend) {
			t.Errorf("%v", info.Capabilities)
		}
		if !slices.IsSorted(info.Capabilities) || info.Isolation != driver.Container || info.Simulated {
			t.Errorf("%+v", info)
		}
	}
}

func TestDiskSharesAddUpToTheCap(t *testing.T) {
	for mib := int64(4); mib < 4096; mib = mib*5/4 + 1 {
		for _, profile := range []driver.Profile{driver.Strict, driver.Compat} {
			for n := range maxVolumes + 1 {
				var volumes []string
				for i := range n {
					volumes = append(volumes, "/v/"+string(rune('a'+i)))
				}
				d, err := divide(mib, profile, volumes)
				if err != nil {
					if mib >= 64 {
						t.Fatalf("%d MiB, %d volumes: %v", mib, n, err)
					}
					continue
				}
				if d.total() != mib<<10 || d.memory() > mib<<10 || (d.root > 0) != (profile == driver.Compat) || d.root%1024 != 0 {
					t.Fatalf("%d MiB, %s, %d volumes: %+v", mib, profile, n, d)
				}
				for p, kib := range d.tmpfs {
					if kib%4 != 0 || kib < 64 {
						t.Fatalf("%d MiB, %d volumes: %s has %d KiB", mib, n, p, kib)
					}
				}
			}
		}
	}
}

func TestVolumesOfAnImage(t *testing.T) {
	for _, c := range []struct {
		name     string
		declared []string
		want     []string
		refused  bool
	}{
		{"none", nil, nil, false},
		{"an ordinary one", []string{"/var/lib/x"}, []string{"/var/lib/x"}, false},
		{"those we mount anyway", []string{"/work", "/tmp/", "/run"}, nil, false},
		{"the same twice", []string{"/a", "/a/"}, []string{"/a"}, false},
		{"the root", []string{"/"}, nil, true},
		{"a relative one", []string{"data"}, nil, true},
		{"over /proc", []string{"/proc"}, nil, true},
		{"climbing into /sys", []string{"/x/../sys/fs"}, nil, true},
		{"over devices", []string{"/dev/shm"}, nil, true},
		{"over the guest", []string{"/.sandboxio/x"}, nil, true},
		{"with a separator", []string{"/a:/b"}, nil, true},
		{"with an option", []string{"/a,exec"}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			declared := map[string]struct{}{}
			for _, d := range c.declared {
				declared[d] = struct{}{}
			}
			got, err := volumesOf(declared)
			if (err != nil) != c.refused || !slices.Equal(got, c.want) {
				t.Errorf("%v %v", got, err)
			}
		})
	}
	many := map[string]struct{}{}
	for i := range maxVolumes + 1 {
		many["/v/"+string(rune('a'+i))] = struct{}{}
	}
	if _, err := volumesOf(many); err == nil {
		t.Error("any number of volumes is accepted")
	}
}

// manyRules are so many that do not pack well.
func manyRules(n int) []driver.Rule {
	var out []driver.Rule
	for i := range n {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		out = append(out, driver.Rule{Host: hex.EncodeToString(sum[:])[:60] + ".example", Ports: []uint16{443}})
	}
	out, err := driver.Canonical(out)
	if err != nil {
		panic(err)
	}
	return out
}
