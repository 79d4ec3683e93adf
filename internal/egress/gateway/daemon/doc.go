// Package daemon is a gateway: the program that stands between a sandbox and
// everything else, in a network namespace of its own.
//
// It comes up in one order, whenever it is started: the packet filter, which
// drops everything that no rule allows; the listeners of resolver and router;
// forwarding; and only then the address that the sandbox sends to, with a
// hardware address that nobody has known before. Then it gives up all
// privileges, starts the first relay, which so never has any, and says that it
// is ready. Anything that fails before ends it,
// with nothing let through: no gateway means no network.
//
// It ends with its lifetime, and with its owner, if it has one. It writes
// nothing but boot.Lines.
package daemon
