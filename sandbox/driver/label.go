package driver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Native labels. Everything sandboxio makes at a provider carries LabelManaged
// and LabelRole; the prefix is reserved.
const (
	LabelPrefix     = "sandboxio."
	LabelManaged    = "sandboxio.managed"
	LabelRole       = "sandboxio.role"
	LabelParent     = "sandboxio.parent"
	LabelOwner      = "sandboxio.owner"
	LabelInstance   = "sandboxio.instance"
	LabelTemplate   = "sandboxio.template"
	LabelPolicy     = "sandboxio.policy"
	LabelPool       = "sandboxio.pool"
	LabelReaper     = "sandboxio.reaper"
	LabelTenant     = "sandboxio.tenant"
	LabelSession    = "sandboxio.session"
	LabelCreated    = "sandboxio.created"     // unix seconds
	LabelMaxExpires = "sandboxio.max_expires" // unix seconds
	LabelOwn        = "sandboxio.labels"      // names of the caller's own labels
)

// Roles of managed objects.
const (
	RoleSandbox = "sandbox"
	RoleGateway = "gateway"
	RoleKeeper  = "keeper"
	RoleNetwork = "network"
	RoleVolume  = "volume"
	RoleHelper  = "helper"
)

// fields pairs each fact with its label, in one place for both directions.
func (f *Facts) fields() map[string]*string {
	return map[string]*string{
		LabelParent: &f.Parent, LabelOwner: &f.Owner, LabelInstance: &f.Instance, LabelTemplate: &f.Template,
		LabelPolicy: &f.Policy, LabelPool: &f.Pool, LabelReaper: &f.Reaper, LabelTenant: &f.Tenant, LabelSession: &f.Session,
	}
}

// Labels are the native labels of a managed object: its role, what is known
// of it, and when it was made and must be gone. The caller's own labels are
// added by the backend, which refuses the prefix.
func (f Facts) Labels(role string, created, maxExpires time.Time) map[string]string {
	m := map[string]string{
		LabelManaged:    "true",
		LabelRole:       role,
		LabelCreated:    strconv.FormatInt(created.Unix(), 10),
		LabelMaxExpires: strconv.FormatInt(maxExpires.Unix(), 10),
	}
	for k, v := range f.fields() {
		if *v != "" {
			m[k] = *v
		}
	}
	return m
}

// NativeLabels are the labels of a sandbox made from s: the caller's own, and
// [Facts.Labels], and a list of which are the caller's, so that labels a
// provider adds by itself, an image's above all, are told from them.
func (s Spec) NativeLabels(created, maxExpires time.Time) map[string]string {
	m := s.Facts.Labels(RoleSandbox, created, maxExpires)
	for k, v := range s.Labels {
		if !strings.HasPrefix(k, LabelPrefix) {
			m[k] = v
		}
	}
	m[LabelOwn] = strings.Join(slices.Sorted(maps.Keys(s.Labels)), ",")
	return m
}

// OwnLabels are native labels without those that a provider added by itself,
// to be matched against what a caller asks for. Objects that do not say which
// labels are the caller's keep all.
func OwnLabels(native map[string]string) map[string]string {
	names, told := native[LabelOwn]
	if !told {
		return native
	}
	own := strings.Split(names, ",")
	m := maps.Clone(native)
	maps.DeleteFunc(m, func(k, _ string) bool { return !strings.HasPrefix(k, LabelPrefix) && !slices.Contains(own, k) })
	return m
}

// ParseLabels takes native labels apart: our facts, and the caller's own, as
// [OwnLabels] tells them.
func ParseLabels(native map[string]string) (Facts, map[string]string) {
	var f Facts
	fields, own := f.fields(), map[string]string{}
	for k, v := range OwnLabels(native) {
		if p, ok := fields[k]; ok {
			*p = v
		} else if !strings.HasPrefix(k, LabelPrefix) {
			own[k] = v
		}
	}
	return f, own
}

// HasLabels reports whether have contains all of want, a value of "" in want
// included. Everyone who filters by label checks again with it, since a
// server may ignore a filter.
func HasLabels(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// ValidateLabels refuses the reserved prefix and keys or values that some
// backend could not carry unchanged: keys are 1 to 63 of a-z, A-Z, 0-9, '.',
// '_', '-', '/', beginning and ending alphanumeric; values are at most 256
// printable ASCII characters.
func ValidateLabels(field string, labels map[string]string) error {
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		at := fmt.Sprintf("%s[%q]", field, k)
		switch {
		case strings.HasPrefix(strings.ToLower(k), LabelPrefix):
			errs = append(errs, Invalid(at, "the prefix "+LabelPrefix+" is reserved", "choose another label name"))
		case !labelKey(k):
			errs = append(errs, Invalid(at, "not a label name", "use 1 to 63 of a-z, A-Z, 0-9, '.', '_', '-', '/', beginning and ending with a letter or digit"))
		}
		if v := labels[k]; len(v) > 256 || strings.IndexFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			errs = append(errs, Invalid(at, fmt.Sprintf("value of %d bytes is too long or not printable ASCII", len(v)), "use at most 256 printable ASCII characters"))
		}
	}
	return Join(errs...)
}

func labelKey(k string) bool {
	if k == "" || len(k) > 63 || !alnum(k[0]) || !alnum(k[len(k)-1]) {
		return false
	}
	for i := range len(k) {
		if c := k[i]; !alnum(c) && c != '.' && c != '_' && c != '-' && c != '/' {
			return false
		}
	}
	return true
}

func alnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
