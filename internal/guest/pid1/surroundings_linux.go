package pid1

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// surroundings fills in what a process sees around it.
func surroundings(r *wire.Report) {
	version, _ := os.ReadFile("/proc/version")
	r.Kernel = strings.TrimSpace(string(version))
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		r.Release, r.Machine = unix.ByteSliceToString(uts.Release[:]), unix.ByteSliceToString(uts.Machine[:])
	}
	r.Interfaces, r.Routes = interfaces(), wire.Unknown
	if b, err := os.ReadFile("/proc/net/route"); err == nil {
		r.Routes = max(0, int64(strings.Count(string(b), "\n"))-1)
		r.Routers = routers(string(b))
	}
	r.IPv6 = addresses6()
	var root unix.Statfs_t
	r.RootReadOnly = unix.Statfs("/", &root) == nil && root.Flags&unix.ST_RDONLY != 0
	info, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(info)) {
		if m, ok := parseMount(line); ok {
			m.Bytes, m.Inodes = wire.Unknown, wire.Unknown
			var st unix.Statfs_t
			if unix.Statfs(m.Point, &st) == nil {
				m.Bytes, m.Inodes = int64(st.Blocks)*int64(st.Bsize), int64(st.Files)
			}
			r.Mounts = append(r.Mounts, m)
		}
	}
	r.Cgroup = cgroup()
}

// interfaces lists the network interfaces that /proc/net/dev shows.
func interfaces() []string {
	b, _ := os.ReadFile("/proc/net/dev")
	var out []string
	for line := range strings.Lines(string(b)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			out = append(out, strings.TrimSpace(name))
		}
	}
	return out
}

// routers are where the default routes in the text of /proc/net/route lead.
func routers(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // interface, destination, gateway, …
		if len(f) < 3 || f[1] != "00000000" {
			continue
		}
		n, err := strconv.ParseUint(f[2], 16, 32)
		if err != nil {
			return append(out, "unknown")
		}
		out = append(out, netip.AddrFrom4([4]byte(binary.NativeEndian.AppendUint32(nil, uint32(n)))).String())
	}
	return out
}

// addresses6 are the IPv6 addresses beside loopback's. A kernel without IPv6
// has no such list.
func addresses6() []string {
	b, err := os.ReadFile("/proc/net/if_inet6")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []string{"unknown"}
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line) // address, index, prefix, scope, flags, interface
		if len(f) == 6 && f[5] == "lo" {
			continue
		}
		out = append(out, strings.Join(f, " "))
	}
	return out
}

// parseMount reads a line of mountinfo: id parent dev root point options
// [optional…] - type source super.
func parseMount(line string) (wire.Mount, bool) {
	left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
	a, b := strings.Fields(left), strings.Fields(right)
	if !ok || len(a) < 6 || len(b) < 3 {
		return wire.Mount{}, false
	}
	return wire.Mount{
		Point: unescape(a[4]), Options: strings.Split(a[5], ","),
		Type: b[0], Source: unescape(b[1]), Super: strings.Split(b[2], ","),
	}, true
}

// unescape undoes mountinfo's octal escapes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

const cgroupRoot = "/sys/fs/cgroup"

// cgroupDir is where version 2 shows the sandbox's own group: the root, in a
// cgroup namespace of its own.
func cgroupDir() string {
	b, _ := os.ReadFile("/proc/self/cgroup") // "0::/…"
	for line := range strings.Lines(string(b)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			dir := path.Join(cgroupRoot, own)
			if _, err := os.Stat(dir + "/memory.max"); err == nil {
				return dir
			}
		}
	}
	return cgroupRoot
}

// cgroup reads the limits that the sandbox's own group shows, in version 1 or
// 2 of the hierarchy.
func cgroup() wire.Cgroup {
	g := wire.Cgroup{Memory: wire.Unknown, MemorySwap: wire.Unknown, PIDs: wire.Unknown, CPUQuota: wire.Unknown, CPUPeriod: wire.Unknown}
	g.OOMKills, g.OOMKillsAvailable = findOOMCounter().read()
	if readNumber(cgroupRoot+"/memory/memory.limit_in_bytes") != wire.Unknown || readNumber(cgroupRoot+"/pids/pids.max") != wire.Unknown {
		g.Version = 1
		// What version 1 calls no limit is the largest multiple of a page.
		v1 := func(name string) int64 {
			n := readNumber(path.Join(cgroupRoot, name))
			if n > 1<<62 {
				return wire.Unlimited
			}
			return n
		}
		g.Memory, g.MemorySwap = v1("memory/memory.limit_in_bytes"), v1("memory/memory.memsw.limit_in_bytes")
		g.PIDs, g.CPUQuota, g.CPUPeriod = v1("pids/pids.max"), v1("cpu/cpu.cfs_quota_us"), v1("cpu/cpu.cfs_period_us")
		if onGVisor() {
			g.PIDs = readNumber(crowdGroup + "/pids.max")
		}
		return g
	}
	if _, err := os.Stat(cgroupRoot + "/cgroup.controllers"); err != nil {
		return g
	}
	g.Version = 2
	dir := cgroupDir()
	g.Memory, g.PIDs = readNumber(dir+"/memory.max"), readNumber(dir+"/pids.max")
	switch swap := readNumber(dir + "/memory.swap.max"); {
	case swap == wire.Unknown, swap == wire.Unlimited:
		g.MemorySwap = swap
	case g.Memory >= 0:
		g.MemorySwap = g.Memory + swap
	}
	if b, err := os.ReadFile(dir + "/cpu.max"); err == nil {
		if f := strings.Fields(string(b)); len(f) == 2 {
			g.CPUQuota, g.CPUPeriod = number(f[0]), number(f[1])
		}
	}
	return g
}
