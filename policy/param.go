package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// validate refuses what cannot be told tighter from looser.
func (p Param) validate() error {
	if p.Description == "" {
		return fmt.Errorf("description is missing")
	}
	ok := false
	switch p.Tighten {
	case "lower", "higher":
		_, ok = p.Default.(float64)
	case "fewer", "more":
		_, ok = p.Default.([]any)
	case "rank":
		_, ok = rank(p.Default)
	default:
		return fmt.Errorf("tighten %q is none of lower, higher, fewer, more, rank", p.Tighten)
	}
	if !ok {
		return fmt.Errorf("the default %v does not fit tighten = %s", p.Default, p.Tighten)
	}
	return nil
}

// loosens reports whether v lets through what the default would not. Lists
// hold numbers or strings; a number below zero is no limit and refused.
func (p Param) loosens(field string, v any) (bool, error) {
	bad := func(want string) (bool, error) {
		return false, driver.Invalid(field+p.Name, fmt.Sprintf("%s is not %s", written(v), want), "the default is "+written(p.Default))
	}
	switch d := p.Default.(type) {
	case float64:
		n, ok := v.(float64)
		if !ok || n < 0 || n != float64(int64(n)) {
			return bad("a whole number from 0 up")
		}
		return p.Tighten == "lower" && n > d || p.Tighten == "higher" && n < d, nil
	case []any:
		items, ok := v.([]any)
		if !ok {
			return bad("a list")
		}
		for _, item := range items {
			switch item.(type) {
			case string, float64:
			default:
				return bad("a list of texts or numbers")
			}
			if len(d) > 0 && reflect.TypeOf(item) != reflect.TypeOf(d[0]) {
				return bad(fmt.Sprintf("a list like %v", d))
			}
		}
		return p.Tighten == "fewer" && !contains(d, items) || p.Tighten == "more" && !contains(items, d), nil
	default:
		n, ok := rank(v)
		if !ok {
			return bad("an isolation tier")
		}
		floor, _ := rank(d)
		return n < floor, nil
	}
}

// written is v in JSON, so that a text with digits in it is not taken for a
// number.
func written(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func contains(whole, part []any) bool {
	return !slices.ContainsFunc(part, func(v any) bool { return !slices.Contains(whole, v) })
}

func rank(v any) (driver.Isolation, bool) {
	s, ok := v.(string)
	i, err := driver.ParseIsolation(s)
	return i, ok && err == nil && s != ""
}

// choice is one parameter, with the set that declares it.
type choice struct {
	Param
	set string
}

// declared are the parameters of all rules, by name.
func declared(all []*ruleset) map[string]choice {
	out := map[string]choice{}
	for _, rs := range all {
		for _, r := range rs.rules {
			for _, p := range r.Params {
				out[p.Name] = choice{p, rs.name}
			}
		}
	}
	return out
}

// choose gives the values of given, as JSON has them, and whether each is
// looser than the default. A name that no rule declares is refused: it would
// silently do nothing.
func choose(field string, all map[string]choice, given map[string]any) (values map[string]any, looser map[string]bool, err error) {
	values, looser = map[string]any{}, map[string]bool{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		p, ok := all[name]
		if !ok {
			errs = append(errs, driver.Invalid(field+name, "no rule has this parameter", fmt.Sprintf("there are %q", slices.Sorted(maps.Keys(all)))))
			continue
		}
		var v any
		raw, err := json.Marshal(given[name])
		if err == nil {
			err = json.Unmarshal(raw, &v)
		}
		if err != nil {
			errs = append(errs, driver.Invalid(field+name, err.Error(), fmt.Sprintf("the default is %v", p.Default)))
			continue
		}
		if looser[name], err = p.loosens(field, v); err != nil {
			errs = append(errs, err)
			continue
		}
		values[name] = v
	}
	return values, looser, driver.Join(errs...)
}
