package pid1

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// maxLinks bounds the symbolic links of one walk, as the kernel does.
const maxLinks = 40

const openDir = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// forbidden are the places that this program never enters for the host:
// the kernel's, where links lead anywhere and reading has effects, devices,
// and the guest's own.
var forbidden = []string{"/proc", "/sys", "/dev", "/.sandboxio"}

// walker resolves a name step by step, each from the descriptor of the last:
// what the workload moves meanwhile cannot lead astray, and every link is
// seen. It works the same with and without openat2.
type walker struct {
	dir   int // where it stands
	links int
	make  func(dir int, name string) error // for what is missing; nil refuses
}

// refuse tells whether dir is a forbidden place, by the kernel's own name for
// it. A workload cannot mount, so that no such place has another name.
func refuse(dir int) error {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return err
	}
	return refuseName(name)
}

func refuseName(name string) error {
	for _, f := range forbidden {
		if name == f || strings.HasPrefix(name, f+"/") {
			return &wire.Failure{Code: "denied", Kind: wire.KindPermission, Text: f + " is not for file operations", Hint: "use a program in the sandbox"}
		}
	}
	return nil
}

// to goes to the directory name, from where it stands if name is relative.
func (w *walker) to(name string) error {
	if strings.HasPrefix(name, "/") {
		if err := w.step("/"); err != nil {
			return err
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." {
			continue
		}
		err := w.step(part)
		if err == nil {
			continue
		}
		switch errnoOf(err) {
		case unix.ENOENT:
			if w.make == nil {
				return err
			}
			if err := w.make(w.dir, part); err != nil && !errors.Is(err, unix.EEXIST) {
				return err
			}
			if err := w.step(part); err != nil {
				return err
			}
		case unix.ENOTDIR, unix.ELOOP: // a link, or no directory
			link, ok := linkAt(w.dir, part)
			if !ok {
				return unix.ENOTDIR
			}
			if w.links++; w.links > maxLinks {
				return unix.ELOOP
			}
			if err := w.to(link); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// step enters one directory.
func (w *walker) step(part string) error {
	fd, err := unix.Openat(w.dir, part, openDir, 0)
	if err != nil {
		return err
	}
	if err := refuse(fd); err != nil {
		_ = unix.Close(fd)
		return err
	}
	_ = unix.Close(w.dir)
	w.dir = fd
	return nil
}

func newWalker() *walker { return &walker{dir: -1} }

// directory opens a directory, following links.
func directory(name string) (int, error) {
	w := newWalker()
	err := w.to(name)
	return w.dir, err
}

// parent opens the directory that name is in, and gives the name there, "."
// for the root. If follow is set and that is a link, it is followed to where
// it leads at last.
func parent(name string, follow bool) (int, string, error) {
	w := newWalker()
	for {
		name = strings.TrimRight(name, "/")
		dir, base := ".", name
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			dir, base = name[:i+1], name[i+1:]
		}
		if name == "" {
			dir, base = "/", "."
		}
		if err := w.to(dir); err != nil {
			return -1, "", err
		}
		if base == ".." {
			if err := w.to(".."); err != nil {
				return -1, "", err
			}
			base = "."
		}
		here, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(w.dir))
		if err != nil {
			return -1, "", err
		}
		if err := refuseName(strings.TrimSuffix(here, "/") + "/" + base); err != nil {
			return -1, "", err
		}
		if !follow {
			return w.dir, base, nil
		}
		link, ok := linkAt(w.dir, base)
		if !ok {
			return w.dir, base, nil
		}
		if w.links++; w.links > maxLinks {
			return -1, "", unix.ELOOP
		}
		name = link
	}
}

// mkdir makes a directory with its parents.
func mkdir(name string, mode uint32) error {
	w := newWalker()
	w.make = func(dir int, part string) error { return unix.Mkdirat(dir, part, mode&0o777) }
	err := w.to(name)
	if errors.Is(err, unix.ENOTDIR) {
		return unix.EEXIST // in the way is something else
	}
	return err
}
