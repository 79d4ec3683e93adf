package pid1

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/wire"
)

// fileHelper performs one operation on files, as the workload: it reads a request and
// what follows it from in, and answers on out.
func fileHelper(in io.Reader, out io.Writer) error {
	// The workload has the same uid; what we hold is not for it to take.
	if err := undumpable(); err != nil {
		return err
	}
	unix.Umask(0)
	// A file over the disk's size is an error to answer with, not a death.
	signal.Ignore(unix.SIGXFSZ)
	r, w := bufio.NewReaderSize(in, wire.MaxFrame), bufio.NewWriterSize(out, wire.MaxFrame)
	var m wire.FileRequest
	if err := wire.Read(r, &m); err != nil {
		return err
	}
	err := operate(&m, r, w)
	if err != nil {
		err = wire.Write(w, &wire.FileReply{Failure: *failureOf(err)})
	}
	return errors.Join(err, w.Flush())
}

func failureOf(err error) *wire.Failure {
	if f, ok := errors.AsType[*wire.Failure](err); ok {
		return f
	}
	return failure(err, "", "")
}

func reply(w io.Writer, infos ...wire.FileInfo) error {
	return wire.Write(w, &wire.FileReply{Infos: infos})
}

func operate(m *wire.FileRequest, r *bufio.Reader, w *bufio.Writer) error {
	switch m.Op { //nolint:exhaustive // those whose whole name is a directory's
	case wire.FileList:
		return list(m.Name, w)
	case wire.FileMkdir:
		if err := mkdir(m.Name, m.Mode); err != nil {
			return err
		}
		return reply(w)
	case wire.FilePack:
		return pack(m.Name, w)
	case wire.FileUnpack:
		return unpack(m.Name, r, w)
	}
	dir, base, err := parent(m.Name, m.Op == wire.FileOpen)
	if err != nil {
		return err
	}
	switch m.Op {
	case wire.FileOpen:
		return open(dir, base, w)
	case wire.FileCreate:
		return create(dir, base, m.Mode, r, w)
	case wire.FileStat:
		info, err := stat(dir, base)
		if err != nil {
			return err
		}
		return reply(w, info)
	case wire.FileRemove:
		err = remove(dir, base, m.Recursive)
	case wire.FileRename:
		var to int
		var toBase string
		if to, toBase, err = parent(m.To, false); err == nil {
			if base == "." || toBase == "." {
				return unix.EINVAL
			}
			err = unix.Renameat(dir, base, to, toBase)
		}
	default:
		return unix.EINVAL
	}
	if err != nil {
		return err
	}
	return reply(w)
}

// open sends a regular file. Non-blocking, so that a FIFO in its place keeps
// nobody waiting.
func open(dir int, base string, w *bufio.Writer) error {
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return &wire.Failure{Code: "invalid", Text: "not a regular file", Hint: "read it with a program in the sandbox"}
	}
	if err := reply(w, infoOf(base, &st, "")); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	_, err = io.CopyBuffer(framed{w}, struct{ io.Reader }{f}, make([]byte, wire.MaxFrame))
	return last(w, err)
}

// create receives a file beside its name and gives it the name at the end.
func create(dir int, base string, mode uint32, r io.Reader, w *bufio.Writer) error {
	if base == "." {
		return unix.EISDIR
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	tmp := ".sandboxio-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	fd, err := unix.Openat(dir, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	named := false
	defer func() {
		_ = f.Close()
		if !named {
			_ = unix.Unlinkat(dir, tmp, 0)
		}
	}()
	if err := errors.Join(reply(w), w.Flush()); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{f}, content{wire.NewFrames(r)}, make([]byte, wire.MaxFrame)); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, mode&0o777); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := unix.Renameat(dir, tmp, dir, base); err != nil {
		return err
	}
	named = true
	return reply(w)
}

func stat(dir int, base string) (wire.FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return wire.FileInfo{}, err
	}
	link := ""
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		link, _ = linkAt(dir, base)
	}
	return infoOf(base, &st, link), nil
}

// linkAt reads a symbolic link, if base is one.
func linkAt(dir int, base string) (string, bool) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, base, buf)
	if err != nil {
		return "", false
	}
	return string(buf[:n]), true
}

func infoOf(base string, st *unix.Stat_t, link string) wire.FileInfo {
	mode := fs.FileMode(st.Mode & 0o777)
	for _, bit := range []struct {
		kernel uint32
		mode   fs.FileMode
	}{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}} {
		if st.Mode&bit.kernel != 0 {
			mode |= bit.mode
		}
	}
	mode |= map[uint32]fs.FileMode{
		unix.S_IFDIR: fs.ModeDir, unix.S_IFLNK: fs.ModeSymlink, unix.S_IFIFO: fs.ModeNamedPipe, unix.S_IFSOCK: fs.ModeSocket,
		unix.S_IFCHR: fs.ModeDevice | fs.ModeCharDevice, unix.S_IFBLK: fs.ModeDevice,
	}[st.Mode&unix.S_IFMT]
	return wire.FileInfo{Name: base, Size: st.Size, Mode: uint32(mode), ModTime: st.Mtim.Nano(), Link: link}
}

// One reply of a listing has at most so many entries, and bytes of names;
// there may be one more of those than it says.
const (
	listBatch = 256
	listBytes = 64 << 10
)

func list(name string, w *bufio.Writer) error {
	fd, err := directory(name)
	if err != nil {
		return err
	}
	// The walk's descriptor is for paths only; this one reads.
	read, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(read), name)
	for {
		names, err := f.Readdirnames(listBatch)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(names) == 0 {
			return reply(w)
		}
		var infos []wire.FileInfo
		bytes := 0
		for i, n := range names {
			if info, err := stat(fd, n); err == nil { // else gone in the meantime
				infos = append(infos, info)
				bytes += len(info.Name) + len(info.Link)
			}
			if len(infos) > 0 && (bytes > listBytes || i == len(names)-1) {
				if err := reply(w, infos...); err != nil {
					return err
				}
				infos, bytes = nil, 0
			}
		}
	}
}

// remove does not follow links, at any depth.
func remove(dir int, base string, recursive bool) error {
	if base == "." {
		return unix.EINVAL
	}
	err := unix.Unlinkat(dir, base, 0)
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	if err = unix.Unlinkat(dir, base, unix.AT_REMOVEDIR); !recursive || err != unix.ENOTEMPTY && !errors.Is(err, unix.EEXIST) {
		return err
	}
	// From inside the parent, so that no path is walked anew; os.RemoveAll
	// goes down by descriptors.
	if err := unix.Fchdir(dir); err != nil {
		return err
	}
	return os.RemoveAll("./" + path.Base(base))
}
