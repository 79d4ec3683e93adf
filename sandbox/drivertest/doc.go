// Package drivertest is the judge of drivers. Where the documentation of
// package driver and this suite disagree, the suite wins.
//
// A driver's own test calls [Run] with a [Harness]:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{
//			Open:    func(ctx context.Context) (driver.Backend, error) { return mine.Open(ctx, mine.Options{}) },
//			Image:   "sha256:…", // with sh, coreutils and python3; or Programs says the probes otherwise
//			MaySkip: "leftovers and canary are not there yet",
//		})
//	}
//
// It needs Open only; without the rest the checks that ask for it are skipped,
// which fails the run unless MaySkip says why. The suite's orders have the
// profile that the driver declares, so that a new driver declares the
// capability "strict" or "compat" before anything else.
//
// Each [Check] is a function
// that returns an error, so that the suite can be run outside a test, and so
// that it can be judged itself: the mutants in drivertest/mutant are backends
// with one lie each, and must fail exactly the checks that the lie concerns.
//
// Every capability has two checks: a proof for backends that declare it and a
// refusal for those that do not. On a backend that calls itself simulated, a
// check that measures a real control counts as simulated, not as proved.
//
// What a check needs inside a sandbox is said in a fixed vocabulary of
// [Probe]s. [Shell] says them in the programs of an image with a POSIX shell,
// coreutils and Python 3; [Direct] takes each for a program of that name.
package drivertest
