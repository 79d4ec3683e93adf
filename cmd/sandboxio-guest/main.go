// Command sandboxio-guest is PID 1 in every sandbox that sandboxio makes
// itself. See package pid1.
package main

import (
	"os"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest/pid1"
)

func main() { os.Exit(pid1.Main(os.Args[1:])) }
