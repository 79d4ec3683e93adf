package pid1

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// crowdGroup is the workload's cgroup inside gVisor.
const crowdGroup = cgroupRoot + "/pids/sandboxio"

// onGVisor tells gVisor's kernel from others. It is no evidence, which is for
// the host to weigh: it only says which means there are.
func onGVisor() bool {
	var uts unix.Utsname
	return unix.Uname(&uts) == nil && strings.HasSuffix(unix.ByteSliceToString(uts.Release[:]), "-gvisor")
}

// bound gives the workload its cap of processes where the kernel does not
// count them by user. gVisor has no RLIMIT_NPROC, but cgroups of its own: the
// thread that makes all children enters one, and what is made there stays
// there, since the group's files are root's.
func (r *reaper) bound() error {
	if !onGVisor() {
		return nil
	}
	if err := os.Mkdir(crowdGroup, 0o755); err != nil {
		return fmt.Errorf("the workload's cgroup: %w", err)
	}
	for _, w := range []struct{ name, value string }{
		{"pids.max", strconv.Itoa(r.nproc + 1)}, // and this thread
		{"tasks", strconv.Itoa(unix.Gettid())},
	} {
		if err := os.WriteFile(crowdGroup+"/"+w.name, []byte(w.value), 0); err != nil {
			return fmt.Errorf("the workload's cgroup: %w", err)
		}
	}
	return nil
}
