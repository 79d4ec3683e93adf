package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// cut writes s into w in pieces of the given lengths and one more, over and
// over.
func cut(t *testing.T, w io.Writer, s string, lengths []byte) {
	t.Helper()
	for i := 0; len(s) > 0; i++ {
		n := len(s)
		if len(lengths) > 0 {
			n = min(n, int(lengths[i%len(lengths)])+1)
		}
		if got, err := io.WriteString(w, s[:n]); err != nil || got != n {
			t.Fatalf("wrote %d of %d: %v", got, n, err)
		}
		s = s[n:]
	}
}

func TestAWriterMakesWhatStringMakesOfTheWhole(t *testing.T) {
	t.Parallel()
	secrets := []string{"hunter2hunter2", "line one of it\nline two\\of it\n", "aaaaab", "pässwörd<'>"}
	r := New(secrets...)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var text strings.Builder
		for range rnd.IntN(12) {
			s := secrets[rnd.IntN(len(secrets))]
			switch rnd.IntN(4) {
			case 0:
				text.WriteString(allWritings[rnd.IntN(len(allWritings))].write(s))
			case 1:
				text.WriteString(s[:rnd.IntN(len(s))])
			case 2:
				text.WriteString(s[rnd.IntN(len(s)):])
			case 3:
				text.WriteString([]string{" ", "\\", "%", "%5C", "&", "\r", "\n", "a", "é", "\xef", "'"}[rnd.IntN(11)])
			}
		}
		lengths := make([]byte, 1+rnd.IntN(5))
		for i := range lengths {
			lengths[i] = byte(rnd.IntN(20))
		}
		var out bytes.Buffer
		w := r.Writer(&out)
		cut(t, w, text.String(), lengths)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := r.String(text.String()); out.String() != want {
			t.Fatalf("%q in %v\ngot  %q\nwant %q", text.String(), lengths, out.String(), want)
		}
	}
}

func TestAWriterHoldsBackNoMoreThanItMust(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := New("hunter2hunter2").Writer(&out)
	for _, c := range []struct{ write, want string }{
		{"ready\n", "ready\n"},
		{"50% \\ & 'x'\n", "ready\n50% \\ & 'x'\n"},
		{"hunt", "ready\n50% \\ & 'x'\n"},
		{"ers ", "ready\n50% \\ & 'x'\nhunters "},
	} {
		if _, err := io.WriteString(w, c.write); err != nil || out.String() != c.want {
			t.Errorf("after %q there is %q, want %q (%v)", c.write, out.String(), c.want, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestAWriterKeepsItsMemoryWhateverItIsGiven(t *testing.T) {
	t.Parallel()
	const long = 64 << 10
	secret := strings.Repeat("a", long) + "b"
	for _, text := range []string{strings.Repeat("a", 1<<18), strings.Repeat("%", 1<<18), strings.Repeat("\\", 1<<18), strings.Repeat("\n", 1<<18)} {
		r := New("aa"+strings.Repeat("%\\\n", 8), secret[long-100:], strings.Repeat("\\", 40)+"x", "%%%%%%%%x")
		w, ok := r.Writer(io.Discard).(*writer)
		if !ok {
			t.Fatal("another writer")
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if limit := piece*3 + longestUnit*128; cap(w.held) > limit || cap(w.out) > 2*limit {
			t.Errorf("%.1q: holds %d, %d", text, cap(w.held), cap(w.out))
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAWriterWithoutSecretsPassesEverythingOn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := Redactor{}.Writer(&out)
	cut(t, w, "plain text", []byte{3})
	if err := w.Close(); err != nil || out.String() != "plain text" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestAWriterFailsForGoodOnceItsTargetHas(t *testing.T) {
	t.Parallel()
	w := New("hunter2hunter2").Writer(&failing{after: 1})
	if _, err := w.Write([]byte("one ")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Write([]byte("two ")); err == nil {
			t.Error("no error")
		}
	}
	if err := w.Close(); err == nil {
		t.Error("Close tells nothing")
	}
}

func TestAClosedWriterTakesNoMore(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := New("hunter2hunter2").Writer(&out)
	cut(t, w, "hunter2", nil)
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("written after Close")
	}
	if out.String() != "hunter2" {
		t.Errorf("%q", out.String())
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("hunter2hunter2", "", "a hunter2hunter2 b hunter2", []byte{1, 3})
	f.Add("a\\\n\"<é", "aaaa", "%61%5C%5Cn\\u000a\\\"\\u003c", []byte{2})
	f.Add("\\\\\\\\", "%%%%", "\\\\\\\\%25%25", []byte{5, 1})
	f.Fuzz(func(t *testing.T, one, two, text string, lengths []byte) {
		if len(text) > 1024 || len(one)+len(two) > 64 {
			return
		}
		r := New(one, two)
		text += base64.StdEncoding.EncodeToString([]byte(one)) + text
		var out bytes.Buffer
		w := r.Writer(&out)
		cut(t, w, text, lengths)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := r.String(text); out.String() != want {
			t.Errorf("got  %q\nwant %q", out.String(), want)
		}
	})
}

func BenchmarkString(b *testing.B) {
	text := strings.Repeat("a line of ordinary output, 50% of it\n", 1000) + "hunter2hunter2"
	r := New("hunter2hunter2", "another-secret-value", strings.Repeat("key", 500))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if !r.Has(text) {
			b.Fatal("not found")
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	text := []byte(strings.Repeat("a line of ordinary output, 50% of it\n", 100))
	w := New("hunter2hunter2", "another-secret-value", strings.Repeat("key", 500)).Writer(io.Discard)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := w.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, size := range []int{16, 4096} {
		b.Run(fmt.Sprintf("%d bytes", size), func(b *testing.B) {
			v := strings.Repeat("x1-y", size/4)
			for b.Loop() {
				New(v)
			}
		})
	}
}
