package policy

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Schema is the JSON schema of the input document, made from the Go types.
// The copy in the rules' folder is what rules are compiled against.
func Schema() ([]byte, error) {
	s := schemaOf(reflect.TypeFor[document]())
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["$id"] = SchemaID
	s["title"] = "What a rule sees as input"
	raw, err := json.MarshalIndent(s, "", "  ")
	return append(raw, '\n'), err
}

func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		// Not "type": ["…", "null"], which the rules' type checker would take
		// for never null.
		return map[string]any{"anyOf": []any{schemaOf(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.Struct:
		properties := map[string]any{}
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "-" {
				properties[name] = schemaOf(f.Type)
			}
		}
		// No field is required: what is unknown is absent.
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	panic("policy: no schema for " + t.String())
}
