// Package outlet is the way out of a sandbox in mode proxy, in the process of
// the sandbox's owner: programs inside speak to a proxy, their bytes come here,
// and what a gateway.Proxy lets through is dialled from here.
//
// So the network that is reached is the owner's, not the engine's. What belongs
// to the owner's machine (its addresses, and the networks it is part of) is
// protected like metadata services and private ranges are: opened only by a
// rule that names it. Names are asked for as absolute names, so that no search
// domain turns one into another, and only addresses that were checked are
// dialled.
//
// An Outlet starts nothing of its own: who calls Serve owns the goroutine, and
// nothing is left of it when Serve returns.
package outlet
