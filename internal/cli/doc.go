// Package cli is the sandboxio command: one file a subcommand.
//
// Results go to standard output, as text or with --json as JSON; progress and
// errors go to standard error. Exit codes: 0 done, 1 failed, 2 denied by
// policy. Colour is used on a terminal only, and never when NO_COLOR is set.
package cli
