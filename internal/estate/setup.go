package estate

import (
	"context"

	"github.com/sandboxio/terraform-provider-sandboxio/drivers/docker"
)

type (
	// SetupOptions say which binaries an engine is given.
	SetupOptions = docker.SetupOptions
	// SetupReport is what an engine has after SetupDocker.
	SetupReport = docker.SetupReport
)

// SetupDocker gives the engine of c what sandboxes need there. It can be
// repeated.
func SetupDocker(ctx context.Context, c Config, o SetupOptions) (SetupReport, error) {
	return docker.Setup(ctx, deref(c.Docker), o)
}
