package docker

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

const (
	seccompFilter = 2

	// guestCaps are CAP_KILL, CAP_SETGID and CAP_SETUID.
	guestCaps = 1<<5 | 1<<6 | 1<<7
)

// findings collects what does not hold, each as expected and found.
type findings []string

func (f *findings) expect(ok bool, what string, want, got any) {
	if !ok {
		*f = append(*f, fmt.Sprintf("%s: expected %v, found %v", what, want, got))
	}
}

func equal[T comparable](f *findings, what string, want, got T) {
	f.expect(want == got, what, want, got)
}

func (f findings) err() error {
	if len(f) == 0 {
		return nil
	}
	return &driver.Error{Code: driver.CodeUnsupported, Op: "attest", Hint: hintDoctor,
		Err: fmt.Errorf("controls that were asked for do not hold inside: %s", strings.Join(f, "; "))}
}

// compare holds what the probe saw on a kernel of that tier against what was
// ordered. Nothing here comes from the engine's own account, which only repeats
// the request.
func (o order) compare(r guest.Report, tier driver.Isolation) error {
	var f findings
	f.privileges(r)
	router := netip.Addr{}
	if o.way != nil {
		router = o.way.gateway
	}
	f.network(r, router)
	res := o.spec.Resources
	strict := o.spec.Profile == driver.Strict

	for _, ids := range [][]uint32{r.UIDs, r.GIDs} {
		f.expect(len(ids) > 0 && !slices.ContainsFunc(ids, func(id uint32) bool { return id != o.uid }), "user and group", o.uid, ids)
	}
	equal(&f, "processes (ulimit)", res.PIDs, r.NProc)
	equal(&f, "core size (ulimit)", 0, r.Core)

	equal(&f, "memory", memoryBytes(res), r.Cgroup.Memory)
	if tier < driver.UserKernel {
		equal(&f, "memory and swap", memoryBytes(res), r.Cgroup.MemorySwap)
		equal(&f, "pids", o.cgroupPIDs(), r.Cgroup.PIDs)
	} else {
		// gVisor shows the memory of its own cgroup and knows no swap. Its
		// kernel does not count processes by user; the guest has it count
		// those of a group that the thread which makes them is in too.
		equal(&f, "pids", res.PIDs+1, r.Cgroup.PIDs)
	}
	f.expect(r.Cgroup.CPUPeriod > 0 && r.Cgroup.CPUQuota > 0 && r.Cgroup.CPUQuota*cpuPeriod == cpuQuota(res.CPUMillis)*r.Cgroup.CPUPeriod,
		"cpu", fmt.Sprintf("%d/%d", cpuQuota(res.CPUMillis), cpuPeriod), fmt.Sprintf("%d/%d", r.Cgroup.CPUQuota, r.Cgroup.CPUPeriod))

	f.expect(r.RootReadOnly == strict, "read-only root", strict, r.RootReadOnly)
	o.mounts(&f, r.Mounts, tier)

	equal(&f, "owned", !o.spec.Detached, r.Owned)
	at := time.Unix(0, r.Deadline)
	f.expect(at.After(o.created) && at.Before(o.deadline.Add(greetLimit)), "deadline", o.deadline.UTC(), at.UTC())
	return f.err()
}

// invariant is what holds for every sandbox of ours, whatever was ordered:
// what somebody who joins later can know.
func invariant(r guest.Report, tier driver.Isolation, router netip.Addr) error {
	var f findings
	f.privileges(r)
	f.network(r, router)
	f.expect(len(r.UIDs) > 0 && !slices.Contains(r.UIDs, 0), "user", "not 0", r.UIDs)
	f.expect(r.Cgroup.Memory > 0, "memory", "a cap", r.Cgroup.Memory)
	f.expect(r.Cgroup.PIDs > 0, "pids", "a cap", r.Cgroup.PIDs)
	f.expect(r.Cgroup.CPUQuota > 0, "cpu", "a cap", r.Cgroup.CPUQuota)
	f.expect(r.Deadline > 0, "deadline", "a time", r.Deadline)
	for p, m := range topmost(r.Mounts) {
		// A writable place is in memory and capped, or it is the host's.
		tmpfs := m.Type == "tmpfs" && m.Bytes > 0 && !slices.ContainsFunc(safeOptions(tier), func(o string) bool { return !slices.Contains(m.Options, o) })
		compat := !r.RootReadOnly && (p == "/" || engineFile(p)) // the root's cap is not known here
		f.expect(tmpfs || compat || rootOnly(m) || slices.Contains(m.Options, "ro"), p, "not writable", m.Type+" "+strings.Join(m.Options, ","))
	}
	slices.Sort(f)
	return f.err()
}

func (f *findings) privileges(r guest.Report) {
	equal(f, "seccomp", seccompFilter, r.Seccomp)
	equal(f, "no-new-privileges", 1, r.NoNewPrivs)
	for name, set := range map[string]uint64{"inheritable": r.CapInh, "permitted": r.CapPrm, "effective": r.CapEff, "ambient": r.CapAmb} {
		f.expect(set == 0, name+" capabilities", "none", fmt.Sprintf("%#x", set))
	}
	f.expect(r.CapBnd&^guestCaps == 0, "bounding capabilities", fmt.Sprintf("within %#x", guestCaps), fmt.Sprintf("%#x", r.CapBnd))
	f.expect(!slices.ContainsFunc(r.FDs, func(fd int64) bool { return fd > 2 }), "open file descriptors", "0 to 2", r.FDs)
	f.expect(!slices.Contains(r.Groups, 0), "supplementary groups", "no group 0", r.Groups)
	f.expect(len(r.Doors) == 0, "kernel doors", "closed", r.Doors)
	equal(f, "PID 1's user", 0, r.PID1UID)
	f.expect(r.PID1CapEff&^guestCaps == 0, "PID 1's capabilities", fmt.Sprintf("within %#x", guestCaps), fmt.Sprintf("%#x", r.PID1CapEff))
	equal(f, "PID 1 dumpable", 0, r.PID1Dumpable)
}

