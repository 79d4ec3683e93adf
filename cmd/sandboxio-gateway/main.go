// Command sandboxio-gateway is the way out of a sandbox that has an allowlist.
// See package daemon.
package main

import (
	"os"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress/gateway/daemon"
)

func main() { os.Exit(daemon.Main(os.Args[1:])) }
