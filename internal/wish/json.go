package wish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// JSON reads one JSON value of objects whose names are in lower case, without
// unknown fields and without one that stands twice, and nothing after it. Its
// errors are in words of JSON, for who wrote the value and knows no Go.
func JSON(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return inJSON(text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return exact(json.NewDecoder(bytes.NewReader(text)))
}

// exact refuses what the decoder takes, and who reads the text may take for
// something else: a name in other letters, and the last of two.
func exact(d *json.Decoder) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			tok, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := tok.(string)
			if strings.ContainsFunc(name, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }) {
				return fmt.Errorf("unknown field %+q: names are in lower case", name)
			}
			if seen[name] {
				return fmt.Errorf("%q stands twice", name)
			}
			seen[name] = true
		}
		if err := exact(d); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing delimiter
	return err
}

// inJSON puts an error of the decoder into words of JSON, without types of Go.
func inJSON(text []byte, err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := fmt.Sprintf("%s stands where %s belongs", valueInJSON(e.Value), kindInJSON(e.Type))
		if e.Field != "" {
			what = e.Field + ": " + what
		}
		return errors.New(what)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(text[:min(e.Offset, int64(len(text)))], []byte("\n"))
		return fmt.Errorf("line %d: it is no JSON: %w", line, err)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("there is no JSON value")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends within the JSON value")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: ")) // an unknown field
}

// valueInJSON is a value as the decoder names it, as "number 1.5".
func valueInJSON(v string) string {
	switch v {
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	}
	return "a " + v
}

func kindInJSON(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Struct:
		return "an object"
	default:
		return "a whole number"
	}
}
