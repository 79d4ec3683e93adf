package driver

import (
	"fmt"
	"time"
)

// Isolation ranks one thing: the distance of hostile code from the host's
// kernel. Higher is farther.
type Isolation uint8

const (
	// Unverified satisfies no requirement.
	Unverified Isolation = 0
	// Container shares the host's kernel behind namespaces and seccomp.
	Container Isolation = 10
	// UserKernel answers system calls in user space, as gVisor does.
	UserKernel Isolation = 20
	// MicroVM runs a kernel of its own on virtual hardware.
	MicroVM Isolation = 30
)

var isolationNames = map[Isolation]string{
	Unverified: "unverified", Container: "container", UserKernel: "user-kernel", MicroVM: "microvm",
}

func (i Isolation) String() string {
	if s, ok := isolationNames[i]; ok {
		return s
	}
	return fmt.Sprintf("isolation(%d)", uint8(i))
}

// Satisfies reports whether a sandbox measured as i meets floor. A floor of
// Unverified asks for nothing; a measured Unverified meets nothing else.
func (i Isolation) Satisfies(floor Isolation) bool { return i >= floor }

// ParseIsolation reads what String writes; "" is Unverified, no floor.
func ParseIsolation(s string) (Isolation, error) {
	if s == "" {
		return Unverified, nil
	}
	for i, name := range isolationNames {
		if s == name {
			return i, nil
		}
	}
	return 0, Invalid("isolation", fmt.Sprintf("%q is no isolation tier", s), `use "container", "user-kernel" or "microvm"`)
}

func (i Isolation) MarshalText() ([]byte, error)  { return []byte(i.String()), nil }
func (i *Isolation) UnmarshalText(b []byte) error { return unmarshal(b, i, ParseIsolation) }

// Evidence says what a measured isolation rests on.
type Evidence struct {
	Source string    `json:"source"` // "probe" (from inside), or a dated page of the provider
	Detail string    `json:"detail"` // what was seen
	Date   time.Time `json:"date"`
}
