package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const strayText = `
provider "sandboxio" {
  policy {
    bundles = { acme = { file = "a.tar.gz", key = "k", min_revison = 7 } }
  }
}

resource "sandboxio_network_policy" "n" {
  name   = "n"
  egress = [
    { host = "b.example.com", why = "fine" },
    { host = var.host, port = 8443 },
    { host = "c.example.com", ports = [443], protocol = "udp" },
  ]
}

resource "sandboxio_template" "t" {
  name           = "t"
  image          = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
  network_policy = { egress = [{ host = "a.example.com", Port = var.port }], modes = "proxy" }
  resources      = { memory = 128, pids = 99 }
  env            = { port = "is mine to name" }
}
`

// problemsOf are the fields, fixes and lines of what items were refused for.
func problemsOf(items []Item) map[string]string {
	out := map[string]string{}
	for _, i := range items {
		for _, p := range driver.Problems(i.Problem) {
			at := i.Place(i.Parts[0], p.Field)
			line := ""
			if at.Exact {
				line = string(rune('0'+at.Line/10)) + string(rune('0'+at.Line%10)) + " "
			}
			out[p.Field] = line + p.Err.Error() + " / " + p.Hint
		}
	}
	return out
}

func TestNamesThatTerraformDropsAreToldOfAtTheirLine(t *testing.T) {
	items, _ := read(t, write(t, map[string]string{"main.tf": strayText}), Options{})
	got := problemsOf(items)
	for field, want := range map[string]string{
		"network.egress[1].port":          `12 there is no "port" in a rule, and Terraform drops it without a word; without ports the rule opens 80 and 443 / write ports; the names are cidr, host, ports, why`,
		"network.egress[2].protocol":      `13 there is no "protocol" in a rule, and Terraform drops it without a word / use one of cidr, host, ports, why, or take it out`,
		`network.egress[0]["Port"]`:       `there is no "Port" in a rule, and Terraform drops it without a word; without ports the rule opens 80 and 443 / write ports; the names are cidr, host, ports, why`,
		"network.modes":                   `20 there is no "modes" in this object, and Terraform drops it without a word / write mode; the names are egress, expose, learn, mode`,
		"resources.memory":                `21 there is no "memory" in this object, and Terraform drops it without a word / write memory_mib; the names are cpu_millis, disk_mib, memory_mib, pids`,
		"policy.bundles.acme.min_revison": `04 there is no "min_revison" in this object, and Terraform drops it without a word / use one of digest, file, key, min_revision, or take it out`,
	} {
		if !strings.HasSuffix(got[field], want) {
			t.Errorf("%s: got %q, want %q", field, got[field], want)
		}
		delete(got, field)
	}
	if len(got) > 0 {
		t.Errorf("and %v", got)
	}
}

// A plan's values have no such names left; its configuration has them where it
// is literal, and the source has them all.
func TestNamesThatTerraformDroppedFromAPlanAreToldOf(t *testing.T) {
	rule := map[string]any{"host": "a.example.com", "cidr": nil, "ports": nil, "why": nil}
	change := func(name string) map[string]any {
		return map[string]any{"address": "sandboxio_network_policy." + name, "mode": "managed", "type": "sandboxio_network_policy", "name": name,
			"change": map[string]any{"actions": []string{"create"}, "before": nil, "after": map[string]any{"name": name, "egress": []any{rule}}, "after_unknown": map[string]any{}}}
	}
	written := func(name string, egress any) map[string]any {
		return map[string]any{"address": "sandboxio_network_policy." + name, "mode": "managed", "type": "sandboxio_network_policy", "name": name,
			"expressions": map[string]any{"name": map[string]any{"constant_value": name}, "egress": egress}}
	}
	whole, err := json.Marshal(map[string]any{"format_version": "1.2",
		"resource_changes": []any{change("literal"), change("refers")},
		"configuration": map[string]any{"root_module": map[string]any{"resources": []any{
			written("literal", map[string]any{"constant_value": []any{map[string]any{"host": "a.example.com", "port": 8443}}}),
			written("refers", map[string]any{"references": []any{"local.h"}}),
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{"plan.json": string(whole), "infra/main.tf": `
resource "sandboxio_network_policy" "literal" {
  name   = "literal"
  egress = [{ host = "a.example.com", port = 8443 }]
}
resource "sandboxio_network_policy" "refers" {
  name   = "refers"
  egress = [{ host = local.h, port = 8443 }]
}
`})
	for _, c := range []struct {
		name, source string
		want         int
	}{{"without the source", "", 1}, {"with the source", dir + "/infra", 2}} {
		items, _ := read(t, dir+"/plan.json", Options{Source: c.source})
		var told []string
		for _, i := range items {
			for _, p := range driver.Problems(i.Problem) {
				told = append(told, i.Address+" "+p.Field)
			}
		}
		if len(told) != c.want || !strings.HasPrefix(told[0], "sandboxio_network_policy.literal network.egress[0].port") {
			t.Errorf("%s: %v", c.name, told)
		}
	}
}
