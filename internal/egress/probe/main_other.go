//go:build !linux

package probe

import (
	"fmt"
	"os"
)

// Main is for Linux, where sandboxes are.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "sandboxio-probe runs on linux only")
	return 1
}