// network holds that there is none, or one interface whose only way out is the
// gateway, router; the zero one means no network.
func (f *findings) network(r guest.Report, router netip.Addr) {
	others := slices.DeleteFunc(slices.Clone(r.Interfaces), func(name string) bool { return name == "lo" })
	f.expect(len(r.IPv6) == 0, "IPv6 addresses", "none", r.IPv6)
	if !router.IsValid() {
		f.expect(len(others) == 0, "interfaces", "lo only", r.Interfaces)
		equal(f, "routes", 0, r.Routes)
		return
	}
	f.expect(len(others) == 1, "interfaces", "lo and one more", r.Interfaces)
	equal(f, "routes", 2, r.Routes) // the network's own, and the default
	f.expect(slices.Equal(r.Routers, []string{router.String()}), "router", router, r.Routers)
}

// safeOptions are what every writable mount has. gVisor has no nodev: its
// devices are its own, and making one takes a capability that nobody has.
func safeOptions(tier driver.Isolation) []string {
	if tier >= driver.UserKernel {
		return []string{"nosuid"}
	}
	return []string{"nosuid", "nodev"}
}

// rootOnly are writable mounts that every container has, in which the
// workload's user may write nothing, or nothing that takes space.
func rootOnly(m guest.Mount) bool {
	switch m.Type {
	case "proc", "devpts", "mqueue", "sysfs", "cgroup", "cgroup2":
		return true
	case "dev": // gVisor's /dev
		return m.Point == "/dev"
	case "tmpfs":
		return m.Point == "/dev" || m.Point == "/sys/fs/cgroup" || strings.HasPrefix(m.Point, "/proc/") || strings.HasPrefix(m.Point, "/sys/")
	}
	return false
}

// engineFile reports whether p is one of the engine's own files; root's, so
// not the workload's to write.
func engineFile(p string) bool {
	return p == "/etc/resolv.conf" || p == "/etc/hosts" || p == "/etc/hostname"
}

// topmost is what is seen at each place: what is mounted over something hides
// it.
func topmost(mounts []guest.Mount) map[string]guest.Mount {
	last := map[string]guest.Mount{}
	for _, m := range mounts {
		last[m.Point] = m
	}
	return last
}

// mounts checks that exactly the ordered places are writable, each with its
// own cap.
func (o order) mounts(f *findings, mounts []guest.Mount, tier driver.Isolation) {
	caps := map[string]int64{"/dev/shm": o.disk.shm}
	maps.Copy(caps, o.disk.tmpfs)
	last := topmost(mounts)
	for p, kib := range caps {
		m, ok := last[p]
		f.expect(ok && m.Type == "tmpfs", p, "a tmpfs", m.Type)
		if !ok {
			continue
		}
		f.expect(m.Bytes == kib<<10, "size of "+p, kib<<10, m.Bytes)
		for _, opt := range safeOptions(tier) {
			f.expect(slices.Contains(m.Options, opt), p, opt, m.Options)
		}
		f.expect(!slices.Contains(m.Options, "ro"), p, "writable", "read-only")
		f.expect(m.Inodes > 0, "inodes of "+p, "a cap", m.Inodes)
	}
	m, ok := last[guest.Dir]
	f.expect(ok && slices.Contains(m.Options, "ro"), "the guest's own mount", "read-only", m.Options)
	for p, m := range last {
		_, ours := caps[p]
		switch {
		case ours, rootOnly(m), slices.Contains(m.Options, "ro"):
		case p == "/" && o.disk.root > 0:
			f.expect(m.Bytes > 0 && m.Bytes <= o.disk.root<<10, "size of the root", fmt.Sprintf("at most %d", o.disk.root<<10), m.Bytes)
		case o.disk.root > 0 && engineFile(p):
		default:
			f.expect(false, p, "not writable", m.Type+" "+strings.Join(m.Options, ","))
		}
	}
	slices.Sort(*f)
}

// measured ranks what was seen. gVisor answers with a kernel of its own, whose
// release and build date are known; everything else shares the host's kernel
// as far as can be told.
func measured(r guest.Report, hostKernel string, now time.Time) (driver.Isolation, driver.Evidence) {
	if strings.HasSuffix(r.Release, "-gvisor") && r.Release != hostKernel && strings.Contains(r.Kernel, "Sun Jan 10 15:06:54 PST 2016") {
		return driver.UserKernel, driver.Evidence{Source: "probe", Date: now,
			Detail: fmt.Sprintf("kernel %s is gVisor's, the engine's host runs %s", r.Release, hostKernel)}
	}
	same := "is the host's"
	if r.Release != hostKernel {
		same = "is taken for a shared one"
	}
	return driver.Container, driver.Evidence{Source: "probe", Date: now,
		Detail: fmt.Sprintf("namespaces, seccomp filter, no capabilities, no-new-privileges; kernel %s %s", r.Release, same)}
}
