// Package egress is the functions on allowlists, canonical_egress and
// egress_allows. They are pure, and know nothing but their arguments.
package egress
