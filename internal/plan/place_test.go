package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func sortedCopy(in []string) []string { return slices.Sorted(slices.Values(in)) }

const rootText = `module "boxes" {
  source   = "./mod"
  for_each = toset(["a", "b"])
}

resource "sandboxio_network_policy" "p" {
  name   = "p"
  egress = [
    { host = "a.example" },
    { cidr = "0.0.0.0/0", ports = [443] },
    var.more,
  ]
}
`

const modText = `resource "sandboxio_template" "t" {
  name  = "t"
  env = {
    "A.B" = "x"
    C     = var.c
  }
  network_policy = var.network
  resources = { pids = 9 }
  secrets = [for s in var.names : upper(s)]
}

resource "docker_container" "c" {
  name = "c"
  dynamic "ports" {
    for_each = [1]
    content { internal = 1 }
  }
  volumes {
    host_path = "/a"
  }
  volumes {
    host_path = "/var/run/docker.sock"
  }
}
`

func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"main.tf": rootText, "mod/m.tf": modText, "mod/x.tf.json": `{"resource":{"sandboxio_reaper_schedule":{"r":{"interval":"60s"}}}}`})
	s, err := readDirectory(dir, "infra")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		modules []string
		kind    string
		attr    []any
		want    string
	}{
		{"an element's attribute", nil, "sandboxio_network_policy.p", []any{"egress", 1, "cidr"}, "infra/main.tf:10:7-10:25 exact"},
		{"a list in it", nil, "sandboxio_network_policy.p", []any{"egress", 1, "ports"}, "infra/main.tf:10:27-10:40 exact"},
		{"an attribute that an element does not have", nil, "sandboxio_network_policy.p", []any{"egress", 0, "ports"}, "infra/main.tf:9:5-9:27 near"},
		{"an element from elsewhere", nil, "sandboxio_network_policy.p", []any{"egress", 2, "cidr"}, "infra/main.tf:11:5-11:13 near"},
		{"an element past the end", nil, "sandboxio_network_policy.p", []any{"egress", 7}, "infra/main.tf:8:3-12:4 near"},
		{"an attribute that is not written", nil, "sandboxio_network_policy.p", []any{"learn"}, "infra/main.tf:6:1-6:40 near"},
		{"the resource", nil, "sandboxio_network_policy.p", nil, "infra/main.tf:6:1-6:40 exact"},
		{"a key in quotes", []string{"boxes"}, "sandboxio_template.t", []any{"env", "A.B"}, "infra/mod/m.tf:4:5-4:16 exact called infra/main.tf:1"},
		{"a value from a variable", []string{"boxes"}, "sandboxio_template.t", []any{"env", "C"}, "infra/mod/m.tf:5:5-5:18 near called infra/main.tf:1"},
		{"something in a variable", []string{"boxes"}, "sandboxio_template.t", []any{"network_policy", "egress", 0, "cidr"}, "infra/mod/m.tf:7:3-7:31 near called infra/main.tf:1"},
		{"an attribute of an attribute", []string{"boxes"}, "sandboxio_template.t", []any{"resources", "pids"}, "infra/mod/m.tf:8:17-8:25 exact called infra/main.tf:1"},
		{"a for expression", []string{"boxes"}, "sandboxio_template.t", []any{"secrets", 0}, "infra/mod/m.tf:9:3-9:44 near called infra/main.tf:1"},
		{"the second block", []string{"boxes"}, "docker_container.c", []any{"volumes", 1, "host_path"}, "infra/mod/m.tf:22:5-22:39 exact called infra/main.tf:1"},
		{"a dynamic block", []string{"boxes"}, "docker_container.c", []any{"ports", 0, "internal"}, "infra/mod/m.tf:14:3-14:18 near called infra/main.tf:1"},
		{"JSON syntax", []string{"boxes"}, "sandboxio_reaper_schedule.r", []any{"interval"}, "infra/mod/x.tf.json:1:48-1:64 exact called infra/main.tf:1"},
		{"a module nobody has", []string{"other"}, "sandboxio_template.t", nil, "nowhere"},
		{"a resource nobody has", nil, "sandboxio_template.t", nil, "nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind, name, _ := strings.Cut(c.kind, ".")
			if got := shown(s.find(c.modules, kind, name, c.attr)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func shown(p Place) string {
	if p.File == "" {
		return "nowhere"
	}
	how := "near"
	if p.Exact {
		how = "exact"
	}
	out := fmt.Sprintf("%s:%d:%d-%d:%d %s", p.File, p.Line, p.Column, p.EndLine, p.EndColumn, how)
	for _, c := range p.Calls {
		out += fmt.Sprintf(" called %s:%d", c.File, c.Line)
	}
	return out
}

func TestAFieldLeadsToItsAttribute(t *testing.T) {
	t.Parallel()
	p := Part{places: map[string][]any{
		"network.egress[1]": {"network_policy", "egress", 1}, `env["A.B[0]"]`: {"env", "A.B[0]"}, "env": {"env"}, "network": {"network_policy"},
	}, top: []any{"template"}}
	for field, want := range map[string]string{
		"network.egress[1].cidr": "network_policy.egress[1]", `env["A.B[0]"]`: `env["A.B[0]"]`, `env["other.one"]`: "env",
		"network.mode": "network_policy", "isolation": "template", "": "template",
	} {
		if got := p.Attribute(field); got != want {
			t.Errorf("%q leads to %q, want %q", field, got, want)
		}
	}
}

func TestModulesOfAnAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"": "", "module.a": "a", "module.a.module.b": "a b", `module.a["x"].module.b[0]`: "a b", `module.a["]\".module.c"].module.b`: "a b", "nonsense": "",
	} {
		if got := strings.Join(module(address), " "); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

func FuzzModule(f *testing.F) {
	for _, s := range []string{"module.a", `module.a["]"].module.b`, "module.", `module.a["`, "module.a[0]module.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		for _, m := range module(address) {
			if strings.ContainsAny(m, ".[") || !strings.Contains(address, "module."+m) {
				t.Errorf("%q gives the module %q", address, m)
			}
		}
	})
}

func FuzzDirectory(f *testing.F) {
	f.Add(rootText, "egress")
	f.Add(modText, "env")
	f.Add(`resource "sandboxio_template" "t" { env = { (var.a) = 1, "${x}" = 2 } }`, "env")
	f.Fuzz(func(t *testing.T, text, attr string) {
		m := &files{text: map[string][]byte{"a.tf": []byte(text), "b.tf.json": []byte(text)}}
		m.parse()
		for _, o := range m.objects {
			value, unknown := bodyValue(o.block.Body)
			n := node{value: value, unknown: unknown}
			n.get(attr).at(0).keys()
			locate(o.block, []any{attr, 0, "x"})
			if o.block.Type == "resource" {
				b := &builder{opts: Options{Backend: backends}}
				for _, kind := range append([]string{"sandboxio_template", "sandboxio_sandbox", "sandboxio_network_policy", "sandboxio_reaper_schedule", "docker_container", "docker_image"}, podKinds...) {
					for _, p := range b.reads(kind)(t.Context(), newReader(), n) {
						p.Attribute("env[\"x\"]")
						p.Attribute("mounts[0].source")
					}
				}
			}
		}
	})
}
