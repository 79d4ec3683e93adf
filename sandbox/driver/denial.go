package driver

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Denials are what a sandbox tried to reach and was refused, since its
// creation.
type Denials struct {
	Told  []Denial // each kind once, in order of target
	Other int      // how many more there were of kinds beyond those that are kept
	// Unknown says that this process does not know: in mode [Proxy] the
	// sandbox's creator counts, and nobody else; in mode [Transparent] a gateway,
	// which may have ended before it was asked. Told and Other are empty then.
	Unknown bool
}

// Denial is one kind of refused request. It never holds payload: no path, no
// header, nothing after the name. The program inside chose the host, so that
// it may be anything but long: whoever prints it makes it harmless first.
type Denial struct {
	Host   string     `json:"host,omitempty"` // as it was asked for, at most 256 bytes
	Addr   netip.Addr `json:"addr,omitzero"`
	Port   uint16     `json:"port,omitempty"` // 0 for a name that was only resolved
	Reason string     `json:"reason"`
	Count  int        `json:"count"`
	First  time.Time  `json:"first,omitzero"`
	Last   time.Time  `json:"last,omitzero"`
}

// Groups of denials that are not told by the class of a protected address, which
// is a group of its own.
const (
	groupOwn     = "protected" // public, and the engine's or the owner's own
	groupNotTCP  = "not-tcp"
	groupAddress = "address" // any other that is public
	groupName    = "name"
)

// groups, by how much each says of a program.
var groups = []string{string(ClassMetadata), groupOwn, string(ClassLinkLocal), string(ClassLoopback), string(ClassPrivate), string(ClassShared),
	groupNotTCP, string(ClassReserved), string(ClassMulticast), string(ClassUnspecified), groupAddress, groupName}

// Group says what kind of target d has: the class of its address, if that is
// protected, else "protected" for one that is so on this engine, "not-tcp",
// "address" or "name". A program makes up as many targets of one group as it
// likes; what keeps or tells some of many must not lose one group for another.
func (d Denial) Group() string {
	switch {
	case !d.Addr.IsValid():
		return groupName
	case Classify(d.Addr) != ClassPublic:
		return string(Classify(d.Addr))
	case d.Reason == "protected":
		return groupOwn
	case d.Reason == "not-tcp":
		return groupNotTCP
	}
	return groupAddress
}

// Foremost gives at most n of all, in their order: the first of each
// [Denial.Group], then the second of each, and so on.
func Foremost[D interface{ Group() string }](all []D, n int) []D {
	if len(all) <= n {
		return all
	}
	by := map[string][]int{}
	for i, d := range all {
		by[d.Group()] = append(by[d.Group()], i)
	}
	var kept []int
	for turn := 0; len(kept) < n; turn++ {
		for _, g := range groups {
			if of := by[g]; turn < len(of) && len(kept) < n {
				kept = append(kept, of[turn])
			}
		}
	}
	slices.Sort(kept)
	out := make([]D, 0, len(kept))
	for _, i := range kept {
		out = append(out, all[i])
	}
	return out
}

// A Denier tells what was denied. Implemented by a Sandbox iff its backend
// declares [CanLearn].
type Denier interface {
	// Denied may be called after Kill: it then tells what was known before.
	// Where nobody who counts can be asked it is Unknown.
	Denied(ctx context.Context) (Denials, error)
}
