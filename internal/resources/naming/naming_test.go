package naming

import "testing"

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, backend, rest string
		ok                bool
	}{
		{"memory/sweep", "memory", "sweep", true}, {"memory", "", "", false}, {"/sweep", "", "", false}, {"memory/", "", "", false}, {"", "", "", false},
		{"memory/a/b", "", "", false}, {"memory/a b", "", "", false}, {"memory/a\n", "", "", false},
	} {
		backend, rest, err := Split(c.id)
		if (err == nil) != c.ok || c.ok && (backend != c.backend || rest != c.rest || Join(backend, rest) != c.id) {
			t.Errorf("Split(%q) = %q, %q, %v", c.id, backend, rest, err)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"a": true, "a-1": true, "": false, "1a": false, "a-": false, "A": false, "a_b": false, "ä": false, "a b": false,
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk": true, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl": false,
	} {
		if err := Validate(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
