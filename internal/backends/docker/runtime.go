package docker

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// runtimeName is what an engine accepts as the name of a runtime.
var runtimeName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)

// promised is the tier that sandboxes on a runtime of this name are held to. A
// name is no evidence: it only says what the probe inside has to find, or the
// sandbox is destroyed. Under any other name a better tier is a surprise, and
// is reported as what it is.
func promised(runtime string) driver.Isolation {
	if strings.Contains(runtime, "runsc") || strings.Contains(runtime, "gvisor") {
		return driver.UserKernel
	}
	return driver.Container
}

// hintRuntime says how gVisor is registered. Without --oci-seccomp it would
// not apply the sandbox's own filter inside.
const hintRuntime = `add {"runtimes":{"runsc":{"path":"/usr/local/bin/runsc","runtimeArgs":["--platform=systrap","--oci-seccomp"]}}} to the engine's daemon.json and restart it`

// registered refuses an engine that does not know the runtime.
func (o Options) registered(info system.Info) error {
	if o.Runtime == "" {
		return nil
	}
	if _, ok := info.Runtimes[o.Runtime]; ok {
		return nil
	}
	return &driver.Error{Code: driver.CodeUnsupported, Field: "runtime", Hint: hintRuntime,
		Err: fmt.Errorf("the engine has no runtime %q; it has %s", o.Runtime, strings.Join(slices.Sorted(maps.Keys(info.Runtimes)), ", "))}
}

// reached refuses a sandbox whose runtime is not what its name says.
func (o Options) reached(tier driver.Isolation, e driver.Evidence) error {
	if want := promised(o.Runtime); !tier.Satisfies(want) {
		return &driver.Error{Code: driver.CodeUnsupported, Field: "runtime", Hint: hintRuntime,
			Err: fmt.Errorf("runtime %q is called %s, and inside it is %s: %s", o.Runtime, want, tier, e.Detail)}
	}
	return nil
}
