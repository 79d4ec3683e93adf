package archive

import (
	"archive/tar"
	"io/fs"
	"time"
)

// Entry is one thing in a directory.
type Entry struct {
	Name    string      // relative to the directory, slash-separated, without "." and ".."
	Mode    fs.FileMode // type and permission bits
	Size    int64       // bytes of a regular file, holes counted
	ModTime time.Time   // to the second
	Link    string      // target of a symbolic link
	Sparse  bool        // has holes, which read as zeros
}

// typeflag gives tar's word for a kind of thing. tar has none for a socket,
// which is told of as a FIFO.
func typeflag(mode fs.FileMode) byte {
	switch {
	case mode.IsRegular():
		return tar.TypeReg
	case mode.IsDir():
		return tar.TypeDir
	case mode&fs.ModeSymlink != 0:
		return tar.TypeSymlink
	case mode&fs.ModeCharDevice != 0:
		return tar.TypeChar
	case mode&fs.ModeDevice != 0:
		return tar.TypeBlock
	}
	return tar.TypeFifo
}

// strange names what is neither a directory nor a regular file.
func strange(flag byte) string {
	switch flag {
	case tar.TypeSymlink:
		return "symbolic link"
	case tar.TypeLink:
		return "hard link"
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	case tar.TypeFifo:
		return "FIFO or socket"
	}
	return "unknown kind"
}
