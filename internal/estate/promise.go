package estate

import (
	"context"
	"fmt"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Promise opens a backend of that kind only to ask what it promises: with that
// default image, and otherwise as the machine that will apply has it, which is
// not this one. It connects to nothing. Code: invalid, field "backend".
func Promise(ctx context.Context, kind, image string) (driver.Backend, error) {
	d, ok := doors[kind]
	if !ok {
		return nil, driver.Invalid("backend", fmt.Sprintf("there is no backend %q", kind), "use one of "+strings.Join(Kinds(), ", "))
	}
	return d.open(ctx, Config{Docker: &Docker{Image: image}, Memory: &Memory{}})
}
