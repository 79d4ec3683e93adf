package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// BundleOptions say what WriteBundle writes.
type BundleOptions struct {
	Set      Source // its directory; tests are left out
	Revision uint64 // from 1 up; greater than that of every bundle before it
	Key      []byte // the private key, in PEM: ECDSA on P-256, or Ed25519

	// Now tells the time, for waivers that would have no effect; nil = the clock.
	Now func() time.Time
}

// WriteBundle signs a set's directory into a bundle, once everything in it
// compiles. A file settings.yaml at its top makes it one that can be a floor.
// Codes: invalid.
func WriteBundle(ctx context.Context, w io.Writer, opts BundleOptions) error {
	if opts.Revision == 0 {
		return driver.Invalid("revision", "0 is no revision", "give a number from 1 up, greater than the last one")
	}
	key, alg, err := parsePrivate(opts.Key)
	if err != nil {
		return driver.Invalid("key", err.Error(), "make one with: openssl genpkey -algorithm ed25519")
	}
	if opts.Set.Bundle != nil {
		return driver.Invalid("policy.sources", "a bundle is made of a directory", "name the directory")
	}
	c, err := opts.Set.read(ctx)
	if err != nil {
		return err
	}
	if err := usable(c, opts.Now); err != nil {
		return err
	}
	b := bundle.Bundle{
		Manifest: bundle.Manifest{Revision: strconv.FormatUint(opts.Revision, 10), Roots: &[]string{"custom/" + opts.Set.Name}},
		Data:     map[string]any{},
	}
	b.Manifest.SetRegoVersion(ast.RegoV1)
	if own := c.data(); len(own) > 0 {
		raw, err := json.Marshal(map[string]any{"custom": map[string]any{opts.Set.Name: own}})
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &b.Data); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		m, err := ast.ParseModuleWithOpts(name, c.files[name], ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()})
		if err != nil {
			return err
		}
		b.Modules = append(b.Modules, bundle.ModuleFile{URL: "/" + name, Path: "/" + name, RelativePath: "/" + name, Raw: []byte(c.files[name]), Parsed: m})
	}
	if err := b.GenerateSignature(bundle.NewSigningConfig(key, alg, ""), "", false); err != nil {
		return errors.New("the bundle could not be signed") // the cause may quote the key
	}
	if err := bundle.NewWriter(w).DisableFormat(true).Write(b); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}

// usable reports whether a set can be loaded, as a floor if it has settings, and
// whether all of its waivers have effect.
func usable(c *contents, now func() time.Time) error {
	e, err := assemble([]*contents{c}, c.settings != nil, Options{Now: now})
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range e.Waivers() {
		if w.Problem != "" {
			errs = append(errs, driver.Invalid(sourceField(c.name), fmt.Sprintf("%s: the waiver %q would have no effect: %s", c.from, w.ID, w.Problem), "mend the waiver, or take it out"))
		}
	}
	return driver.Join(errs...)
}

// BundleInfo is what a bundle says of itself, once its signature is verified.
type BundleInfo struct {
	Name     string `json:"name"`
	Revision uint64 `json:"revision"`
	Files    int    `json:"files"`   // of Rego
	Waivers  int    `json:"waivers"` // in it, in whatever order they are
	Floor    bool   `json:"floor"`   // it has settings, and is for a floor only
}

// VerifyBundle reads a bundle as Load would.
func VerifyBundle(ctx context.Context, b Bundle) (BundleInfo, error) {
	c, err := b.read(ctx)
	if err == nil {
		_, err = assemble([]*contents{c}, c.settings != nil, Options{})
	}
	if err != nil {
		return BundleInfo{}, bundleError("bundle", fmt.Sprint(b.From), err)
	}
	return c.info(), nil
}

func (c *contents) info() BundleInfo {
	return BundleInfo{Name: c.name, Revision: c.revision, Files: len(c.files), Waivers: len(c.waivers), Floor: c.settings != nil}
}
