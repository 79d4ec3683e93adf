// Package examples holds the configurations that sandboxio demo runs, so that
// an installed command has them with it.
package examples

import "embed"

// Files are the quickstart, which is applied, and the insecure one, which is
// denied.
//
//go:embed quickstart insecure
var Files embed.FS
