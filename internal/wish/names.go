package wish

import (
	"maps"
	"slices"
	"strings"
)

// Object is the names that an object in a configuration may have. Each leads to
// the names of the object under it, or to nil: a plain value, or a map whose
// names are the user's own. The one name "*" stands for every element of a list
// or map.
//
// Terraform gives a provider none but these: it makes an attribute's value of
// what was written, and drops the other names without a word.
type Object map[string]Object

// Each is the name that stands for every element.
const Each = "*"

var (
	rule     = Object{"host": nil, "cidr": nil, "ports": nil, "why": nil}
	timeouts = Object{"create": nil, "read": nil, "update": nil, "delete": nil}
	nested   = map[string]Object{
		"sandboxio_network_policy": {"egress": {Each: rule}},
		"sandboxio_template": {
			"network_policy": {"egress": {Each: rule}, "expose": nil, "mode": nil, "learn": nil},
			"resources":      {"cpu_millis": nil, "memory_mib": nil, "disk_mib": nil, "pids": nil},
		},
		"sandboxio_sandbox": {
			"start":    {"command": nil, "env": nil, "dir": nil, "timeout": nil, "secrets_wo": nil, "secrets_wo_version": nil},
			"timeouts": timeouts,
		},
		"sandboxio_reaper_schedule": {"timeouts": timeouts},
		"policy": {
			"bundles": {Each: {"file": nil, "key": nil, "min_revision": nil, "digest": nil}},
			"waivers": {Each: {
				"id": nil, "rule": nil, "target": {"name": nil, "kind": nil}, "path": nil, "value": nil, "value_sha256": nil, "reason": nil, "owner": nil, "expires": nil,
			}},
		},
	}
)

// Nested is the attributes of a resource, or of the provider's block "policy",
// that are written as objects. Of a kind that has none it is nil.
func Nested(kind string) Object { return nested[kind] }

// IsRule reports whether o is the names of a network rule.
func (o Object) IsRule() bool { _, ok := o["cidr"]; return ok }

// Names are those that o has, sorted.
func (o Object) Names() []string { return slices.Sorted(maps.Keys(o)) }

// Meant is the name that whoever wrote another may have meant, or "".
func (o Object) Meant(written string) string {
	plain := func(s string) string { return strings.TrimSuffix(strings.ToLower(s), "s") }
	for _, name := range o.Names() {
		if plain(name) == plain(written) {
			return name
		}
	}
	for _, name := range o.Names() {
		if a, b := plain(name), plain(written); len(b) > 2 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			return name
		}
	}
	return ""
}
