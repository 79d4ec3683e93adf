package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/estate"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/backend"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/egress"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/networkpolicy"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/policyfindings"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/reaperschedule"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/site"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/template"
	"github.com/sandboxio/terraform-provider-sandboxio/policy"
)

// Address is where the registry has it.
const Address = "registry.terraform.io/sandboxio/sandboxio"

// Options are for who serves the provider. The zero value is the real thing.
type Options struct {
	Version string
	// Open makes the estate of a configuration; nil is estate.Open. Tests put
	// faults between the provider and its backends with it.
	Open func(context.Context, estate.Config) (site.Estate, error)
}

// New makes the provider.
func New(opts Options) provider.Provider {
	if opts.Open == nil {
		opts.Open = func(ctx context.Context, c estate.Config) (site.Estate, error) {
			e, err := estate.Open(ctx, c)
			if err != nil {
				return nil, err
			}
			return e, nil
		}
	}
	return &sandboxioProvider{opts}
}

type sandboxioProvider struct{ opts Options }

var (
	_ provider.ProviderWithValidateConfig = (*sandboxioProvider)(nil)
	_ provider.ProviderWithFunctions      = (*sandboxioProvider)(nil)
)

func (p *sandboxioProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "sandboxio", p.opts.Version
}

// ValidateConfig compiles the policy, so that a rule that does not compile is
// found by terraform validate.
func (p *sandboxioProvider) ValidateConfig(ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	c, known := m.expand(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !known {
		return
	}
	if _, err := policy.Load(ctx, c.Policy); err != nil {
		m.report(&resp.Diagnostics, "The policy cannot be loaded", err)
	}
}

// Configure opens the estate, which connects to nothing.
func (p *sandboxioProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	c, known := m.expand(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	s := site.New(nil)
	if known {
		e, err := p.opts.Open(ctx, c)
		if err != nil {
			m.report(&resp.Diagnostics, "The provider cannot be configured", err)
			return
		}
		s = site.New(e)
	}
	resp.ResourceData, resp.DataSourceData = s, s
}

func (p *sandboxioProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{template.NewResource, networkpolicy.NewResource, reaperschedule.NewResource, sandbox.NewResource}
}

func (p *sandboxioProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{backend.NewDataSource, policyfindings.NewDataSource}
}

func (p *sandboxioProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{policyfindings.NewFunction, egress.NewCanonical, egress.NewAllows}
}
