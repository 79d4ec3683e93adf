package policy

import (
	"context"
	"sync"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

var preview = sync.OnceValues(func() (*Engine, error) { return assemble(nil, false, Options{}) })

// Preview judges by the built-in rules with their own parameters, whatever the
// environment says: the same input has the same answer everywhere. It is for
// those who must not read anything, as a function of Terraform's; it decides
// nothing, and there is no Guard of it.
func Preview(ctx context.Context, in Input) (sandbox.Verdict, error) {
	e, err := preview()
	if err != nil {
		return sandbox.Verdict{Decision: sandbox.Failed}, err
	}
	return e.Judge(ctx, in)
}
