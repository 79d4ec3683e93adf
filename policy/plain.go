package policy

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// plain is what encoding/json would make of a document and read back, without
// the text in between. It knows the kinds that [Schema] knows.
func (d document) plain() map[string]any { return plainObject(reflect.ValueOf(d)) }

func plainObject(v reflect.Value) map[string]any {
	fields := fieldsOf(v.Type())
	out := make(map[string]any, len(fields))
	for _, f := range fields {
		out[f.name] = plainOf(v.Field(f.index))
	}
	return out
}

func plainOf(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plainOf(v.Elem())
	case reflect.Struct:
		return plainObject(v)
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plainOf(v.Index(i))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		out := make(map[string]any, v.Len())
		for entry := v.MapRange(); entry.Next(); {
			out[validText(entry.Key().String())] = plainOf(entry.Value())
		}
		return out
	case reflect.String:
		return validText(v.String())
	case reflect.Bool:
		return v.Bool()
	case reflect.Int64:
		return v.Int()
	}
	panic(fmt.Sprintf("policy: %s is in no document", v.Type()))
}

// validText has a replacement for each byte that is no UTF-8.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// field is a field of a struct that is in the document.
type field struct {
	index int
	name  string
}

var knownFields sync.Map // of []field, by reflect.Type

func fieldsOf(t reflect.Type) []field {
	known, _ := knownFields.Load(t)
	out, ok := known.([]field)
	if ok {
		return out
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			out = append(out, field{i, name})
		}
	}
	knownFields.Store(t, out)
	return out
}
