// Command terraform-provider-sandboxio is the Terraform provider.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	sandboxio "github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger, and print how Terraform reaches this process")
	flag.Parse()
	if !*debug { // then it is not Terraform that reads what this process says
		if err := sandboxio.Quiet(); err != nil {
			log.Fatal(err)
		}
	}
	err := providerserver.Serve(context.Background(), func() provider.Provider { return sandboxio.New(sandboxio.Options{Version: version}) },
		providerserver.ServeOpts{Address: sandboxio.Address, Debug: *debug, ProtocolVersion: 6})
	if err != nil {
		log.Fatal(err)
	}
}
