package driver

import (
	"fmt"
	"log/slog"
	"time"
)

// WorkDir is the directory in which programs start and where relative names
// begin.
const WorkDir = "/work"

// Cmd is an order to run one program. Package sandbox has resolved it: Args is
// not empty, Env and Secrets do not overlap, Timeout is positive.
type Cmd struct {
	Args    []string          // argv, never given to a shell
	Env     map[string]string // added to, and winning over, the sandbox's env
	Secrets map[string]Secret // added to env by the guest; never in any configuration
	Dir     string            // absolute, or relative to /work; "" is /work
	Stdin   bool              // false gives the program /dev/null
	Timeout time.Duration     // after which the guest kills the program; Exit.TimedOut is set
	// Detached lets the program outlive the connection that started it; its
	// output is discarded. Only in detached sandboxes.
	Detached bool
}

// Secret is a value that prints itself as "[secret]" under every verb, in
// slog and in JSON. Only [Secret.Reveal] gives it back. The value is behind a
// pointer because fmt prints what it cannot call methods on, an unexported
// field or a wrong verb's operand, as it lies in memory.
type Secret struct{ value *string }

const hidden = "[secret]"

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{&value} }

// Reveal returns the value. It is the one way out, so that it can be searched
// for in review.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

func (s Secret) String() string                 { return hidden }
func (s Secret) GoString() string               { return hidden }
func (s Secret) Format(f fmt.State, verb rune)  { _, _ = f.Write([]byte(hidden)) }
func (s Secret) LogValue() slog.Value           { return slog.StringValue(hidden) }
func (s Secret) MarshalText() ([]byte, error)   { return []byte(hidden), nil }
func (s Secret) MarshalJSON() ([]byte, error)   { return []byte(`"` + hidden + `"`), nil }
func (s Secret) MarshalBinary() ([]byte, error) { return []byte(hidden), nil } // gob

// Stream tells output from errors.
type Stream uint8

const (
	Stdout Stream = 1
	Stderr Stream = 2
)

func (s Stream) String() string {
	switch s {
	case Stdout:
		return "stdout"
	case Stderr:
		return "stderr"
	}
	return fmt.Sprintf("stream(%d)", uint8(s))
}

// Chunk is a piece of output, byte for byte as it was written.
type Chunk struct {
	Stream Stream
	Data   []byte
}

// Exit is how a program ended.
type Exit struct {
	Code     int    `json:"code"`      // exit status; 128 + number when a signal ended it
	Signal   string `json:"signal"`    // "SIGKILL", …; "" when it exited by itself
	OOM      *bool  `json:"oom"`       // whether the memory cap killed it or a child; nil = could not tell
	TimedOut bool   `json:"timed_out"` // Cmd.Timeout ended it
}
