//go:build dockertest

package docker

import (
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestRealRun(t *testing.T) {
	b, image := engine(t)
	for _, detached := range []bool{false, true} {
		spec := realSpec(t, image)
		spec.Detached = detached
		spec.Env = map[string]string{"GREETING": "hello from the sandbox's env"}
		sb := create(t, b, spec)
		if st := sb.Status(); st.Isolation != driver.Container || st.Evidence.Source != "probe" {
			t.Errorf("%+v", st)
		}
		out, exit := run(t, sb, "sh", "-c", "echo $GREETING; id -u; exit 3")
		t.Logf("%q %+v %v", out, exit, sb.Status().Evidence.Detail)
		if exit.Code != 3 {
			t.Errorf("exit %+v", exit)
		}
	}
}
