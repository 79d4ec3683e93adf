// Package pin knows the digest of each binary of ours that a program places
// somewhere else: the guest and the gateway. A release is linked with them; a
// program built from source trusts what the setup command has written down
// for its user. No environment variable changes either.
package pin

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

var form = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Digest is the digest of the binary of that name, "guest" or "gateway":
// release, if a release was linked with one, else what was pinned. Codes:
// invalid, with the command that pins.
func Digest(name, release string) (string, error) {
	if release != "" {
		return check(name, release)
	}
	file, err := File(name)
	if err != nil {
		return "", none(name, err)
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", none(name, fmt.Errorf("this program was built from source and no %s binary is pinned", name))
	}
	if err != nil {
		return "", none(name, err)
	}
	return check(name, strings.TrimSpace(string(b)))
}

// Write records digest as the one to trust for the binary of that name. The
// setup command calls it.
func Write(name, digest string) error {
	if _, err := check(name, digest); err != nil {
		return err
	}
	file, err := File(name)
	if err != nil {
		return none(name, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return none(name, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+name+"-*")
	if err != nil {
		return none(name, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(digest + "\n")
	if err = errors.Join(err, tmp.Close()); err != nil {
		return none(name, err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return none(name, err)
	}
	return nil
}

// File is where the digest of the binary of that name is pinned.
func File(name string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "sandboxio", name+".sha256"), nil
}

func check(name, s string) (string, error) {
	if !form.MatchString(s) {
		return "", none(name, fmt.Errorf("%q is no digest: sha256 and 64 lower-case hex digits", s))
	}
	return s, nil
}

func none(name string, err error) error {
	return &driver.Error{Code: driver.CodeInvalid, Op: name + " digest", Err: err, Hint: "sandboxio setup docker"}
}
