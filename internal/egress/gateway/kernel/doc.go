// Package kernel is where a gateway meets Linux: it turns a gateway.Ruleset
// into what nftables knows and looks at it again (Apply), finds interfaces,
// sets routes, forwarding and addresses, gives up privileges, and asks where a
// connection was meant to go before it was turned aside.
//
// It acts on the network namespace of the calling process and on nothing else.
// Whatever it sets it reads back; a kernel or a container that lacks what it
// needs is refused by name (code unsupported), with the fix.
package kernel
