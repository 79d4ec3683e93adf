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
		return "", &driver.Error{Code: driver.CodeInvalid, Op: name + " digest", Err: err, Hint: "set HOME, or XDG_CONFIG_HOME, to that of the user who ran `sandboxio setup docker`"}
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", none(name, fmt.Errorf("this program was built from source and %s pins no %s binary", file, name))
	}
	if err != nil {
		return "", none(name, err)
	}
	return check(name, strings.TrimSpace(string(b)))
}

// Write records digest as the one to trust for the binary of that name, for
// the user who calls it, and tells whether another one was, or none. The setup
// command calls it.
func Write(name, digest string) (changed bool, err error) {
	if _, err := check(name, digest); err != nil {
		return false, err
	}
	file, err := File(name)
	if err != nil {
		return false, none(name, err)
	}
	if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == digest {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return false, none(name, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+name+"-*")
	if err != nil {
		return false, none(name, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(digest + "\n")
	if err = errors.Join(err, tmp.Close()); err != nil {
		return false, none(name, err)
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return false, none(name, err)
	}
	return true, nil
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
