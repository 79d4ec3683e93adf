package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/provider"
)

func main() {
	if err := dump(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func dump(ctx context.Context, to *os.File) error {
	server := providerserver.NewProtocol6(provider.New(provider.Options{Version: "docs"}))()
	s, err := schemas(ctx, server)
	if err != nil {
		return err
	}
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return errors.Join(e.Encode(s), to.Sync())
}
