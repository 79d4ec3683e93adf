package plan

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// readArchive reads the configuration that a binary plan file carries. Nothing
// is written anywhere, and names are used for nothing but telling places. What
// cannot be read has no places; only an archive that goes past the limits, or
// is none, is an error.
func readArchive(r io.ReaderAt, size int64, shown string) (s *Source, tofu bool, err error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, false, err
	}
	if len(z.File) > maxConfigFiles {
		return nil, false, fmt.Errorf("more than %d files", maxConfigFiles)
	}
	left := int64(maxConfigBytes)
	read := func(f *zip.File) ([]byte, error) {
		rc, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer rc.Close()
		text, err := io.ReadAll(io.LimitReader(rc, left+1)) // never mind what its header says
		left -= int64(len(text))
		if left < 0 {
			return nil, errBomb
		}
		return text, err
	}
	s = &Source{modules: map[string]*files{}}
	dirs := map[string]string{}
	hasPlan := false
	for _, f := range z.File {
		rest, ok := strings.CutPrefix(f.Name, "tfconfig/")
		switch {
		case f.Name == "tfplan":
			hasPlan = true
		case f.Name == ".terraform.lock.hcl":
			text, err := read(f)
			if errors.Is(err, errBomb) {
				return nil, false, err
			}
			tofu = strings.Contains(string(text), `"registry.opentofu.org/`)
		case !ok:
		case rest == "modules.json":
			text, err := read(f)
			if errors.Is(err, errBomb) {
				return nil, false, err
			}
			var list []struct{ Key, Dir string }
			if json.Unmarshal(text, &list) == nil {
				for _, m := range list {
					dirs[m.Key] = m.Dir
				}
			}
		default:
			folder, name, ok := strings.Cut(rest, "/")
			key, isModule := strings.CutPrefix(folder, "m-")
			if !ok || !isModule || strings.ContainsAny(name, `/\`) || !isConfiguration(name) {
				continue
			}
			text, err := read(f)
			if errors.Is(err, errBomb) {
				return nil, false, err
			}
			if err != nil {
				continue
			}
			if s.modules[key] == nil {
				s.modules[key] = &files{text: map[string][]byte{}}
			}
			s.modules[key].text[name] = text
		}
	}
	if !hasPlan {
		return nil, false, errors.New("an archive, but not a plan file: it holds no tfplan")
	}
	for key, m := range s.modules {
		dir, ok := dirs[key]
		if !ok && key != "" {
			dir = key
		}
		m.dir = path.Join(shown, dir)
	}
	return s, tofu, nil
}

var errBomb = fmt.Errorf("the plan file unpacks to more than %d MiB of configuration", maxConfigBytes>>20)
