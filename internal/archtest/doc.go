// Package archtest holds the house rules of who may know whom, as a table in
// which each rule carries its why, and the test that enforces them.
//
// It promises that a rule can fail: each kind of rule is shown to find its fault
// in a synthetic tree, and a rule that names a package which is gone fails too.
// Imports, names and initialisers are read from the source of every file, for
// whichever platform it is; what a binary reaches is asked of go list, for each
// platform that we build for. Tests are free, unless a rule says otherwise.
package archtest
