package policy

import (
	"context"
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

// Source is a set of rules beside the built-in ones. Their packages are
// "custom.<Name>.…", helpers "custom.<Name>.lib.…". Exactly one of Dir and Bundle
// is set.
type Source struct {
	Name string // lower-case letters, digits and '_'; "" is a bundle's own

	// Dir is a directory of Rego files. A file waivers.yaml, waivers.yml or
	// waivers.json at its top holds the waivers of the set's owner.
	Dir string

	Bundle *Bundle
}

// contents are what a source holds.
type contents struct {
	name     string
	from     string            // for errors
	files    map[string]string // Rego, by name
	waivers  []Waiver
	place    string    // the file of the waivers, or the bundle that holds them
	lines    []int     // of the waivers, as far as known
	settings *settings // of a floor; nil = none
	revision uint64    // of a bundle
}

// settings are what a floor settles beside rules and waivers.
type settings struct {
	Mode   string         `json:"mode,omitempty"`   // the most lenient one that a configuration may choose; "" = enforce
	Params map[string]any `json:"params,omitempty"` // in place of the rules' own
}

// data is what a bundle of c has below data.custom.<name>.
func (c *contents) data() map[string]any {
	out := map[string]any{}
	if len(c.waivers) > 0 {
		out["waivers"] = c.waivers
	}
	if c.settings != nil {
		out["settings"] = c.settings
	}
	return out
}

// Limits of one set.
const (
	maxFiles = 1000
	maxBytes = 8 << 20

	maxEntries = 20_000 // of any kind, so that naming "/" ends soon
)

var sourceName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// read gives what the set holds. Links that lead out of a directory are
// refused.
func (s Source) read(ctx context.Context) (*contents, error) {
	field := sourceField(s.Name)
	switch {
	case (s.Name != "" || s.Bundle == nil) && !sourceName.MatchString(s.Name) || s.Name == builtin:
		return nil, driver.Invalid(field, fmt.Sprintf("%q is no name for a set", s.Name), "use lower-case letters, digits and '_', beginning with a letter")
	case s.Dir != "" && s.Bundle != nil:
		return nil, driver.Invalid(field, fmt.Sprintf("the set %q is a directory and a bundle", s.Name), "keep one of them")
	case s.Bundle != nil:
		c, err := s.Bundle.read(ctx)
		if err == nil && s.Name != "" && c.name != s.Name {
			err = remedy{fmt.Errorf("it holds the set %q, and %q was expected", c.name, s.Name), fmt.Sprintf("name it %s=FILE, or as %q in a provider's bundles", c.name, c.name)}
		}
		if err != nil {
			return nil, bundleError(field, fmt.Sprint(s.Bundle.From), err)
		}
		c.from, c.place = s.Bundle.From.String(), s.Bundle.From.String()
		return c, nil
	}
	info, err := os.Stat(s.Dir)
	if err == nil && !info.IsDir() { // opening a pipe would wait for ever
		err = fmt.Errorf("%s is no directory", s.Dir)
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(s.Dir)
	}
	if err != nil {
		return nil, driver.Invalid(field, err.Error(), "name a directory with Rego files")
	}
	defer root.Close()
	c := &contents{name: s.Name, from: s.Dir}
	if c.files, err = readSet(root.FS()); err != nil {
		return nil, driver.Invalid(field, fmt.Sprintf("%s: %v", s.Dir, err), "make every file in it readable, or take it out")
	}
	for what, parse := range map[string]func([]byte) error{
		"waivers":  func(raw []byte) (err error) { c.waivers, c.lines, err = readWaivers(raw); return err },
		"settings": func(raw []byte) (err error) { c.settings, err = readSettings(raw); return err },
	} {
		name, raw, err := readOne(root, what)
		if err == nil && raw != nil {
			if what == "waivers" {
				c.place = filepath.Join(s.Dir, name)
			}
			err = parse(raw)
		}
		if err != nil {
			return nil, driver.Invalid(field, fmt.Sprintf("%s: %v", filepath.Join(s.Dir, name), err), "mend the file; nothing of the set is used as it is")
		}
	}
	return c, nil
}

// sourceField is where a set is named.
func sourceField(name string) string {
	if name == "" {
		return "policy.sources"
	}
	return fmt.Sprintf("policy.sources[%q]", name)
}

// readOne reads the file of that name, in YAML or JSON, at the top of a
// directory. There may be none, and not two.
func readOne(root *os.Root, what string) (name string, raw []byte, err error) {
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		err := regular(root.Stat(what + ext))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && name != "" {
			err = fmt.Errorf("there is %s too", name)
		}
		name = what + ext
		if err != nil {
			return name, nil, err
		}
		f, err := root.Open(name)
		if err != nil {
			return name, nil, err
		}
		raw, err = io.ReadAll(io.LimitReader(f, maxWaiverFile+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return name, nil, err
		}
		if raw == nil {
			raw = []byte{}
		}
	}
	return name, raw, nil
}

func readSettings(raw []byte) (*settings, error) {
	doc, err := readYAML(raw)
	if err != nil {
		return nil, err
	}
	s := new(settings)
	return s, into(doc, s)
}

// readSet reads the Rego files of fsys, but for tests and hidden directories.
func readSet(fsys fs.FS) (map[string]string, error) {
	out, size, seen := map[string]string{}, 0, 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > maxEntries {
			return fmt.Errorf("there are more than %d files and directories in it, too many for a set of rules", maxEntries)
		}
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
