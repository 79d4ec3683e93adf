package sandbox

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/resources/duration"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// expand reads the wish. known is false while part of it is not known yet.
func (m model) expand() (spec sandbox.Spec, known bool, err error) {
	spec.Detached = true
	known = !m.Template.IsUnknown() && !m.Lifetime.IsUnknown()
	var errs []error
	if !m.Template.IsUnknown() {
		spec.Template, err = sandbox.ParseTemplate([]byte(m.Template.ValueString()))
		if err != nil {
			// Fields of a manifest are places inside of the one attribute.
			for _, p := range driver.Problems(err) {
				errs = append(errs, driver.Invalid("template", fmt.Sprintf("not a manifest: %s: %v", p.Field, p.Err), p.Hint))
			}
		}
	}
	spec.Lifetime, err = duration.Parse("lifetime", m.Lifetime)
	errs = append(errs, err)
	var envKnown, labelsKnown bool
	spec.Env, envKnown = stringMap(m.Env)
	spec.Labels, labelsKnown = stringMap(m.Labels)
	return spec, known && envKnown && labelsKnown, driver.Join(errs...)
}

// expandStart reads the start command from the configuration, the only place
// that has the secrets. It is nil when there is none; known is false while part
// of it is not known yet, the values of secrets apart.
func (m model) expandStart(ctx context.Context) (cmd *sandbox.Cmd, known bool, diags diag.Diagnostics, err error) {
	switch {
	case m.Start.IsUnknown():
		return nil, false, nil, nil
	case m.Start.IsNull():
		return nil, true, nil, nil
	}
	var s start
	if diags = m.Start.As(ctx, &s, basetypes.ObjectAsOptions{}); diags.HasError() {
		return nil, false, diags, nil
	}
	cmd = &sandbox.Cmd{Dir: s.Dir.ValueString(), Detached: true}
	known = !s.Dir.IsUnknown() && !s.Timeout.IsUnknown() && !s.Command.IsUnknown()
	cmd.Timeout, err = duration.Parse("timeout", s.Timeout)
	for _, el := range s.Command.Elements() {
		arg, ok := text(el)
		known = known && ok
		cmd.Args = append(cmd.Args, arg)
	}
	var ok bool
	cmd.Env, ok = stringMap(s.Env)
	known = known && ok
	elements := s.Secrets.Elements()
	for _, name := range slices.Sorted(maps.Keys(elements)) {
		if cmd.Secrets == nil {
			cmd.Secrets = make(map[string]sandbox.Secret, len(elements))
		}
		value, _ := text(elements[name])
		cmd.Secrets[name] = sandbox.NewSecret(value)
	}
	return cmd, known, diags, err
}

// validate refuses a command that could not start, and secrets that the
// template does not declare: what was reviewed is who gets which secret.
func validate(cmd sandbox.Cmd, t *sandbox.Template) error {
	order := driver.Cmd{Args: cmd.Args, Env: cmd.Env, Secrets: cmd.Secrets, Dir: cmd.Dir, Timeout: cmd.Timeout}
	if order.Timeout == 0 {
		order.Timeout = driver.DefaultTimeout
	}
	errs := []error{order.Validate()}
	for _, name := range slices.Sorted(maps.Keys(cmd.Secrets)) {
		if t != nil && !slices.Contains(t.Secrets, name) {
			errs = append(errs, driver.Invalid(fmt.Sprintf("secrets[%q]", name), "the template does not declare this secret", fmt.Sprintf("add %q to the template's secrets, or remove it", name)))
		}
	}
	return driver.Join(errs...)
}

// stringMap reads what is known of a map.
func stringMap(m types.Map) (out map[string]string, known bool) {
	elements := m.Elements()
	known = !m.IsUnknown()
	for k, v := range elements {
		if out == nil {
			out = make(map[string]string, len(elements))
		}
		s, ok := text(v)
		known = known && ok
		out[k] = s
	}
	return out, known
}

func text(v attr.Value) (string, bool) {
	s, ok := v.(types.String)
	return s.ValueString(), ok && !s.IsUnknown()
}
