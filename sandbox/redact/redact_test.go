package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestSecretsAreTakenOutInEveryForm(t *testing.T) {
	t.Parallel()
	const secret = "s3cr=t/va+lue \"x\"\n"
	r := New(secret, "other-value")
	js, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, in string }{
		{"plain", "before " + secret + " after"},
		{"twice", secret + secret},
		{"the second value", "x other-value y"},
		{"base64", base64.StdEncoding.EncodeToString([]byte(secret))},
		{"base64 for URLs", base64.URLEncoding.EncodeToString([]byte(secret))},
		{"base64, one byte in", base64.StdEncoding.EncodeToString([]byte("u" + secret))},
		{"base64, inside user:password", base64.StdEncoding.EncodeToString([]byte("us:" + secret + "more"))},
		{"query escape", "https://x/?q=" + url.QueryEscape(secret)},
		{"path escape", "https://x/" + url.PathEscape(secret)},
		{"JSON", `{"k":` + string(js) + `}`},
		{"Go quoting", fmt.Sprintf("%q", secret)},
		{"hex", hex.EncodeToString([]byte(secret))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := r.String(c.in)
			if !strings.Contains(out, Mark) || !r.Has(c.in) {
				t.Errorf("%q became %q", c.in, out)
			}
		})
	}
	if in := "nothing to hide, [secret]"; r.String(in) != in {
		t.Errorf("ordinary text became %q", r.String(in))
	}
}

// A secret read from a file ends with a line end that nobody prints.
func TestWhiteSpaceAroundASecretHidesNothing(t *testing.T) {
	t.Parallel()
	const secret = "hunter2päss"
	r := New("\t" + secret + "\n")
	for _, in := range []string{
		secret, secret + "\n", hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)),
		fmt.Sprintf("%q", secret), fmt.Sprintf("%+q", secret), url.QueryEscape(secret),
	} {
		if out := r.String("a " + in + " b"); !strings.Contains(out, Mark) {
			t.Errorf("%q became %q", in, out)
		}
	}
}

func TestZeroAndShortValues(t *testing.T) {
	t.Parallel()
	for _, r := range []Redactor{{}, New(), New(""), New("a", "abc")} {
		if got := r.String("abc"); got != "abc" {
			t.Errorf("got %q", got)
		}
	}
}

// fmt prints an unexported field as it lies in memory, following pointers under
// a verb that does not fit.
func TestARedactorPrintsNoSecretWhoeverHoldsIt(t *testing.T) {
	t.Parallel()
	type holder struct{ r Redactor }
	h := holder{New("hunter2hunter2")}
	for _, v := range []any{h, &h, h.r, []holder{h}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "hunter2") {
				t.Errorf("%s: %s", verb, got)
			}
		}
	}
}
