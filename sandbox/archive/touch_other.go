//go:build !linux && !darwin

package archive

import (
	"os"
	"time"
)

// touch sets a file's modification time. A time that the system does not have
// is not kept.
func touch(root *os.Root, name string, _ *os.File, t time.Time) error {
	if t.Unix() <= 0 || t.Year() > 2200 {
		return nil
	}
	return root.Chtimes(name, t, t)
}
