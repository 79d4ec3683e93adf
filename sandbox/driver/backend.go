package driver

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// A Backend makes, finds and ends sandboxes at one provider.
//
// All methods are safe for concurrent use. Every error that is not the
// context's own is an [*Error] with a [Code].
type Backend interface {
	// Info tells what the backend is and can do. It does no I/O and always
	// gives the same answer.
	Info() Info

	// Check decides, without I/O, whether the backend can enforce every part
	// of spec, and by which mechanism. It returns all problems joined, each
	// an [*Error] with Field set. The core calls it before any I/O.
	Check(spec Spec) (Plan, error)

	// Create makes one sandbox that has everything spec asks for, or makes
	// nothing: on any error, and when ctx ends, whatever was made is gone
	// before Create returns, or the error carries the code [CodeLeaked] and names
	// what is left. Create calls Check itself.
	Create(ctx context.Context, spec Spec) (Sandbox, error)

	// Attach finds a sandbox of ours by its id. It never creates one. A
	// sandbox that cannot answer (paused, frozen) can still be attached, so
	// that it can be killed; only the first operation reaches inside.
	// Codes: not-found, gone.
	Attach(ctx context.Context, id string) (Sandbox, error)

	// List yields every sandbox of ours whose labels (its [Facts] included,
	// under their native names) contain all of labels. After an error it
	// stops. Backends re-check the labels on their own side.
	List(ctx context.Context, labels map[string]string) iter.Seq2[Status, error]

	// Close frees what the backend holds. It kills no sandbox.
	Close() error
}

// A Sandbox is one place where a program runs. Methods are safe for
// concurrent use.
type Sandbox interface {
	// Status is what was known at creation, attachment or the last Extend of
	// this handle, with the measured isolation. It does no I/O.
	Status() Status

	// Start starts a program. It returns once the program runs, or could not
	// be started: a missing program is a [*Process] that exits 127, one that
	// may not be executed exits 126. When ctx ends before Start returns,
	// nothing of it survives. ctx does not bound the process afterwards.
	Start(ctx context.Context, cmd Cmd) (Process, error)

	// Files reaches the sandbox's files with the workload's own rights.
	Files() Files

	// Kill ends the sandbox with all its processes and removes it. It
	// returns once both are done. Killing one that is gone succeeds.
	Kill(ctx context.Context) error
}

// A Process is one running program.
type Process interface {
	// Recv returns the next piece of output, and [io.EOF] once the program
	// has exited and all its output was returned. A reader that stops
	// reading stops the program (back-pressure), not its neighbours. The
	// chunk is the caller's.
	Recv(ctx context.Context) (Chunk, error)

	// Stdin feeds the program, if Cmd.Stdin asked for it; closing it gives
	// the program end of file. Writing after the program closed its stdin
	// fails with [syscall.EPIPE].
	Stdin() io.WriteCloser

	// Wait returns how the program ended. It never waits for output to be
	// read, nor for grandchildren that hold the pipes.
	Wait(ctx context.Context) (Exit, error)

	// Kill ends the program with all its descendants, those that left its
	// process group or session included, and nothing else. Killing one that
	// has ended succeeds.
	Kill(ctx context.Context) error
}

