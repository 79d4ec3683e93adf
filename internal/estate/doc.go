// Package estate is what a configuration amounts to: the backends by name, the
// policy that judges, and the defaults. The provider, the command line and the
// keeper build one each, once, and take everything from it.
//
// It is the only place that knows which backends there are. Opening an estate
// does no I/O; each backend connects on its first use.
package estate
