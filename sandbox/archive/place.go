package archive

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// TempName is a name for what is not whole yet. Whoever is killed with such a
// file half written leaves it behind.
func TempName() string { return ".sandboxio-" + rand.Text() }

// dirMode is for a directory that the archive says no more of. Until the end
// all are their owner's alone.
const dirMode = 0o755

// place stands somewhere in the directory, with every directory on the way
// open: each was seen to be one, and no link, from inside the one above.
type place struct {
	root  *os.Root
	parts []string
	dirs  []*os.Root
	made  map[string]fs.FileMode // the directories that were made, with the modes they are to have
}

// enter goes to the directory name, "." for the root, and makes what is
// missing on the way.
func (p *place) enter(name string) (*os.Root, error) {
	var parts []string
	if name != "." {
		parts = strings.Split(name, "/")
	}
	same := 0
	for same < len(parts) && same < len(p.parts) && parts[same] == p.parts[same] {
		same++
	}
	if err := p.leave(same); err != nil {
		return nil, err
	}
	for i, part := range parts[same:] {
		dir, made, err := step(p.here(), part)
		if err != nil {
			return nil, about(strings.Join(parts[:same+i+1], "/"), err)
		}
		if made {
			p.made[strings.Join(parts[:same+i+1], "/")] = dirMode
		}
		p.parts, p.dirs = append(p.parts, part), append(p.dirs, dir)
	}
	return p.here(), nil
}

func (p *place) here() *os.Root {
	if len(p.dirs) == 0 {
		return p.root
	}
	return p.dirs[len(p.dirs)-1]
}

// leave goes up until depth directories are open.
func (p *place) leave(depth int) error {
	var errs []error
	for i := len(p.dirs) - 1; i >= depth; i-- {
		errs = append(errs, p.dirs[i].Close())
	}
	p.parts, p.dirs = p.parts[:min(depth, len(p.parts))], p.dirs[:min(depth, len(p.dirs))]
	return errors.Join(errs...)
}

// ErrChanged is what Extract says of a directory that somebody replaces
// meanwhile.
var ErrChanged = errors.New("somebody replaces it meanwhile")

// step opens one directory in at, having made it if it is missing.
func step(at *os.Root, name string) (*os.Root, bool, error) {
	err := at.Mkdir(name, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, false, err
	}
	made := err == nil
	// OpenRoot would follow a link, and somebody may be putting one there
	// just now: what was opened must be what was seen.
	seen, err := at.Lstat(name)
	if err != nil {
		return nil, false, err
	}
	if !seen.IsDir() {
		return nil, false, fmt.Errorf("it exists and is no directory: %w", fs.ErrExist)
	}
	// With the dot it is opened as a directory or not at all; a FIFO would
	// keep us waiting.
	dir, err := at.OpenRoot(name + "/.")
	if err != nil && strings.HasSuffix(err.Error(), "path escapes from parent") {
		err = ErrChanged // into a link that leads out; package os has no name for the error
	}
	if err != nil {
		return nil, false, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = ErrChanged
	}
	if err != nil {
		return nil, false, errors.Join(err, dir.Close())
	}
	return dir, made, nil
}

// chmod sets a directory's mode, by its descriptor.
func chmod(dir *os.Root, mode fs.FileMode) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(mode), f.Close())
}
