package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Template is a reviewed description of sandboxes, made by Terraform or by
// hand. It is a value: two templates with the same content have the same
// digest. Zero fields mean what they mean in [Spec].
type Template struct {
	Name        string
	Backend     string // name of the backend it was reviewed for; "" = any
	Image       string
	Isolation   Isolation // the floor
	Trust       Trust
	MultiTenant bool
	Profile     Profile
	Lifetime    time.Duration // whole seconds
	Resources   Resources
	Network     Network
	Env         map[string]string
	Secrets     []string // names that commands may be given, never values
	Labels      map[string]string
	Reaper      string // name of the schedule that covers its sandboxes
	Policy      string // digest of the rules it was judged by; "" = none named
}

const (
	templateSchema  = "sandboxio.template/v1"
	maxManifestSize = 1 << 20

	// maxManifestDepth is more than a manifest has, and bounds the stack that
	// reading one takes.
	maxManifestDepth = 16
)

// manifest is the wire form; its field order is part of the digest.
type manifest struct {
	Schema      string            `json:"schema"`
	Digest      string            `json:"digest"`
	Name        string            `json:"name"`
	Backend     string            `json:"backend"`
	Image       string            `json:"image"`
	Isolation   Isolation         `json:"isolation"`
	Trust       string            `json:"trust"`
	TrustReason string            `json:"trust_reason"`
	MultiTenant bool              `json:"multi_tenant"`
	Profile     Profile           `json:"profile"`
	Lifetime    int64             `json:"lifetime_seconds"`
	Resources   Resources         `json:"resources"`
	Network     manifestNetwork   `json:"network"`
	Env         map[string]string `json:"env"`
	Secrets     []string          `json:"secrets"`
	Labels      map[string]string `json:"labels"`
	Reaper      string            `json:"reaper"`
	Policy      string            `json:"policy"`
}

type manifestNetwork struct {
	Egress []manifestRule `json:"egress"`
	Expose []uint16       `json:"expose"`
	Mode   Mode           `json:"mode"`
	Learn  bool           `json:"learn"`
}

type manifestRule struct {
	Host  string   `json:"host"`
	CIDR  string   `json:"cidr"`
	Ports []uint16 `json:"ports"`
	Why   string   `json:"why"`
}

// Resolve fills in defaults, brings rules into canonical form and refuses what
// is malformed: all problems joined, each with its Field. Code: invalid.
func (t Template) Resolve() (Template, error) {
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	if !validName(t.Name) {
		check(driver.Invalid("name", fmt.Sprintf("%q is not a name", t.Name), "use 1 to 63 of a-z, 0-9 and '-', beginning with a letter"))
	}
	if t.Image != "" {
		_, err := driver.ParseImage(t.Image)
		check(err)
	}
	check(t.Trust.Validate())
	var err error
	t.Lifetime, err = resolveLifetime(t.Lifetime)
	check(err)
	t.Resources, err = t.Resources.Resolve()
	check(err)
	t.Network, err = resolveNetwork(t.Network)
	check(err)
	check(driver.ValidateEnv("env", t.Env))
	check(driver.ValidateLabels("labels", t.Labels))
	t.Secrets = slices.Clone(t.Secrets)
	slices.Sort(t.Secrets)
	t.Secrets = slices.Compact(t.Secrets)
	for i, s := range t.Secrets {
		at := fmt.Sprintf("secrets[%d]", i)
		check(driver.ValidateEnvName(at, s))
		if _, both := t.Env[s]; both {
			check(driver.Invalid(at, fmt.Sprintf("%q is also in env", s), "a name is either a plain variable or a secret; remove it from env"))
		}
	}
	if t.Reaper != "" && !validName(t.Reaper) {
		check(driver.Invalid("reaper", fmt.Sprintf("%q is not the name of a schedule", t.Reaper), "use the name of a sandboxio_reaper_schedule"))
	}
	t.Env, t.Labels = maps.Clone(t.Env), maps.Clone(t.Labels)
	return t, driver.Join(errs...)
}