// Files are a sandbox's files. Names are absolute POSIX paths, or relative to
// the workload's directory /work, whatever the host's system is. Links are not
// followed out of what the workload itself may reach, /proc, /sys, devices and
// the guest's own files are refused, and opening never blocks on a FIFO.
// Errors wrap [fs.ErrNotExist], [fs.ErrExist] and [fs.ErrPermission] where
// they apply.
type Files interface {
	Open(ctx context.Context, name string) (io.ReadCloser, FileInfo, error)

	// Create writes a regular file. It appears under its name, complete, when
	// Close returns nil; until then, and when ctx ends, name is untouched.
	Create(ctx context.Context, name string, mode fs.FileMode) (io.WriteCloser, error)

	Stat(ctx context.Context, name string) (FileInfo, error) // describes a link itself
	List(ctx context.Context, name string) ([]FileInfo, error)
	Mkdir(ctx context.Context, name string, mode fs.FileMode) error // with parents; an existing directory is no error
	Remove(ctx context.Context, name string, recursive bool) error
	Rename(ctx context.Context, from, to string) error

	// Pack gives what is in the directory name as a tar stream, until io.EOF
	// after its whole end. Names are relative to the directory and
	// slash-separated; a directory comes before what is in it; otherwise
	// there is no order. Directories and regular files come with their
	// permission bits and their modification times to the second, without
	// setuid, setgid and sticky bits and owners; a file with several names
	// comes once under each. Symbolic links, devices, FIFOs and sockets (as
	// FIFOs) are entries without content, for the receiver to report; none is
	// followed or opened. Holes may come as sparse entries.
	//
	// What cannot be read, or is refused, fails the stream; what vanishes
	// meanwhile is left out. A file that grows comes as long as it was, one
	// that shrinks fails the stream with the code conflict. No limit but 256
	// levels is the driver's: the receiver has its own, and believes nothing.
	Pack(ctx context.Context, name string) (io.ReadCloser, error)

	// Unpack writes a tar stream into the directory name, which is made, with
	// its parents, if it is missing. It takes what Pack gives, and refuses
	// (code invalid) absolute names, "..", empty parts, and a name that comes
	// twice as different kinds of thing; what is neither a directory nor a
	// regular file is not made, and fails the stream at its end, if not
	// before. Modes and times are kept as Pack gives them; a directory that
	// exists keeps its mode. A file takes the place of whatever has its name
	// but a directory, and no link is followed below name.
	//
	// Each file appears whole, at its own end at the earliest and when Close
	// returns at the latest; until then what had its name stays. Close
	// returns nil once all of it is there. On any error, and when ctx ends,
	// the files that were whole may be there, and no part of another is. At
	// least a million entries, 256 levels and names of 4096 bytes are taken;
	// the disk bounds the content.
	Unpack(ctx context.Context, name string) (io.WriteCloser, error)
}

// FileInfo describes one file.
type FileInfo struct {
	Name    string      // base name
	Size    int64       // bytes
	Mode    fs.FileMode // type and permission bits
	ModTime time.Time
	Link    string // target of a symbolic link
}

// An Extender moves a sandbox's deadline. Implemented by a Sandbox iff its
// backend declares [CanExtend].
type Extender interface {
	// Extend moves the deadline, told by the backend's clock, to a later or
	// an earlier one. It may not lie in the past, nor beyond what
	// Spec.MaxLifetime allowed at creation, whoever asks. When Extend returns
	// nil, Status and lists show the new deadline and the sandbox ends by it;
	// on an error it ends by the later of the two at the latest. Codes:
	// invalid (Field "deadline"), gone.
	Extend(ctx context.Context, deadline time.Time) error
}

// A Clock tells the backend's own time, by which deadlines are judged.
// Implemented by every Backend that declares [CanList].
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}

// A Scheduler keeps reaper schedules running at the provider, without any
// process of ours elsewhere. Implemented by a Backend iff it declares
// [CanSchedule].
type Scheduler interface {
	// PutSchedule installs or replaces the schedule of that name and returns
	// once it runs.
	PutSchedule(ctx context.Context, s Schedule) (ScheduleStatus, error)
	// Schedule finds one by name; code not-found when there is none.
	Schedule(ctx context.Context, name string) (ScheduleStatus, error)
	// DeleteSchedule removes it; removing one that is gone succeeds.
	DeleteSchedule(ctx context.Context, name string) error
}

// An Aser gives access to a backend's native types, outside the compatibility
// promise. target is a non-nil pointer; As reports whether it was set.
type Aser interface{ As(target any) bool }

// As asks x, and whatever it wraps (Unwrap() T for any T), for a value of type
// T: x itself, or what its [Aser] gives.
func As[T any](x any) (T, bool) {
	var zero T
	for x != nil {
		if t, ok := x.(T); ok {
			return t, true
		}
		var t T
		if a, ok := x.(Aser); ok && a.As(&t) {
			return t, true
		}
		switch u := x.(type) {
		case interface{ Unwrap() Backend }:
			x = u.Unwrap()
		case interface{ Unwrap() Sandbox }:
			x = u.Unwrap()
		case interface{ Unwrap() Process }:
			x = u.Unwrap()
		default:
			return zero, false
		}
	}
	return zero, false
}
