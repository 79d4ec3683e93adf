package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// spelled is the one container in a file of that name.
func spelled(t *testing.T, name, text string) Part {
	t.Helper()
	items, _ := read(t, write(t, map[string]string{name: text}), Options{})
	if len(items) != 1 || items[0].Problem != nil || len(items[0].Parts) != 1 {
		t.Fatalf("got %+v", items)
	}
	return items[0].Parts[0]
}

func TestWhatIsInsecureIsSeenInEverySpelling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		seen func(Part) bool
	}{
		"privileged as a text": {`privileged = "1"`, func(p Part) bool { return *p.Input.Resource.Process.Privileged }},
		"all ports, as a text": {`publish_all_ports = "true"`, func(p Part) bool { return len(p.Input.Resource.Network.Publish) == 1 }},
		"the label of a process that SELinux lets do everything": {
			`security_opts = ["label:type:spc_t"]`, func(p Part) bool { return *p.Input.Resource.Process.SELinux == "unconfined" },
		},
		"a seccomp profile that lets everything through": {
			`security_opts = ["seccomp={\"defaultAction\":\"SCMP_ACT_ALLOW\"}"]`, func(p Part) bool { return *p.Input.Resource.Process.Seccomp == "unconfined" },
		},
		"a volume that is a path of the host": {
			`mounts {
  type   = "volume"
  target = "/t"
  volume_options { driver_options = { type = "none", o = "bind", device = "/run/docker.sock" } }
}`, func(p Part) bool {
				m := p.Input.Resource.Mounts[0]
				return *m.Type == "bind" && *m.Source == "/run/docker.sock"
			},
		},
		"a volume whose device is not known": {
			`mounts {
  type   = "volume"
  target = "/t"
  volume_options { driver_options = { device = var.d } }
}`, func(p Part) bool { return slices.Contains(p.Input.Unknown, "mounts[0].source") },
		},
		"the mounts of another container": {
			`volumes { from_container = "other" }`, func(p Part) bool { return slices.Contains(p.Input.Unknown, "mounts[0].source") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := spelled(t, "main.tf", "resource \"docker_container\" \"c\" {\n  name  = \"c\"\n  image = \"busybox\"\n  "+c.body+"\n}\n")
			if !c.seen(p) {
				t.Errorf("got %+v", p.Input)
			}
		})
	}
}

func TestBlocksInJSONSyntaxAreSeen(t *testing.T) {
	t.Parallel()
	p := spelled(t, "main.tf.json", `{"resource": {"docker_container": {"c": {"name": "c", "image": "busybox",
		"ports": {"internal": 80, "external": 80},
		"dynamic": {"volumes": {"for_each": ["/run/docker.sock"], "content": {"host_path": "${volumes.value}"}},
			"devices": [{"for_each": "${var.d}", "content": {}}]}}}}}`)
	if got := p.Input.Resource.Network.Publish; len(got) != 1 || *got[0].HostPort != 80 {
		t.Errorf("published %+v", got)
	}
	for _, field := range []string{"mounts", "process.devices"} {
		if !slices.Contains(p.Input.Unknown, field) {
			t.Errorf("%s is not unknown, but %v", field, p.Input.Unknown)
		}
	}
}

func TestAPlanIsNotBelievedWhatItsValuesDeny(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"no change, from one value to another": `{"address": "docker_container.c", "mode": "managed", "type": "docker_container", "name": "c",
			"change": {"actions": ["no-op"], "before": {"image": "a", "privileged": false}, "after": {"image": "a", "privileged": true}}}`,
		"a mode that nobody knows": `{"address": "docker_container.c", "mode": "other", "type": "docker_container", "name": "c",
			"change": {"actions": ["create"], "after": {"image": "a", "privileged": true}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{"plan.json": jsonPlan(change)})
			items, _ := read(t, dir+"/plan.json", Options{})
			if len(items) != 1 || items[0].Unchanged {
				t.Errorf("got %+v", items)
			}
		})
	}
}

func TestAModuleThatIsNotHereIsToldOf(t *testing.T) {
	t.Parallel()
	items, seen := read(t, write(t, map[string]string{"main.tf": `
module "far" { source = "git::https://example.com/x.git" }
module "gone" { source = "./gone" }
resource "docker_container" "c" {
  name  = "c"
  image = "busybox"
}`}), Options{})
	if !seen.Partial || len(items) != 3 {
		t.Fatalf("got %+v of %+v", items, seen)
	}
	for i, want := range []string{"module.far", "module.gone"} {
		if got := items[i]; got.Address != want || got.Opaque == "" || got.Place(Part{}, "").Line != i+2 {
			t.Errorf("got %+v at %+v", got, got.Place(Part{}, ""))
		}
	}
}

func TestAConfigurationThatIsNoRegularFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "main.tf")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("got %v", err)
	}
}
