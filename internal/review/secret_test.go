package review_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/plan"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/review"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// A sensitive value may stand anywhere, and be wrong there: what is said of it
// must not repeat it, in any format.
func TestNoFormatShowsASensitiveValue(t *testing.T) {
	t.Parallel()
	const secret = "canary-0a1b2c3d4e"
	for name, change := range map[string]string{
		"a host that is none":   `"after":{"name":"p","backend":"memory","egress":[{"host":"not a host ` + secret + `"}]},"after_sensitive":{"egress":[{"host":true}]}`,
		"a CIDR that is none":   `"after":{"name":"p","egress":[{"cidr":"` + secret + `"}]},"after_sensitive":{"egress":true}`,
		"a host with a port":    `"after":{"name":"p","egress":[{"host":"` + secret + `.example:443"}]},"after_sensitive":{"egress":[{"host":true}]}`,
		"a host with a dot":     `"after":{"name":"p","egress":[{"host":".` + secret + `.example"}]},"after_sensitive":{"egress":[{"host":true}]}`,
		"a CIDR with a port":    `"after":{"name":"p","egress":[{"cidr":"` + secret + `/24:443"}]},"after_sensitive":{"egress":[{"cidr":true}]}`,
		"a host on SSH's port":  `"after":{"name":"p","egress":[{"host":"` + secret + `.example","ports":[22]}]},"after_sensitive":{"egress":[{"host":true}]}`,
		"a reason":              `"after":{"name":"p","egress":[{"host":"a.example","why":"` + secret + `"}]},"after_sensitive":{"egress":[{"why":true}]}`,
		"a wildcard":            `"after":{"name":"p","egress":[{"host":"*.` + secret + `"}]},"after_sensitive":{"egress":[{"host":true}]}`,
		"a mode that is none":   `"after":{"name":"p","egress":[],"mode":"` + secret + `"},"after_sensitive":{"mode":true}`,
		"a change of the state": `"before":{"name":"p","egress":[{"host":"` + secret + `.example"}]},"before_sensitive":{"egress":true},"after":{"name":"p","egress":[{"host":"` + secret + `.example"}]},"after_sensitive":{}`,
	} {
		dir := files(t, map[string]string{
			"plan.json": `{"format_version":"1.2","planned_values":{},"variables":{"x":{"value":"` + secret + `"}},"resource_changes":[{"address":"sandboxio_network_policy.p","mode":"managed","type":"sandboxio_network_policy","name":"p","change":{"actions":["update"],"after_unknown":{},` + change + `}}],"configuration":{}}`,
			"main.tf":   "resource \"sandboxio_network_policy\" \"p\" {\n  name   = \"p\"\n  egress = var.egress\n}\n",
		})
		r := reviewed(t, filepath.Join(dir, "plan.json"), plan.Options{Source: dir}, policy.Options{Params: map[string]any{"max_pids": 1}}, review.Options{Excerpts: true})
		for format, text := range formats(t, r) {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %s shows %s", name, format, grep(text, secret))
			}
		}
	}
}

// What is named like a template, a range or a label stands in the findings as
// it is, or the report would be of no use: the control of the test above.
func TestWhatIsNotSensitiveIsShown(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{"main.tf": "resource \"sandboxio_network_policy\" \"p\" {\n  name   = \"p\"\n  egress = [{ host = \"*.canary\" }]\n}\n"})
	for format, text := range formats(t, reviewed(t, dir, plan.Options{}, policy.Options{}, review.Options{Excerpts: true})) {
		if !strings.Contains(strings.ReplaceAll(text, `\`, ""), "*.canary") {
			t.Errorf("%s does not show it:\n%s", format, text)
		}
	}
}
