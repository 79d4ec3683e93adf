// Package drivertest is the judge of drivers. Where the documentation of
// package driver and this suite disagree, the suite wins.
//
// A driver's whole test is one call:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{
//			Open:    func(ctx context.Context) (driver.Backend, error) { return mine.Open(ctx, mine.Options{}) },
//			Image:   "sha256:…", // with sh, coreutils and python3; or Programs says the probes otherwise
//			MaySkip: "leftovers and canary are not there yet",
//		})
//	}
//
//	func BenchmarkMine(b *testing.B) { drivertest.Bench(b, drivertest.Harness{ … }) }
//
// It needs Open only; without the rest the checks that ask for it are skipped,
// which fails the run unless MaySkip says why. The suite's orders have the
// profile that the driver declares, so that a new driver declares the
// capability "strict" or "compat" before anything else. A run ends with one
// line, as
//
//	mine: 160 proved, 9 refused, 0 simulated, 0 skipped, of 184 checks in all
//
// where "in all" counts those too that do not apply to such a backend.
//
// # What is asked
//
// The checks are named by sentences, in families: create, kill, lifetime and
// cancel; exec, streams, detach, attach and extend; env, secrets and labels;
// files and archive; network, egress, caps, oom, privileges and strict; check,
// errors, info, capabilities and isolation; list and schedule. The families
// output, run, close, handle, code and records drive the backend through
// package sandbox, as programs do, since that package can be no better than
// the driver under it. An id in a name, as (M39), is the public case that the
// check reproduces.
//
// Each [Check] is a function that returns an error, so that the suite can be
// run outside a test, by [Examine], and so that it can be judged itself: the
// mutants in drivertest/mutant are backends with one lie each, and must fail
// exactly the checks that the lie concerns. A check that no mutant fails is
// listed there with the reason.
//
// Every capability has two checks: a proof for backends that declare it and a
// refusal for those that do not. On a backend that calls itself simulated, a
// check that measures a real control counts as simulated, not as proved.
//
// # How it is asked
//
// What a check needs inside a sandbox is said in a fixed vocabulary of
// [Probe]s. [Shell] says them in the programs of an image with a POSIX shell,
// coreutils and Python 3; [Direct] takes each for a program of that name.
//
// Every check makes its own sandboxes, small ones, each with the label
// "drivertest" and the owner fact of the harness, and ends them. Nothing is
// asserted of small absolute times: what has to happen is waited for, ten
// seconds at most, and what must not happen is compared with a control.
package drivertest
