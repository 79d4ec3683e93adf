//go:build !linux

package daemon

import (
	"fmt"
	"os"
)

// Main says that gateways run on Linux.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "sandboxio-gateway runs on Linux")
	return 1
}
