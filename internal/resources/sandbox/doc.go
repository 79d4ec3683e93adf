// Package sandbox is sandboxio_sandbox: a detached sandbox made from a
// template's manifest, with a mandatory lifetime.
//
// It is handed over or destroyed: a failure after it was made, that of its
// start command included, ends it before Create returns. One that reached its
// deadline stays in the state as "expired" with an empty plan, unless
// recreate_on_expiry says otherwise; one that disappeared before is planned
// again; one that stopped is neither; a backend that does not answer is an
// error. Secret values are write-only: they are read from the configuration in
// Create, handed to the start command, and kept nowhere.
package sandbox
