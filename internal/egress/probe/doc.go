// Package probe is what sandboxio egress prove places where it wants to know:
// inside a sandbox it tries one way out, by name, and says what happened; as a
// canary it is the whole internet of a network, answers on every address that
// it is given and writes down each packet that comes.
//
// What the probe says of itself is never the verdict: it may be wrong, or lied
// to. The verdict is what the canaries saw.
//
// A way out must carry its sign, or go to an address that is its own, so that
// what comes to a canary can be told from what was allowed.
package probe
