package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
)

// span is a piece of a file that has data.
type span struct{ at, size int64 }

const (
	// worthwhile is how much in holes makes a sparse entry of a file.
	worthwhile = 64 << 10
	// maxStored is the most that a sparse entry's header can say; a file with
	// more data is sent with its holes as zeros.
	maxStored = 1<<33 - 1
)

// addSparse adds a file by its data alone, in the PAX format 1.0 of GNU tar,
// which package archive/tar reads and does not write.
func (w *Writer) addSparse(ctx context.Context, e Entry, f *os.File, data []span) error {
	stored := int64(0)
	if n := len(data); n == 0 || data[n-1].at+data[n-1].size < e.Size {
		data = append(data, span{e.Size, 0}) // GNU tar takes a file's size from its last piece
	}
	blocks := fmt.Appendf(nil, "%d\n", len(data))
	for _, s := range data {
		blocks = fmt.Appendf(blocks, "%d\n%d\n", s.at, s.size)
		stored += s.size
	}
	blocks = padded(blocks)
	stored += int64(len(blocks))
	if stored > maxStored {
		return w.addFile(ctx, e, f)
	}
	if err := w.tar.Flush(); err != nil {
		return err
	}
	records := []byte(pax("GNU.sparse.major", "1") + pax("GNU.sparse.minor", "0") + pax("GNU.sparse.name", e.Name) + pax("GNU.sparse.realsize", strconv.FormatInt(e.Size, 10)))
	base := path.Base(e.Name)
	base = "GNUSparseFile.0/" + base[:min(len(base), 80)]
	out := header(base, tar.TypeXHeader, 0o644, int64(len(records)), 0)
	out = append(out, padded(records)...)
	out = append(out, header(base, tar.TypeReg, int64(e.Mode.Perm()), stored, e.ModTime.Unix())...)
	if _, err := w.w.Write(append(out, blocks...)); err != nil {
		return err
	}
	for _, s := range data {
		if err := w.copy(ctx, w.w, e, io.NewSectionReader(f, s.at, s.size), s.size); err != nil {
			return err
		}
	}
	_, err := w.w.Write(make([]byte, -stored&511))
	return err
}

// header is a block of the ustar format.
func header(name string, flag byte, mode, size, mtime int64) []byte {
	if mtime < 0 || mtime > maxStored {
		mtime = 0
	}
	b := make([]byte, 512)
	copy(b, name)
	copy(b[100:], fmt.Sprintf("%07o\x00%07o\x00%07o\x00%011o\x00%011o\x00        ", mode, 0, 0, size, mtime))
	b[156] = flag
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// pax is a record of a PAX header: its length, which counts its own digits,
// the key and the value.
func pax(key, value string) string {
	rest := " " + key + "=" + value + "\n"
	n := len(rest)
	for n != len(rest)+len(strconv.Itoa(n)) {
		n = len(rest) + len(strconv.Itoa(n))
	}
	return strconv.Itoa(n) + rest
}

func padded(b []byte) []byte { return append(b, make([]byte, -len(b)&511)...) }

// copy copies size bytes that must be there.
func (w *Writer) copy(ctx context.Context, to io.Writer, e Entry, from io.Reader, size int64) error {
	if w.buf == nil {
		w.buf = make([]byte, 64<<10)
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{to}, io.LimitReader(reading{ctx, from}, size), w.buf)
	if err == nil && n < size || errors.Is(err, io.ErrUnexpectedEOF) {
		err = &Error{Err: fmt.Errorf("%s: %w", quote(e.Name), ErrShrank)}
	}
	return err
}
