// Package networkpolicy is sandboxio_network_policy: an allowlist, brought into
// the one canonical form, that templates take by value.
//
// It is a pure value. Its canonical form and its digest do not depend on the
// order of rules, nor on the case or script in which names are written.
package networkpolicy
