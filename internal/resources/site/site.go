// Package site is what a resource gets from the configured provider: backends,
// runtimes and the policy, through the estate.
//
// A provider whose configuration is not known yet has a Site too, one that
// knows nothing: plans go on without it, and whoever needs a backend gets an
// error that says so.
package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/policy"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Owner marks what Terraform made, in the native label of that name.
const Owner = "terraform"

// grace bounds a teardown. Nobody waits at a prompt for it, so it is longer
// than a program's.
const grace = 30 * time.Second

// Estate is what a configuration amounts to, as package estate makes it.
type Estate interface {
	Default() string
	Names() []string
	Policy() *policy.Engine
	Backend(ctx context.Context, name string) (driver.Backend, error)
	Runtime(ctx context.Context, name string, opts sandbox.Options) (*sandbox.Runtime, error)
}

// Site is the provider's data. A nil one is a provider not configured yet.
type Site struct{ estate Estate }

// New makes a Site; a nil estate is a configuration not known yet.
func New(e Estate) *Site { return &Site{e} }

// Of takes the Site out of what Configure is given, which is nil before the
// provider is configured.
func Of(data any, diags *diag.Diagnostics) *Site {
	if data == nil {
		return nil
	}
	s, ok := data.(*Site)
	if !ok {
		diags.AddError("Unexpected provider data", fmt.Sprintf("got %T. This is a bug in the provider, please report it.", data))
	}
	return s
}

// Known reports whether the provider's configuration is known.
func (s *Site) Known() bool { return s != nil && s.estate != nil }

// Name resolves a backend attribute: null in the configuration means the
// provider's default, which is what the state says while that is not known.
func (s *Site) Name(config, plan types.String) types.String {
	switch {
	case !config.IsNull():
		return config
	case !s.Known():
		return plan
	}
	return types.StringValue(s.estate.Default())
}

// Names lists the configured backends, sorted.
func (s *Site) Names() []string { return s.estate.Names() }

// Policy is the judge.
func (s *Site) Policy() *policy.Engine { return s.estate.Policy() }

// Open gives the backend of that name without connecting to it.
func (s *Site) Open(ctx context.Context, name string) (driver.Backend, error) {
	if !s.Known() {
		return nil, errUnknown
	}
	return s.estate.Backend(ctx, name)
}

// Runtime makes a Runtime on the backend of that name, guarded by the policy.
func (s *Site) Runtime(ctx context.Context, name string) (*sandbox.Runtime, error) {
	if !s.Known() {
		return nil, errUnknown
	}
	return s.estate.Runtime(ctx, name, sandbox.Options{Owner: Owner, Grace: grace})
}

var errUnknown = &driver.Error{
	Code: driver.CodeInvalid, Field: "backend",
	Err:  errors.New("the provider's configuration is not known yet, so there is no backend to ask"),
	Hint: "apply what the provider block refers to first, with -target",
}
