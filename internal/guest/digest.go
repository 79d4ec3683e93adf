package guest

import "github.com/sandboxio/terraform-provider-sandboxio/internal/pin"

// ReleaseDigest is the digest of the guest binary of this release,
// "sha256:…", set when a release is linked. A program built from source has
// none and trusts what setup pinned.
var ReleaseDigest string

const pinned = "guest"

// Digest is the digest of the guest binary that this program trusts. No
// environment variable changes it.
func Digest() (string, error) { return pin.Digest(pinned, ReleaseDigest) }

// WritePin records digest as the one to trust, for programs without a
// ReleaseDigest. The setup commands call it.
func WritePin(digest string) (changed bool, err error) { return pin.Write(pinned, digest) }
