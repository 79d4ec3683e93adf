// Package pid1 is the inside of the guest: the program that every sandbox we
// make ourselves runs as PID 1, as uid 0 with the capabilities SETUID, SETGID
// and KILL and no other.
//
// It ends the sandbox when its lifetime is over and, if the sandbox is owned,
// when its owner hangs up or stops answering. It starts programs under the
// workload's uid, without a capability and with descriptors 0 to 2 only, each
// with a supplementary group of its own, which marks all its descendants and
// which they cannot shed. It touches no file and no /proc entry on the
// workload's behalf that a workload could have prepared: the binary starts
// itself again with the workload's rights for that.
//
// PID 1 reads nothing that decides anything from its environment, from the
// image, or from a file; it writes nothing, except that it says on stderr why
// it could not begin.
package pid1
