//go:build !linux && !darwin && !windows

package audit

import (
	"errors"
	"os"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

func lock(*os.File) error {
	return &sandbox.Error{Code: sandbox.CodeUnsupported, Op: "audit", Err: errors.New("files cannot be locked on this system"), Hint: "use sandbox.LogSink"}
}

func syncDir(string) error { return nil }
