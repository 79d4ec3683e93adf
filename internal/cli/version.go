package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/guest"
)

func (a *app) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the guest it expects in sandboxes",
		RunE: func(*cobra.Command, []string) error {
			digest, err := guest.Digest()
			if err != nil {
				digest = "none: " + err.Error()
			}
			v := struct {
				Version  string   `json:"version"`
				Go       string   `json:"go"`
				Platform string   `json:"platform"`
				Protocol int      `json:"guest_protocol"`
				Guest    string   `json:"guest_digest"`
				Backends []string `json:"backends"`
			}{a.version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, guest.Protocol, digest, estate.Kinds()}
			return a.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "sandboxio %s (%s, %s)\nguest protocol %d, %s\n", v.Version, v.Go, v.Platform, v.Protocol, v.Guest)
			})
		},
	}
	a.jsonFlag(c)
	return c
}
