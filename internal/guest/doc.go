// Package guest is the host's side of sandboxio-guest, the program that is
// PID 1 in every sandbox we make ourselves. It works over any byte stream that
// reaches the guest: a container's attached stdin and stdout, or the bridge.
//
// The guest's version is pinned: [Digest] is the digest of the only binary
// that this program trusts, and [Connect] refuses another protocol version.
// Yet no byte from inside is trusted: lengths are bounded before they are
// believed, text is cleaned, and a guest that breaks the protocol costs its
// own connection only.
//
// Secrets are sent in the order that starts a program and kept nowhere here.
// They are in no error; the package logs nothing.
//
// What runs inside is package pid1; what both say is package wire.
package guest
