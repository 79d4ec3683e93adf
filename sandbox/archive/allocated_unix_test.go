//go:build unix

package archive_test

import (
	"io/fs"
	"syscall"
)

// allocated is what a file takes on the disk.
func allocated(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return st.Blocks * 512
}
