// Package gateway applies an egress.Policy to what a hostile program sends:
// names it asks for (Resolver), connections that a router hands over (Router),
// connections to a proxy (Proxy), and the packet filter beneath them
// (Firewall).
//
// Three rules hold everywhere. What cannot be read without doubt is refused,
// never guessed at. What goes out is made anew or was read to its end before
// its first byte left. And a connection leads only to an address that was
// checked: resolved by us for the name that the connection itself names, and
// public, or opened by a rule that names it.
//
// Nothing here opens a socket by itself: dialling and looking up are the
// caller's functions, and so may be carrying what a Router has allowed
// (Passage). Memory is bounded, per connection and in all. TLS is never opened.
// What is refused is told to egress.Denials: target, port and reason, never
// what was sent.
package gateway
