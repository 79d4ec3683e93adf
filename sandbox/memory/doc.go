// Package memory is a backend that keeps its sandboxes in this process. It is
// for tests and for trying things out.
//
// It promises what a process can promise of itself: lifetimes, timeouts, the
// kill of whole trees, back-pressure, files, labels, lists, attachment,
// extension and reaper schedules behave as a real backend's do, and a killed
// sandbox leaves no goroutine. It isolates nothing and says so: its Info is
// Simulated, its isolation unverified, and an order with any floor is refused.
//
// It runs no real programs but a fixed vocabulary of probes:
//
//	true, false, exit N, raise SIGNAL        end in a known way
//	echo, args, both OUT ERR, write-stderr   say what they were given
//	env, environ, getenv NAME, sha256 [NAME] say what they see
//	pwd, cmdlines                            and where, and who else runs
//	cat [FILE…], swallow                     read, and give it back or not
//	bytes, flood N, count N, yes             produce output
//	hang, stubborn, sleep S, spin, deaf      go on until they are ended
//	spawn-daemon FILE, spawn-job FILE        leave something behind,
//	beat FILE, leave                         or are left
//	write FILE, link TARGET FILE, fifo FILE  change files
//	fetch HOST:PORT, resolve NAME,           ask the network policy,
//	proxied HOST:PORT                        the proxy of mode proxy
//	fork N, hog MIB, fill FILE MIB, burn     run into a cap
//	status, kernel                           describe themselves
//
// "sh FILE" and "sh -c TEXT" run such words line by line, without quoting;
// "python3 FILE" and "python3 -c TEXT" know lines of the one shape
// print("text"). Anything else exits 127.
//
// The clock is package time's, so that testing/synctest can turn it.
package memory
