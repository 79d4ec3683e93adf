package cli

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

func TestABeginningIsTakenOnlyWhereItIsOneSandboxs(t *testing.T) {
	a, b := strings.Repeat("a", 16)+strings.Repeat("0", 48), strings.Repeat("a", 16)+strings.Repeat("1", 48)
	list := func(broken error) iter.Seq2[sandbox.Status, error] {
		return func(yield func(sandbox.Status, error) bool) {
			for i, id := range []string{a, b} {
				if !yield(sandbox.Status{ID: id, Name: []string{"first", "second"}[i]}, nil) {
					return
				}
			}
			if broken != nil {
				yield(sandbox.Status{}, broken)
			}
		}
	}
	for _, c := range []struct {
		name, meant, want string
		code              driver.Code
	}{
		{"an id", a, a, ""},
		{"a name", "second", b, ""},
		{"a name behind the backend's", "docker/first", a, ""},
		{"a beginning of one", b[:17], b, ""},
		{"a beginning of two", a[:16], "", driver.CodeInvalid},
		{"a beginning that is too short", a[:11], "", driver.CodeNotFound},
		{"another backend's", "memory/" + a, "", driver.CodeNotFound},
		{"nothing", "", "", driver.CodeNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := choose("docker", c.meant, list(nil))
			if got != c.want || driver.CodeOf(err) != c.code {
				t.Errorf("got %q, %v", got, err)
			}
			if p := driver.Problems(err); err != nil && !strings.Contains(p[0].Hint, "sandboxio inspect") {
				t.Errorf("%v names no command that lists", err)
			}
		})
	}
	broken := errors.New("the list broke off")
	if got, err := choose("docker", b[:17], list(broken)); got != "" || !errors.Is(err, broken) {
		t.Errorf("half a list decides: %q, %v", got, err)
	}
}
