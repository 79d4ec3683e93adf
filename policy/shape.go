package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// parts are the fields of a resource that only some kinds fill. What is not
// named here is for templates, sandboxes and containers.
var parts = map[Kind][]string{
	KindNetworkPolicy:  {"network"},
	KindReaperSchedule: {"backend", "labels", "schedule"},
	KindImage:          {"image", "labels", "build_args"},
	KindProvider:       {"provider"},
}

// checkPath refuses a path of an answer that leads to nothing which the
// document of that kind can hold. What a rule says of such a place would count
// as known while the value that it means is not.
func checkPath(k Kind, at path) error {
	t := reflect.TypeFor[Resource]()
	if k == KindGraph {
		t = reflect.TypeFor[graphDocument]()
	} else if top, ok := at[0].(string); ok {
		own, narrow := parts[k]
		if narrow && !slices.Contains(own, top) || !narrow && (top == "schedule" || top == "provider" || top == "build_args") {
			return fmt.Errorf("has the path %s, and no %s has %s", at, strings.ReplaceAll(string(k), "_", " "), top)
		}
	}
	for i, step := range at {
		next, ok := below(t, step)
		if i == 1 && freeKeys[at[0]] {
			_, named := step.(string)
			next, ok = reflect.TypeFor[string](), named // by name, also what the document holds as a list
		}
		if !ok {
			return fmt.Errorf("has the path %s, and there is no such place%s", at, nearest(at[:i], t))
		}
		t = next
	}
	return nil
}

// below is the type of a member or an element, as the document writes it.
func below(t reflect.Type, step any) (reflect.Type, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch key := step.(type) {
	case int:
		if t.Kind() == reflect.Slice {
			return t.Elem(), true
		}
	case string:
		switch t.Kind() {
		case reflect.Map:
			return t.Elem(), true
		case reflect.Struct:
			if key == "command" && t == reflect.TypeFor[Resource]() {
				return reflect.TypeFor[[]string](), true // only facts of it are shown
			}
			for f := range t.Fields() {
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == key && name != "-" {
					return f.Type, true
				}
			}
		default:
		}
	}
	return nil, false
}

// nearest says what there is instead.
func nearest(at path, t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	where := "the top"
	if len(at) > 0 {
		where = at.String()
	}
	switch {
	case len(at) == 1 && freeKeys[at[0]]:
		return fmt.Sprintf(`; write ["%s", "NAME"]`, where)
	case t.Kind() == reflect.Struct:
		var names []string
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return fmt.Sprintf("; at %s there are %s", where, strings.Join(names, ", "))
	case t.Kind() == reflect.Slice:
		return fmt.Sprintf("; %s is a list, whose elements have numbers", where)
	}
	return fmt.Sprintf("; %s has nothing below it", where)
}
