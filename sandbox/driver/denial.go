package driver

import (
	"context"
	"net/netip"
	"time"
)

// Denials are what a sandbox tried to reach and was refused, since its
// creation.
type Denials struct {
	Told  []Denial // each kind once, in order of target
	Other int      // how many more there were of kinds beyond those that are kept
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

// A Denier tells what was denied. Implemented by a Sandbox iff its backend
// declares [CanLearn].
type Denier interface {
	// Denied may be called after Kill: it then tells what was known before.
	// In a process that did not create the sandbox it tells nothing where
	// only that one counts, as in mode Proxy.
	Denied(ctx context.Context) (Denials, error)
}
