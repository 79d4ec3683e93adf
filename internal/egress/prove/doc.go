// Package prove shows on a live engine what an allowlist stops: it makes a
// small internet of canaries, puts a sandbox before it under a policy, tries
// every way out in its catalogue from inside, and gives as evidence what came
// to the canaries.
//
// It promises: an attempt is closed only if the same attempt, by the same
// program, came through where nothing is enforced, in the same run, and only
// if the project's tests have shown that it comes through when the protection
// it is named after is taken away. Otherwise it is not applicable, which is
// never closed. What is allowed must come through, or nothing is proved. What
// it made on the engine is removed, whatever happens; what could not be is an
// error.
//
// What it does not show: that there is no other way. Domain fronting (another
// name inside TLS that is not opened), and data in the names below a wildcard
// that is allowed, are open by design and not in the catalogue.
package prove
