//go:build !linux

package pid1

import (
	"fmt"
	"os"
)

// Main says that a sandbox's inside is Linux.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "sandboxio-guest runs inside Linux sandboxes only")
	return 1
}
