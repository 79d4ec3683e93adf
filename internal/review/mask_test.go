package review

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		all      bool
		want     string
	}{
		{"a range is shown", `{ cidr = "0.0.0.0/0" }`, false, `{ cidr = "0.0.0.0/0" }`},
		{"a credential is not", `  x = "ghp_0123456789abcdefghijABCDEF"`, false, `  x = "(hidden)"`},
		{"nor in a comment", `  x = 1 # AKIAABCDEFGHIJKLMNOP`, false, `  x = 1 # (hidden)`},
		{"nothing of an environment", `  A = "x" B = "y\"z"`, true, `  A = "(hidden)" B = "(hidden)"`},
		{"but its names", `  "A.B" = "x"`, true, `  "A.B" = "(hidden)"`},
		{"a heredoc", `    my password`, true, `(hidden)`},
		{"a quote that does not end", `  A = "x`, true, `  A = "(hidden)"`},
		{"nothing", ``, true, ``},
	} {
		if got := strings.Join(strings.Fields(mask(c.in, c.all)), " "); got != strings.Join(strings.Fields(c.want), " ") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzMaskShowsNoCredential(f *testing.F) {
	f.Add(`a = "`, `" # x`)
	f.Add(`"\`, `"`)
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "ghp_0123456789abcdefghijABCDEF"
		got := mask(before+" \""+secret+"\" "+after, true)
		if strings.Contains(got, secret) {
			t.Errorf("%q", got)
		}
	})
}

func TestALongLineIsCutAroundItsMark(t *testing.T) {
	t.Parallel()
	l := Line{Text: strings.Repeat("a", 300) + "MARK" + strings.Repeat("b", 300), From: 301, To: 305}.short()
	if len([]rune(l.Text)) > widest+2 || string([]rune(l.Text)[l.From-1:l.To-1]) != "MARK" {
		t.Errorf("got %+v", l)
	}
	if l := (Line{Text: "short", From: 1, To: 2}).short(); l.Text != "short" {
		t.Errorf("got %+v", l)
	}
}
