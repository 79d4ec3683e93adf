package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// ReleaseDigest is the digest of the guest binary of this release,
// "sha256:…", set when a release is linked. A program built from source has
// none and trusts what setup pinned.
var ReleaseDigest string

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Digest is the digest of the guest binary that this program trusts. No
// environment variable changes it.
func Digest() (string, error) {
	if ReleaseDigest != "" {
		return checkDigest(ReleaseDigest)
	}
	name, err := pinFile()
	if err != nil {
		return "", noDigest(err)
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", noDigest(errors.New("this program was built from source and no guest binary is pinned"))
	}
	if err != nil {
		return "", noDigest(err)
	}
	return checkDigest(strings.TrimSpace(string(b)))
}

// WritePin records digest as the one to trust, for programs without a
// ReleaseDigest. The setup commands call it.
func WritePin(digest string) error {
	if _, err := checkDigest(digest); err != nil {
		return err
	}
	name, err := pinFile()
	if err != nil {
		return noDigest(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return noDigest(err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".guest-*")
	if err != nil {
		return noDigest(err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(digest + "\n")
	if err = errors.Join(err, tmp.Close()); err != nil {
		return noDigest(err)
	}
	if err := os.Rename(tmp.Name(), name); err != nil {
		return noDigest(err)
	}
	return nil
}

func pinFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "sandboxio", "guest.sha256"), nil
}

func checkDigest(s string) (string, error) {
	if !digestForm.MatchString(s) {
		return "", noDigest(fmt.Errorf("%q is no digest: sha256 and 64 lower-case hex digits", s))
	}
	return s, nil
}

func noDigest(err error) error {
	return &driver.Error{Code: driver.CodeInvalid, Op: "guest digest", Err: err, Hint: "sandboxio setup docker"}
}
