// Command sandboxio-probe is what sandboxio egress prove runs in sandboxes and
// in canaries. Nobody else has a use for it.
package main

import (
	"os"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/probe"
)

func main() { os.Exit(probe.Main(os.Args[1:])) }
