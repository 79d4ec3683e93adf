//go:build dockertest

package docker

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestRealGVisorIsMeasuredInside(t *testing.T) {
	plain, _ := engine(t)
	b, image := engineOn(t, "runsc")
	if got := b.Info(); got.Isolation != driver.UserKernel || got.Can(driver.CanReportOOM) {
		t.Errorf("declared %+v", got)
	}
	sb := create(t, b, realSpec(t, image))
	st := sb.Status()
	if st.Isolation != driver.UserKernel || !strings.Contains(st.Evidence.Detail, "gVisor") || st.Evidence.Source != "probe" {
		t.Errorf("measured %v: %+v", st.Isolation, st.Evidence)
	}
	if out := sh(t, sb, "cat /proc/version"); !strings.Contains(out, "gvisor") {
		t.Errorf("the kernel inside is %q", out)
	}
	// The same image on the engine's default runtime is no more than a container.
	if st := create(t, plain, realSpec(t, image)).Status(); st.Isolation != driver.Container {
		t.Errorf("on the default runtime: %v, %+v", st.Isolation, st.Evidence)
	}
	// Whoever attaches measures for himself, whatever runtime he would use.
	spec := realSpec(t, image)
	spec.Detached = true
	made := create(t, b, spec)
	joined, err := plain.Attach(t.Context(), made.Status().ID)
	if err != nil {
		t.Fatal(err)
	}
	run(t, joined, "true")
	if st := joined.Status(); st.Isolation != driver.UserKernel {
		t.Errorf("attached: %v, %+v", st.Isolation, st.Evidence)
	}
}

// What the engine passes to gVisor is seen where the host's kernel keeps it:
// there is no swap beside the memory, and this cannot be seen from inside.
func TestRealGVisorHasNoSwapOnTheHost(t *testing.T) {
	b, image := engineOn(t, "runsc")
	spec := realSpec(t, image)
	sb := create(t, b, spec)
	want := memoryBytes(spec.Resources)
	for _, place := range []struct{ glob, file string }{
		{"/sys/fs/cgroup/memory/*/" + sb.Status().ID + "/", "memory.memsw.limit_in_bytes"},
		{"/sys/fs/cgroup/*/" + sb.Status().ID + "/", "memory.swap.max"}, // version 2
	} {
		found, err := filepath.Glob(place.glob + place.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(string(text)); got != "0" && got != strconv.FormatInt(want, 10) {
				t.Errorf("%s is %s, want %d", name, got, want)
			}
			return
		}
	}
	t.Error("the container's cgroup is not found on this host: the engine has to be on it")
}

func TestRealARuntimeThatIsNotThereIsRefused(t *testing.T) {
	b, err := Open(t.Context(), Options{Host: needed(t, "SANDBOXIO_TEST_DOCKER"), Runtime: "runsc-of-another"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = b.Create(t.Context(), realSpec(t, needed(t, "SANDBOXIO_TEST_IMAGE")))
	e, ok := errors.AsType[*driver.Error](err)
	if !ok || e.Code != driver.CodeUnsupported || e.Field != "runtime" || !strings.Contains(e.Hint, "runtimeArgs") {
		t.Errorf("%#v", err)
	}
}
