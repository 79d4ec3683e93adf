// Package naming is the name attribute that templates, network policies and
// schedules have in common, and the import ids made of it.
package naming

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

var shape = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

const rule = "use 1 to 63 of a-z, 0-9 and '-', beginning with a letter and not ending with '-'"

// Attribute is the name of a value: a change is made in place.
func Attribute() schema.StringAttribute {
	return schema.StringAttribute{
		Required:            true,
		Validators:          []validator.String{stringvalidator.RegexMatches(shape, rule)},
		MarkdownDescription: "Name, 1 to 63 of `a-z`, `0-9` and `-`, beginning with a letter. Required. A change is made in place.",
	}
}

// Fixed is the name of something at a provider: a change replaces it.
func Fixed() schema.StringAttribute {
	a := Attribute()
	a.PlanModifiers = []planmodifier.String{stringplanmodifier.RequiresReplace()}
	a.MarkdownDescription = strings.Replace(a.MarkdownDescription, "A change is made in place.", "A change forces replacement.", 1)
	return a
}

// Validate refuses what the attribute refuses. Code: invalid.
func Validate(name string) error {
	if !shape.MatchString(name) {
		return driver.Invalid("name", fmt.Sprintf("%q is not a name", name), rule)
	}
	return nil
}

// Split takes an import id "<backend>/<rest>" apart. Code: invalid.
func Split(id string) (backend, rest string, err error) {
	backend, rest, ok := strings.Cut(id, "/")
	if !ok || backend == "" || rest == "" || strings.ContainsAny(rest, "/ \t\n") {
		return "", "", driver.Invalid("id", fmt.Sprintf("%q is not an import id", id), `write "<backend>/<id>", as "memory/sweep"`)
	}
	return backend, rest, nil
}

// Join makes the import id.
func Join(backend, rest string) string { return backend + "/" + rest }
