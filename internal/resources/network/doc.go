// Package network is the value of a network policy in Terraform's types, as a
// template takes it and as sandboxio_network_policy computes it, and its way to
// and from the words of package driver.
//
// Names in other scripts become A-labels here, before driver.Canonical sees
// them. A value that is not known yet is reported by its path, never left out
// and never taken for empty.
package network
