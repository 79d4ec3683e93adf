package egress

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/egress.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryReasonIsDocumented(t *testing.T) {
	t.Parallel()
	var want []string
	for r, text := range reasonTexts {
		want = append(want, fmt.Sprintf("| `%s` | %s |", r, text))
		if r.Text() != text {
			t.Errorf("%s says %q", r, r.Text())
		}
	}
	slices.Sort(want)
	got := regexp.MustCompile("(?m)^\\| `[a-z-]+` \\| [^|]* \\|$").FindAllString(document(t), -1)
	if !slices.Equal(want, got) {
		t.Errorf("the table of reasons in docs/egress.md is not\n%s", strings.Join(want, "\n"))
	}
}

// A case that is said to be tested has a test with its id in the name.
func TestEveryCaseIsTestedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\| (M\d\d(?:, M\d\d)*) \| [^|]+ \| ([^|]+) \| ([^|]*)\|$`).FindAllStringSubmatch(document(t), -1)
	if len(rows) < 25 {
		t.Fatalf("%d rows", len(rows))
	}
	file := regexp.MustCompile("`([^`]+)`")
	for _, row := range rows {
		files := file.FindAllStringSubmatch(row[3], -1)
		if len(files) == 0 && !strings.HasPrefix(row[2], "not decided here: ") && !strings.HasPrefix(row[2], "inexpressible: ") {
			t.Errorf("%s is neither tested nor says why not", row[1])
		}
		for _, f := range files {
			text, err := os.ReadFile("../../" + f[1])
			if err != nil {
				t.Error(err)
			} else if !regexp.MustCompile(`\(` + row[1] + `[,)]|, ` + row[1] + `\)|func Test(Real|Acc)?` + row[1] + `[A-Z]`).Match(text) {
				t.Errorf("%s has no test named after %s", f[1], row[1])
			}
		}
	}
}