func validName(s string) bool {
	if s == "" || len(s) > 63 || s[0] < 'a' || s[0] > 'z' || s[len(s)-1] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Manifest writes the template as canonical JSON, its digest included.
func (t Template) Manifest() ([]byte, error) {
	m, err := t.wire()
	if err != nil {
		return nil, err
	}
	m.Digest = digest(m)
	return marshal(m), nil
}

// Digest identifies the template's content, as "sha256:…".
func (t Template) Digest() (string, error) {
	m, err := t.wire()
	if err != nil {
		return "", err
	}
	return digest(m), nil
}

func (t Template) wire() (manifest, error) {
	t, err := t.Resolve()
	if err != nil {
		return manifest{}, err
	}
	m := manifest{
		Schema: templateSchema, Name: t.Name, Backend: t.Backend, Image: t.Image, Isolation: t.Isolation,
		Trust: t.Trust.String(), TrustReason: t.Trust.Reason(), MultiTenant: t.MultiTenant, Profile: t.Profile,
		Lifetime: int64(t.Lifetime / time.Second), Resources: t.Resources,
		Network: manifestNetwork{Egress: []manifestRule{}, Expose: append([]uint16{}, t.Network.Expose...), Mode: t.Network.Mode, Learn: t.Network.Learn},
		Env:     t.Env, Secrets: append([]string{}, t.Secrets...), Labels: t.Labels, Reaper: t.Reaper, Policy: t.Policy,
	}
	for _, r := range t.Network.Egress {
		w := manifestRule{Host: r.Host, Ports: r.Ports, Why: r.Why}
		if r.Prefix.IsValid() {
			w.CIDR = r.Prefix.String()
		}
		m.Network.Egress = append(m.Network.Egress, w)
	}
	if m.Env == nil {
		m.Env = map[string]string{}
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	return m, nil
}

func digest(m manifest) string {
	m.Digest = ""
	sum := sha256.Sum256(marshal(m))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func marshal(m manifest) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		panic(err) // strings, numbers and maps of strings always encode
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// ParseTemplate reads a manifest. Unknown, misspelt and repeated fields are
// refused; a digest, when there is one, must match the content. One written
// by hand may leave out what has a default, and the digest:
//
//	{"schema": "sandboxio.template/v1", "name": "py", "image": "…@sha256:…",
//	 "lifetime_seconds": 60, "resources": {"memory_mib": 256}, "secrets": ["TOKEN"]}
//
// Further fields have the names of the resource's attributes: backend, isolation,
// trust, trust_reason, multi_tenant, profile, network, env, labels, reaper, policy.
// Code: invalid.
func ParseTemplate(data []byte) (*Template, error) {
	bad := func(field, problem, fix string) (*Template, error) {
		return nil, driver.Invalid(field, problem, fix)
	}
	if len(data) > maxManifestSize {
		return bad("manifest", fmt.Sprintf("%d bytes are too long", len(data)), "a manifest has at most 1 MiB")
	}
	if field, err := repeatedKey(json.NewDecoder(bytes.NewReader(data)), maxManifestDepth); err != nil {
		return bad("manifest", "not JSON: "+err.Error(), "pass the manifest attribute of a sandboxio_template as it is")
	} else if field != "" {
		return bad(field, "appears twice", "remove one of the two")
	}
	var m manifest
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return bad(e.Field, fmt.Sprintf("is a %s, not a %s", e.Value, e.Type), "see the template reference for its type")
		}
		if p := driver.Problems(err); len(p) == 1 && p[0].Field != "" {
			return nil, p[0]
		}
		return bad("manifest", strings.TrimPrefix(err.Error(), "json: "), "use the fields that ParseTemplate names; a lifetime is lifetime_seconds")
	}
	if _, err := dec.Token(); err != io.EOF {
		return bad("manifest", "there is something after the JSON object", "pass one object")
	}
	if field := misspelt(data, m); field != "" {
		return bad(field, "is not a field", "field names are lower case, exactly as in the template reference")
	}
	if m.Schema != templateSchema {
		return bad("schema", fmt.Sprintf("%q is not known", m.Schema), fmt.Sprintf("this version reads %q", templateSchema))
	}
	t, err := m.template()
	if err != nil {
		return nil, err
	}
	if m.Digest != "" {
		want, err := t.Digest()
		if err != nil {
			return nil, err
		}
		if want != m.Digest {
			return bad("digest", fmt.Sprintf("%s does not match the content, which has %s", m.Digest, want), "the manifest was changed after it was reviewed; take it from Terraform again")
		}
	}
	return t, nil
}

func (m manifest) template() (*Template, error) {
	var errs []error
	trust, err := driver.ParseTrust(m.Trust, m.TrustReason)
	errs = append(errs, err)
	if m.Lifetime < 0 || m.Lifetime > int64(driver.MaxLifetime/time.Second) {
		errs = append(errs, lifetimeError(fmt.Sprintf("%d s", m.Lifetime)))
		m.Lifetime = 0
	}
	t := Template{
		Name: m.Name, Backend: m.Backend, Image: m.Image, Isolation: m.Isolation, Trust: trust, MultiTenant: m.MultiTenant,
		Profile: m.Profile, Lifetime: time.Duration(m.Lifetime) * time.Second, Resources: m.Resources,
		Network: Network{Expose: m.Network.Expose, Mode: m.Network.Mode, Learn: m.Network.Learn},
		Env:     m.Env, Secrets: m.Secrets, Labels: m.Labels, Reaper: m.Reaper, Policy: m.Policy,
	}
	for i, w := range m.Network.Egress {
		r := Rule{Host: w.Host, Ports: w.Ports, Why: w.Why}
		if w.CIDR != "" {
			var p netip.Prefix
			p, err = driver.ParseCIDR(fmt.Sprintf("network.egress[%d].cidr", i), w.CIDR)
			errs = append(errs, err)
			r.Prefix = p
		}
		t.Network.Egress = append(t.Network.Egress, r)
	}
	if err := driver.Join(errs...); err != nil {
		return nil, err
	}
	t, err = t.Resolve()
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// repeatedKey finds the first key that stands twice in one object.
// encoding/json would silently take the last.
func repeatedKey(dec *json.Decoder, depth int) (string, error) {
	tok, err := dec.Token()
	if err != nil {
		return "", err
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return "", nil
	}
	if depth == 0 {
		return "", errors.New("it is nested too deeply")
	}
	seen := map[string]bool{}
	for dec.More() {
		key := ""
		if open == '{' {
			k, err := dec.Token()
			if err != nil {
				return "", err
			}
			key = k.(string) //nolint:forcetypeassert // the decoder gives only strings as keys
			if seen[key] {
				return key, nil
			}
			seen[key] = true
		}
		if in, err := repeatedKey(dec, depth-1); err != nil || in != "" {
			return strings.TrimPrefix(key+"."+in, "."), err
		}
	}
	_, err = dec.Token() // the closing delimiter
	return "", err
}

// misspelt finds a key that encoding/json took for a field only because it
// ignores case.
func misspelt(data []byte, m manifest) string {
	var got, want any
	if json.Unmarshal(data, &got) != nil || json.Unmarshal(marshal(m), &want) != nil {
		return "manifest"
	}
	return unexpected(got, want, "")
}

func unexpected(got, want any, at string) string {
	switch g := got.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(g)) {
			v, ok := w[k]
			if !ok {
				return strings.TrimPrefix(at+"."+k, ".")
			}
			if f := unexpected(g[k], v, at+"."+k); f != "" {
				return f
			}
		}
	case []any:
		w, _ := want.([]any)
		for i := range g {
			if i < len(w) {
				if f := unexpected(g[i], w[i], fmt.Sprintf("%s[%d]", at, i)); f != "" {
					return f
				}
			}
		}
	}
	return ""
}
