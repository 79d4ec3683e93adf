package pid1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
)

// maxDepth bounds how deep directories are packed and unpacked: one
// descriptor is open for each level.
const maxDepth = 256

// Reading, and never waiting: not for a FIFO's writer, not for a terminal.
const openRead = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// pack sends a directory as a tar stream.
func pack(name string, w *bufio.Writer) error {
	at, err := directory(name)
	if err != nil {
		return err
	}
	fd, err := unix.Openat(at, ".", openRead|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(reply(w), w.Flush()); err != nil {
		return err
	}
	p := packer{archive.NewWriter(framed{w})}
	err = p.dir(fd, "", 0)
	if err == nil {
		err = p.out.Close()
	}
	return last(w, err)
}

// packer goes down by descriptors: what the workload moves, or replaces by a
// link or a FIFO, meanwhile is seen for what it is.
type packer struct{ out *archive.Writer }

// dir packs what is in the directory fd, which it closes.
func (p packer) dir(fd int, prefix string, depth int) error {
	f := os.NewFile(uintptr(fd), prefix)
	defer func() { _ = f.Close() }()
	if depth >= maxDepth {
		return &wire.Failure{Code: "exhausted", Text: shown(prefix) + " is more than " + strconv.Itoa(maxDepth) + " levels deep"}
	}
	for {
		names, err := f.Readdirnames(listBatch)
		for _, n := range names {
			if err := p.entry(fd, n, prefix+n, depth); err != nil {
				return at(prefix+n, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return at(prefix, err)
		}
	}
}

// errChanged says that a name is something else than it was just now.
var errChanged = errors.New("its kind has changed")

// entry packs one name. It begins anew when the name changes its kind
// meanwhile, and gives up on one that does nothing else.
func (p packer) entry(dir int, base, name string, depth int) error {
	for range 100 {
		var st unix.Stat_t
		err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			switch st.Mode & unix.S_IFMT {
			case unix.S_IFDIR:
				err = p.sub(dir, base, name, depth)
			case unix.S_IFREG:
				err = p.file(dir, base, name)
			default:
				err = p.strange(dir, base, name, &st)
			}
		}
		if errors.Is(err, unix.ENOENT) { // it vanished, or a link did
			return nil
		}
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return &wire.Failure{Code: "conflict", Text: shown(name) + ": it changes its kind all the time", Hint: "stop the program that changes it"}
}

// open opens base if it still is of that kind.
func (p packer) open(dir int, base string, kind uint32, flags int) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := unix.Openat(dir, base, openRead|flags, 0)
	switch err {
	case nil:
	case unix.ELOOP, unix.ENOTDIR, unix.ENXIO: // a link, no directory any more, a socket
		return -1, st, errChanged
	default:
		return -1, st, err
	}
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != kind {
		err = errChanged
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, st, err
}

func (p packer) sub(dir int, base, name string, depth int) error {
	fd, st, err := p.open(dir, base, unix.S_IFDIR, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	err = refuse(fd)
	if err == nil {
		err = p.out.Add(entryOf(name, &st, ""), nil)
	}
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	return p.dir(fd, name+"/", depth+1)
}

func (p packer) file(dir int, base, name string) error {
	fd, st, err := p.open(dir, base, unix.S_IFREG, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	return p.out.Add(entryOf(name, &st, ""), f)
}

// strange tells of what is not carried.
func (p packer) strange(dir int, base, name string, st *unix.Stat_t) error {
	link := ""
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		var ok bool
		if link, ok = linkAt(dir, base); !ok {
			return errChanged
		}
	}
	return p.out.Add(entryOf(name, st, link), nil)
}

func entryOf(name string, st *unix.Stat_t, link string) archive.Entry {
	i := infoOf(name, st, link)
	return archive.Entry{Name: name, Mode: fs.FileMode(i.Mode), Size: st.Size, ModTime: time.Unix(st.Mtim.Sec, 0), Link: link}
}

// unpack receives a tar stream into a directory.
func unpack(name string, r io.Reader, w *bufio.Writer) error {
	to := newWalker()
	to.make = func(dir int, part string) error { return unix.Mkdirat(dir, part, 0o755) }
	if err := to.to(name); errors.Is(err, unix.ENOTDIR) {
		return unix.EEXIST // in the way is something else
	} else if err != nil {
		return err
	}
	here, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(to.dir))
	if err != nil {
		return err
	}
	// From inside, so that no path is walked anew.
	if err := unix.Fchdir(to.dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := errors.Join(reply(w), w.Flush()); err != nil {
		return err
	}
	report, err := archive.Extract(context.Background(), content{wire.NewFrames(r)}, root, archive.Options{
		Limits: archive.Limits{Bytes: 1 << 62, Entries: 1 << 20, Depth: maxDepth},
		// No link is followed below the directory, and no workload can
		// mount: a name tells where it is.
		Refuse: func(name string) error { return refuseName(strings.TrimSuffix(here, "/") + "/" + name) },
	})
	if err != nil {
		return at("", err)
	}
	if report.LeftOutCount > 0 {
		return &wire.Failure{Code: "invalid", Text: "only directories and files are unpacked; " + strconv.Itoa(report.LeftOutCount) + " things were left out, " +
			report.LeftOut[0].String() + " first", Hint: "leave them out of the archive"}
	}
	return reply(w)
}

// at puts an error, and the name that it is about, into words for the host.
func at(name string, err error) error {
	var bad *archive.Error
	var f *wire.Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &bad):
		f = &wire.Failure{Code: "invalid", Text: bad.Error()}
		if bad.Limit != "" {
			f.Code = "exhausted"
		}
		if errors.Is(err, archive.ErrShrank) {
			f.Code, f.Hint = "conflict", "stop the program that writes it"
		}
		return f
	}
	f = failure(err, "", "")
	f.Text = err.Error()
	switch {
	case errors.Is(err, fs.ErrExist):
		f.Code, f.Kind = "conflict", wire.KindExist
	case errors.Is(err, archive.ErrChanged):
		f.Code, f.Hint = "conflict", "stop the program that changes it"
	}
	if name != "" {
		f.Text = shown(name) + ": " + f.Text
	}
	return f
}

func shown(name string) string { return strconv.QuoteToASCII(name) }
