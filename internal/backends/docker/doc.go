// Package docker makes sandboxes on a Docker Engine, 20.10 to current.
//
// A sandbox is one container whose PID 1 is the sandboxio guest, mounted
// read-only from a volume named by the guest's digest. What the engine is
// asked for is only half of it: before a sandbox is handed over, a probe on
// the workload's own path reports what really holds inside, and any control
// that does not hold destroys the sandbox.
//
// The package promises: no I/O before the first operation; no image is ever
// pulled; nothing is made without its labels and its deadline in the same
// call; what could not be finished is removed, or reported as leaked with the
// command that finds it.
//
// It does not promise more isolation than it measured: on runc, a sandbox
// shares the host's kernel.
package docker
