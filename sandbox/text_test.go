package sandbox

import (
	"strings"
	"testing"
)

// pieces cuts b at every place that cuts says.
func pieces(b []byte, cuts []byte) [][]byte {
	var out [][]byte
	for _, c := range cuts {
		n := int(c) % 7
		n = min(n, len(b))
		out = append(out, b[:n])
		b = b[n:]
	}
	return append(out, b)
}

func decodeAll(parts [][]byte) string {
	var d decoder
	var s strings.Builder
	for _, p := range parts {
		s.WriteString(d.next(p))
	}
	return s.String() + d.end()
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		parts []string
		want  string
	}{
		{"a character that is split at a chunk boundary (M60)", []string{"a\xe2", "\x82", "\xac b"}, "a€ b"},
		{"four bytes, one at a time (M60)", []string{"\xf0", "\x9f", "\x98", "\x80"}, "😀"},
		{"bytes that are no UTF-8 (M59)", []string{"\xff\xfe\xe2"}, "\ufffd\ufffd\ufffd"},
		{"a character that never ends", []string{"x\xf0\x9f"}, "x\ufffd\ufffd"},
		{"a character that is broken off by another", []string{"\xe2", "a"}, "\ufffda"},
		{"a byte order mark stays", []string{"\xef\xbb\xbfa"}, "\ufeffa"},
		{"a NUL stays", []string{"a\x00b"}, "a\x00b"},
		{"nothing", []string{"", ""}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var parts [][]byte
			for _, p := range c.parts {
				parts = append(parts, []byte(p))
			}
			if got := decodeAll(parts); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzText: text does not depend on where the chunks end.
func FuzzText(f *testing.F) {
	f.Add([]byte("a€\xff😀"), []byte{1, 1, 1})
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		if got, want := decodeAll(pieces(b, cuts)), decode(b); got != want {
			t.Errorf("cut at %v: %q, want %q", cuts, got, want)
		}
	})
}
