package wire

// Report is what a child on the workload's own path saw of itself and its
// surroundings. A number that could not be read is Unknown.
type Report struct {
	// The child, from /proc/self/status and the kernel.
	UIDs, GIDs                             []uint32 // real, effective, saved, file system
	Groups                                 []uint32
	Seccomp                                int64 // 0 off, 1 strict, 2 filter
	NoNewPrivs                             int64 // 0 or 1
	CapInh, CapPrm, CapEff, CapBnd, CapAmb uint64
	FDs                                    []int64 // open when it started
	OOMScoreAdj                            int64
	NProc, NoFile, Core, FSize             int64 // soft limits; Unlimited
	Doors                                  []string

	// Its surroundings.
	Kernel       string // /proc/version
	Release      string // uname -r
	Machine      string
	Interfaces   []string
	Routes       int64    // IPv4 routes
	Routers      []string // of its default IPv4 routes
	IPv6         []string // addresses, loopback's left out; "unknown"
	RootReadOnly bool
	Mounts       []Mount
	Cgroup       Cgroup

	// PID 1, as it sees itself.
	PID1UID      uint32
	PID1CapEff   uint64
	PID1Dumpable int64
	Owned        bool
	Deadline     int64 // unix nanoseconds
}

// What a limit may say instead of a figure.
const (
	Unlimited int64 = -1
	Unknown   int64 = -2
)

// Mount is one line of mountinfo, with what statfs says of its size.
type Mount struct {
	Point, Type, Source string
	Options             []string // of the mount: ro, nosuid, nodev, noexec, …
	Super               []string // of the file system: size=…, …
	Bytes, Inodes       int64    // capacity
}

// Cgroup is the limits that the sandbox's own control group shows.
type Cgroup struct {
	Version           int64 // 1 or 2
	Memory            int64 // bytes
	MemorySwap        int64 // bytes, memory and swap together
	PIDs              int64
	CPUQuota          int64 // microseconds per period
	CPUPeriod         int64
	OOMKills          int64
	OOMKillsAvailable bool
}

func (m *Report) Fields(c *Coder) {
	for _, v := range []*[]uint32{&m.UIDs, &m.GIDs, &m.Groups} {
		List(c, v, func(n *uint32) { Num(c, n) })
	}
	Num(c, &m.Seccomp)
	Num(c, &m.NoNewPrivs)
	for _, v := range []*uint64{&m.CapInh, &m.CapPrm, &m.CapEff, &m.CapBnd, &m.CapAmb} {
		c.Uint(v)
	}
	List(c, &m.FDs, func(n *int64) { Num(c, n) })
	for _, v := range []*int64{&m.OOMScoreAdj, &m.NProc, &m.NoFile, &m.Core, &m.FSize} {
		Num(c, v)
	}
	c.Strs(&m.Doors)
	c.Str(&m.Kernel)
	c.Str(&m.Release)
	c.Str(&m.Machine)
	c.Strs(&m.Interfaces)
	Num(c, &m.Routes)
	c.Strs(&m.Routers)
	c.Strs(&m.IPv6)
	c.Bool(&m.RootReadOnly)
	List(c, &m.Mounts, func(p *Mount) {
		c.Str(&p.Point)
		c.Str(&p.Type)
		c.Str(&p.Source)
		c.Strs(&p.Options)
		c.Strs(&p.Super)
		Num(c, &p.Bytes)
		Num(c, &p.Inodes)
	})
	g := &m.Cgroup
	for _, v := range []*int64{&g.Version, &g.Memory, &g.MemorySwap, &g.PIDs, &g.CPUQuota, &g.CPUPeriod, &g.OOMKills} {
		Num(c, v)
	}
	c.Bool(&g.OOMKillsAvailable)
	Num(c, &m.PID1UID)
	c.Uint(&m.PID1CapEff)
	Num(c, &m.PID1Dumpable)
	c.Bool(&m.Owned)
	Num(c, &m.Deadline)
}
