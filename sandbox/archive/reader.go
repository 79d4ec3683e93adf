package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"strings"
)

// Reader takes an archive apart that anybody may have made. Its memory is
// bounded by Limits.Entries. It is for one goroutine.
type Reader struct {
	src    *source
	tar    *tar.Reader
	limits Limits
	report Report
	count  int // entries
	bytes  int64
	kinds  map[uint64]kind // by a hash of the name
	seed   maphash.Seed
	names  int  // bytes of all names
	again  bool // the name came before
	err    error
}

type kind uint8

const (
	kindFile kind = iota + 1
	kindDir
	kindOther
)

// NewReader reads from r.
func NewReader(r io.Reader, limits Limits) *Reader {
	limits = limits.resolved()
	src := &source{r: r, left: max(limits.Bytes, 0) + limits.overhead()}
	if src.left < 0 { // a limit near the largest number is none
		src.left = 1<<63 - 1
	}
	return &Reader{src: src, tar: tar.NewReader(src), limits: limits, kinds: map[uint64]kind{}, seed: maphash.MakeSeed()}
}

// Next gives the next directory or regular file, and leaves out everything
// else. At the end of a whole archive it returns io.EOF, having read the
// stream to its own end.
func (r *Reader) Next() (Entry, error) {
	for r.err == nil {
		var e Entry
		var ok bool
		if e, ok, r.err = r.next(); ok && r.err == nil {
			return e, nil
		}
	}
	return Entry{}, r.err
}

// Read reads the content of the file that Next gave.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.tar.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.malformed(err)
	}
	return n, err
}

// Report is about what Next gave so far.
func (r *Reader) Report() Report { return r.report }

// next reads one entry; ok is false for one that is left out.
func (r *Reader) next() (e Entry, ok bool, err error) {
	h, err := r.tar.Next()
	if errors.Is(err, io.EOF) {
		return e, false, r.end()
	}
	if err != nil {
		return e, false, r.malformed(err)
	}
	if r.count++; r.count > r.limits.Entries {
		return e, false, exceeded("entries", "entries", int64(r.limits.Entries))
	}
	if h.Size > r.limits.Bytes-r.bytes { // of what is left out too: it is sent all the same
		return e, false, exceeded("bytes", "bytes", r.limits.Bytes)
	}
	r.bytes += h.Size
	if h.Typeflag == tar.TypeXGlobalHeader {
		return e, false, nil
	}
	name, err := r.name(h)
	if err != nil || name == "" {
		return e, false, err
	}
	e = Entry{Name: name, Mode: fs.FileMode(h.Mode & 0o777), Size: h.Size, ModTime: h.ModTime}
	k := kindFile
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		e.Sparse = h.Typeflag == tar.TypeGNUSparse || sparse(h)
		r.report.Files++
		r.report.Bytes += h.Size
	case tar.TypeDir:
		k = kindDir
		e.Mode |= fs.ModeDir
		e.Size = 0
		r.report.Dirs++
	default:
		k = kindOther
		r.report.leaveOut(name, strange(h.Typeflag))
	}
	return e, k != kindOther, r.note(name, k)
}

// name checks an entry's name. "" is the directory itself.
func (r *Reader) name(h *tar.Header) (string, error) {
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
		if name == "." {
			return "", nil
		}
	}
	name = strings.TrimPrefix(name, "./")
	if err := CheckName(name); err != nil {
		return "", err
	}
	if len(name) > r.limits.Name {
		return "", exceeded("name", "bytes in a name", int64(r.limits.Name))
	}
	if strings.Count(name, "/") >= r.limits.Depth {
		return "", exceeded("depth", "levels", int64(r.limits.Depth))
	}
	return name, nil
}

// CheckName refuses what is not the name of something in a directory:
// absolute names, "." and ".." anywhere, empty parts, NUL bytes, and parts of
// more than 255 bytes.
func CheckName(name string) error {
	if strings.IndexByte(name, 0) >= 0 {
		return refused(name, "contains a NUL byte")
	}
	if strings.HasPrefix(name, "/") {
		return refused(name, "is absolute")
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return refused(name, "leads out of the directory")
		case part == "" || part == ".":
			return refused(name, "has an empty part")
		case len(part) > maxPart:
			return refused(name, fmt.Sprintf("has a part of more than %d bytes", maxPart))
		}
	}
	return nil
}

// note refuses a name that was something else before.
func (r *Reader) note(name string, k kind) error {
	if r.names += len(name); r.names > maxNames {
		return exceeded("name", "bytes in all names together", maxNames)
	}
	key := maphash.String(r.seed, name)
	old := r.kinds[key]
	if r.again = old == k; old != 0 && old != k {
		return refused(name, "comes twice, as different kinds of thing")
	}
	r.kinds[key] = k
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name, '/') {
		name = name[:i]
		key := maphash.String(r.seed, name)
		switch r.kinds[key] {
		case kindDir:
			return nil // and so are those it is in
		case 0: // it is made, so it counts
			if r.count++; r.count > r.limits.Entries {
				return exceeded("entries", "entries", int64(r.limits.Entries))
			}
			r.kinds[key] = kindDir
		default:
			return refused(name, "is in the way of what should be in it")
		}
	}
	return nil
}

// end makes sure that the archive had its end, and that nothing comes after.
func (r *Reader) end() error {
	if r.src.ended {
		return r.malformed(io.ErrUnexpectedEOF)
	}
	// tar pads an archive with zeros to a multiple of what it likes.
	if n, err := io.Copy(io.Discard, io.LimitReader(r.src, maxPadding+1)); err != nil {
		return r.malformed(err)
	} else if n > maxPadding {
		return refused("archive", "goes on after its end")
	}
	return io.EOF
}

const (
	maxPadding = 1 << 20
	maxNames   = 64 << 20
)

// malformed puts an error of the parser's into our words; those of the stream
// stay what they are.
func (r *Reader) malformed(err error) error {
	if r.src.err != nil {
		return r.src.err
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Err: fmt.Errorf("the archive is cut off: %w", err)}
	}
	return &Error{Err: fmt.Errorf("this is no tar archive that can be read: %w", err)}
}

func sparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// source remembers how the stream ended, which the parser hides, and bounds
// it.
type source struct {
	r     io.Reader
	left  int64
	ended bool
	err   error // other than io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		s.err = &Error{Limit: "bytes", Err: errors.New("the archive is far longer than its files may be")}
		return 0, s.err
	}
	n, err := s.r.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		s.ended = s.ended || n == 0
	case errors.Is(err, io.ErrUnexpectedEOF):
		s.ended = true
	default:
		s.err = err
	}
	return n, err
}
