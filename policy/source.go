package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Source is a set of rules beside the built-in ones: the Rego files in a
// directory. Their packages are "custom.<Name>.…", helpers
// "custom.<Name>.lib.…". A file waivers.yaml, waivers.yml or waivers.json at its
// top holds the waivers of the set's owner.
type Source struct {
	Name string // lower-case letters, digits and '_'
	Dir  string
}

// contents are what a source holds.
type contents struct {
	files   map[string]string // Rego, by name
	waivers []Waiver
}

// Limits of one set.
const (
	maxFiles = 1000
	maxBytes = 8 << 20
)

var sourceName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// read gives what the set holds. Links that lead out of the directory are
// refused.
func (s Source) read() (*contents, error) {
	if !sourceName.MatchString(s.Name) || s.Name == builtin {
		return nil, driver.Invalid("policy.sources", fmt.Sprintf("%q is no name for a set", s.Name), "use lower-case letters, digits and '_', beginning with a letter")
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return nil, driver.Invalid("policy.sources", err.Error(), "name a directory with Rego files")
	}
	defer root.Close()
	files, err := readSet(root.FS())
	if err != nil {
		return nil, driver.Invalid("policy.sources", fmt.Sprintf("%s: %v", s.Dir, err), "make every file in it readable, or take it out")
	}
	c := &contents{files: files}
	for _, name := range []string{"waivers.yaml", "waivers.yml", "waivers.json"} {
		raw, err := readBounded(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && c.waivers != nil {
			err = errors.New("the set has another file of waivers")
		}
		if err == nil {
			c.waivers, err = readWaivers(raw)
		}
		if err != nil {
			return nil, driver.Invalid("policy.sources", fmt.Sprintf("%s: %v", filepath.Join(s.Dir, name), err), "mend the waivers; nothing of the set is used as it is")
		}
	}
	return c, nil
}

// readBounded reads a regular file that is not larger than a file of waivers
// may be.
func readBounded(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is no regular file"))
	}
	return io.ReadAll(io.LimitReader(f, maxWaiverFile+1))
}

// readSet reads the Rego files of fsys, but for tests and hidden directories.
func readSet(fsys fs.FS) (map[string]string, error) {
	out, size := map[string]string{}, 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		case filepath.Ext(name) != ".rego" || strings.HasSuffix(name, "_test.rego"):
			return nil
		}
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return err
		}
		size += int(min(info.Size(), maxBytes+1))
		if !info.Mode().IsRegular() || size > maxBytes || len(out) == maxFiles {
			return fmt.Errorf("%s: a set has at most %d regular files and %d MiB", name, maxFiles, maxBytes>>20)
		}
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		out[name] = string(raw)
		return nil
	})
	return out, err
}
