package template

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/network"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// flatten fills a model from a manifest, as an import does. What has a default
// gets it, so that a configuration that leaves it out sees no change.
func flatten(manifest string) (model, error) {
	parsed, err := sandbox.ParseTemplate([]byte(manifest))
	if err != nil {
		return model{}, err
	}
	t, err := parsed.Resolve()
	if err != nil {
		return model{}, err
	}
	m := model{
		Name: types.StringValue(t.Name), Backend: text(t.Backend), Image: text(t.Image),
		Trust: text(t.Trust.String()), TrustReason: text(t.Trust.Reason()),
		MultiTenant: types.BoolValue(t.MultiTenant), Profile: types.StringValue(t.Profile.String()),
		Lifetime: types.StringValue(duration.Format(t.Lifetime)), Resources: flattenCaps(t.Resources).object(),
		NetworkPolicy: network.Flatten(t.Network).Object(), Env: stringMap(t.Env), Labels: stringMap(t.Labels), Reaper: text(t.Reaper),
	}
	if t.Isolation > driver.Unverified {
		m.Isolation = types.StringValue(t.Isolation.String())
	}
	secrets := make([]attr.Value, len(t.Secrets))
	for i, s := range t.Secrets {
		secrets[i] = types.StringValue(s)
	}
	m.Secrets = types.SetValueMust(types.StringType, secrets)
	return m, m.compute(t)
}

// compute fills what follows from the template.
func (m *model) compute(t sandbox.Template) error {
	manifest, err := t.Manifest()
	if err != nil {
		return err
	}
	digest, err := t.Digest()
	if err != nil {
		return err
	}
	m.Manifest, m.Digest, m.ID = types.StringValue(string(manifest)), types.StringValue(digest), types.StringValue(digest)
	return nil
}

func flattenCaps(r driver.Resources) caps {
	return caps{
		CPUMillis: types.Int64Value(r.CPUMillis), MemoryMiB: types.Int64Value(r.MemoryMiB),
		DiskMiB: types.Int64Value(r.DiskMiB), PIDs: types.Int64Value(r.PIDs),
	}
}

func text(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

func stringMap(in map[string]string) types.Map {
	m := make(map[string]attr.Value, len(in))
	for k, v := range in {
		m[k] = types.StringValue(v)
	}
	return types.MapValueMust(types.StringType, m)
}
