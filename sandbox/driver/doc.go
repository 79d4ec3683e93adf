// Package driver is what a backend implements, and the words that every part
// of sandboxio shares.
//
// A backend turns an order ([Spec]) into a running sandbox. The order is
// complete: the core has resolved every default, so a driver never fills in
// one of its own. A driver that cannot enforce a part of the order refuses it
// in [Backend.Check]; it never accepts and ignores.
//
// Programs that use sandboxes import package sandbox, which aliases the words
// defined here. Package drivertest is the judge of drivers: where this
// documentation and that suite disagree, the suite wins.
//
// The package imports the standard library only, and does no I/O.
package driver
