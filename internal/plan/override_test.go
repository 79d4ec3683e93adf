package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A directory of which only a plan knows what it amounts to is not judged by
// one of its halves.
func TestADirectoryThatSaysTwoThingsIsRefused(t *testing.T) {
	t.Parallel()
	good := "resource \"docker_container\" \"c\" {\n  name  = \"c\"\n  image = \"i\"\n}\n"
	bad := "resource \"docker_container\" \"c\" {\n  privileged = true\n}\n"
	asJSON := `{"resource":{"docker_container":{"c":{"privileged":true}}}}`
	for name, text := range map[string]string{
		"override.tf": bad, "x_override.tf": bad, "a.b_override.tf": bad, "override.tf.json": asJSON, "a.b_override.tf.json": asJSON, "x_override.tofu": bad,
		"override.tofu.json": asJSON, "main.tofu": bad, "main.tofu.json": asJSON, "other.tf": bad, "aaa.tf.json": asJSON,
	} {
		p, err := Open(t.Context(), write(t, map[string]string{"main.tf": good, name: text}), Options{Backend: backends})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Items(t.Context()) {
			err = errors.Join(err, e)
		}
		if !errors.Is(err, driver.CodeUnsupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	// What an editor leaves behind is no part of it, as for Terraform.
	items, _ := read(t, write(t, map[string]string{"main.tf": good, ".main.tf": bad, "main.tf~": bad}), Options{})
	if len(items) != 1 || *items[0].Parts[0].Input.Resource.Process.Privileged {
		t.Errorf("got %+v", items)
	}
}
