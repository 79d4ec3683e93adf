// Package boot is what a gateway is told when it is started (Config), what it
// says (Line), and which binary it has to be (Digest): the words between a
// backend that starts one and package daemon, which is one.
//
// What a gateway says is read as hostile: it is bounded, and whoever reads it
// compares what counts with what was ordered.
package boot

import "github.com/sandboxio/terraform-provider-sandboxio/internal/pin"

// Binary is the gateway's program in its image.
const Binary = "/sandboxio-gateway"

// ReleaseDigest is the digest of the gateway binary of this release,
// "sha256:…", set when a release is linked; see guest.ReleaseDigest.
var ReleaseDigest string

const pinned = "gateway"

// Digest is the digest of the gateway binary that this program trusts.
func Digest() (string, error) { return pin.Digest(pinned, ReleaseDigest) }

// WritePin records digest as the one to trust, for programs without a
// ReleaseDigest.
func WritePin(digest string) (changed bool, err error) { return pin.Write(pinned, digest) }
