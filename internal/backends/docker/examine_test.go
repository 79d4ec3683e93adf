package docker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/boot"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestExamineNamesWhatToRepair(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fakeEngine)
		broken string // the finding that fails; "" = only the images of gateway and keeper, which this engine never has
		hint   string
	}{
		{"all is there", func(*fakeEngine) {}, "", ""},
		{"no cap on memory", func(f *fakeEngine) { f.info = map[string]any{"MemoryLimit": false} }, "engine's caps", "cgroup"},
		{"no guest", func(f *fakeEngine) { f.volumes = nil }, "guest volume", "sandboxio setup docker"},
		{"a clock that is wrong", func(f *fakeEngine) {
			f.info = map[string]any{"SystemTime": time.Now().Add(time.Hour).Format(time.RFC3339Nano)}
		}, "engine's clock", "timedatectl"},
		{"an engine too old", func(f *fakeEngine) { f.api = "1.40" }, "engine", "upgrade Docker Engine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			c.change(f)
			seen := map[string]driver.Finding{}
			for _, x := range f.open(t).Examine(limited(t, 10*time.Second)) {
				seen[x.Name] = x
				if x.OK != (x.Hint == "") || x.Detail == "" {
					t.Errorf("%+v", x)
				}
				if !x.OK && x.Name != c.broken && x.Name != "keeper image" && x.Name != "gateway image" {
					t.Errorf("%+v", x)
				}
			}
			if c.broken != "" && (seen[c.broken].OK || !strings.Contains(seen[c.broken].Hint, c.hint)) {
				t.Errorf("%+v", seen)
			}
		})
	}
}

func TestExamineSaysWhenNobodyAnswers(t *testing.T) {
	b, err := Open(t.Context(), Options{Host: "unix:///nowhere/docker.sock"})
	if err != nil {
		t.Fatal(err)
	}
	got := b.Examine(limited(t, 10*time.Second))
	if len(got) != 1 || got[0].OK || !strings.Contains(got[0].Detail, "/nowhere/docker.sock") || got[0].Hint == "" {
		t.Errorf("%+v", got)
	}
}

func TestExamineTellsWhetherAllowlistsCanBeEnforced(t *testing.T) {
	if f := transparent(boot.Host{}, nil); !f.OK || f.Detail == "" || f.Hint != "" {
		t.Errorf("%+v", f)
	}
	if f := transparent(boot.Host{Lax: true}, nil); f.OK || !strings.Contains(f.Detail, "rp_filter") || !strings.Contains(f.Hint, "sysctl -w net.ipv4.conf.all.rp_filter=2") || strings.Contains(f.Hint, "proxy") {
		t.Errorf("%+v", f)
	}
	if f := transparent(boot.Host{}, errors.New("no host")); f.OK || f.Hint == "" || f.Detail != "no host" {
		t.Errorf("%+v", f)
	}
}

func TestModeProxyIsAdvisedOnlyWhereItCanWork(t *testing.T) {
	for _, detached := range []bool{false, true} {
		p := driver.Problems(refuseLax(boot.Host{Lax: true}, detached))
		if len(p) != 1 || strings.Contains(p[0].Hint, "proxy") == detached {
			t.Errorf("detached %v: %+v", detached, p)
		}
	}
}

func TestExamineTellsWhoseProgramsAreTrusted(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if f := examinePin(); !f.OK || !strings.Contains(f.Detail, "sandboxio setup docker") {
		t.Errorf("%+v", f)
	}
	if _, err := guest.WritePin("sha256:" + strings.Repeat("ab", 32)); err != nil {
		t.Fatal(err)
	}
	if f := examinePin(); !f.OK || !strings.Contains(f.Detail, "guest.sha256") {
		t.Errorf("%+v", f)
	}
}
