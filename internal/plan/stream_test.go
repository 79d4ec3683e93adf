package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// split walks one object with the stream: arrays by element, all else raw.
func split(r io.Reader) (map[string][]string, error) {
	out := map[string][]string{}
	s := newStream(r)
	err := s.object(func(key string) error {
		c, err := s.peek()
		if err != nil {
			return err
		}
		take := func() error {
			raw, err := s.raw(maxValue)
			out[key] = append(out[key], string(raw))
			return err
		}
		if c == '[' {
			out[key] = []string{}
			return s.array(take)
		}
		if key == "skip" {
			return s.skip()
		}
		return take()
	})
	return out, err
}

func TestAStreamGivesOneValueAtATime(t *testing.T) {
	t.Parallel()
	text := `{ "a" : [ {"x":"]}\"\\"} , 2,"," ] ,"b":{"c":[1,{"d":null}]},"e":-1.5e3
		,"skip":{"deep":[[[]]]},"f":[],"g":true,"h":"\"" }`
	want := map[string][]string{
		"a": {`{"x":"]}\"\\"}`, `2`, `","`}, "b": {`{"c":[1,{"d":null}]}`}, "e": {"-1.5e3"}, "f": {}, "g": {"true"}, "h": {`"\""`},
	}
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)), "error with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		got, err := split(r)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
}

func TestABrokenStreamIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{`, `[`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a" 1}`, `{1:2}`, `{"a":[}`, `{"a":{"b":[}`, `null`, `{"a":"`,
	} {
		if got, err := split(strings.NewReader(text)); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
	s := newStream(strings.NewReader(`{"a":"` + strings.Repeat("x", 100) + `"}`))
	if err := s.object(func(string) error { _, err := s.raw(50); return err }); !errors.Is(err, errTooLarge) {
		t.Errorf("a value past the limit: %v", err)
	}
}

// repeated reports whether an object has a name twice.
func repeated(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	seen := map[string]bool{}
	for _, err := d.Token(); d.More() && err == nil; {
		var name json.Token
		if name, err = d.Token(); err == nil {
			key, _ := name.(string)
			if seen[key] {
				return true
			}
			seen[key] = true
			var value json.RawMessage
			err = d.Decode(&value)
		}
	}
	return false
}

func FuzzStream(f *testing.F) {
	for _, s := range []string{`{"a":[{"x":1},"]"],"b":"\\\""}`, `{"a":[]}`, `{"a":{"b":[1,2,{"c":null}]},"skip":1}`, `{"`, `{"a":[}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := split(bytes.NewReader(text))
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil {
			return // it may be accepted here, since what is skipped is not read
		}
		if want == nil || repeated(text) {
			return
		}
		if err != nil {
			t.Fatalf("valid JSON: %v", err)
		}
		for key, raw := range want {
			if key == "skip" {
				continue
			}
			var list []json.RawMessage
			texts := []string{string(raw)}
			if raw[0] == '[' {
				if err := json.Unmarshal(raw, &list); err != nil {
					t.Fatal(err)
				}
				texts = []string{}
				for _, e := range list {
					texts = append(texts, string(e))
				}
			}
			if d := cmp.Diff(texts, got[key]); d != "" {
				t.Errorf("%q: %s", key, d)
			}
		}
	})
}
