package wire

// Protocol is the version of everything but the greeting's layout. Both sides
// must have the same.
const Protocol = 1

// Op names what a stream is for.
type Op uint8

const (
	OpExec   Op = 1 // Exec; then Events until the host closes
	OpData   Op = 2 // Data; the exec's bytes: frames of input one way, of output the other
	OpKill   Op = 3 // Kill; then one Event
	OpAttest Op = 4 // Empty; then one Event, then a Report if it is Done
	OpFiles  Op = 5 // FileRequest; the rest is between the host and the helper
	OpEnd    Op = 6 // Empty; the guest ends the sandbox
	OpExtend Op = 7 // Extend; then one Event
	OpListen Op = 8 // Empty; then one Event: programs inside can connect to ProxyPort
	OpTunnel Op = 9 // Empty; then a Started once a program connected, and its bytes
)

// Empty has nothing to say.
type Empty struct{}

func (*Empty) Fields(*Coder) {}

// Exec is an order to run a program.
type Exec struct {
	Token    uint64 // pairs it with its Data stream
	Args     []string
	Env      [][2]string
	Secrets  [][2]string
	Dir      string
	Stdin    bool
	Timeout  int64 // nanoseconds
	Detached bool
}

func (m *Exec) Fields(c *Coder) {
	c.Uint(&m.Token)
	c.Strs(&m.Args)
	c.Pairs(&m.Env)
	c.Pairs(&m.Secrets)
	c.Str(&m.Dir)
	c.Bool(&m.Stdin)
	Num(c, &m.Timeout)
	c.Bool(&m.Detached)
}

// Data opens an exec's second stream.
type Data struct{ Token uint64 }

func (m *Data) Fields(c *Coder) { c.Uint(&m.Token) }

// Kill ends an exec with all its descendants.
type Kill struct{ ID uint64 }

func (m *Kill) Fields(c *Coder) { c.Uint(&m.ID) }

// Extend moves the deadline, unix nanoseconds by the guest's clock, which is
// that of the machine it runs on.
type Extend struct{ Deadline int64 }

func (m *Extend) Fields(c *Coder) { Num(c, &m.Deadline) }

// EventKind says what an Event tells.
type EventKind uint8

const (
	EventDone        EventKind = 1
	EventFailed      EventKind = 2 // Failure
	EventStarted     EventKind = 3 // ID
	EventStdinClosed EventKind = 4
	EventExited      EventKind = 5 // Exit
)

// Event is what the guest says about an operation.
type Event struct {
	Kind    EventKind
	ID      uint64
	Failure Failure
	Exit    Exit
}

func (m *Event) Fields(c *Coder) {
	Num(c, &m.Kind)
	switch m.Kind {
	case EventDone, EventStdinClosed:
	case EventFailed:
		m.Failure.Fields(c)
	case EventStarted:
		c.Uint(&m.ID)
	case EventExited:
		m.Exit.Fields(c)
	default:
		c.failed = true
	}
}

// Kind says which error of package io/fs a Failure stands for.
type Kind uint8

const (
	KindNone Kind = iota
	KindNotExist
	KindExist
	KindPermission
)

// Failure is an error on its way to the host. Code is a driver.Code.
type Failure struct {
	Code, Field, Text, Hint string
	Kind                    Kind
}

func (m *Failure) Fields(c *Coder) {
	c.Str(&m.Code)
	c.Str(&m.Field)
	c.Str(&m.Text)
	c.Str(&m.Hint)
	Num(c, &m.Kind)
}

func (m *Failure) Error() string { return m.Code + ": " + m.Text }

// What the guest knows of the memory cap's part in an exit.
const (
	OOMUnknown uint8 = iota
	OOMNo
	OOMYes
)

// Exit is how a program ended: by itself with Code, or by Signal.
type Exit struct {
	Code, Signal uint8
	OOM          uint8
	TimedOut     bool
}

func (m *Exit) Fields(c *Coder) {
	Num(c, &m.Code)
	Num(c, &m.Signal)
	Num(c, &m.OOM)
	c.Bool(&m.TimedOut)
}
