package audit

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// relink gives lines the numbers and hashes of a chain, as somebody would who
// has changed one and can write the file.
func relink(t testing.TB, lines [][]byte) []byte {
	t.Helper()
	head := Head{Hash: genesis}
	var out bytes.Buffer
	for _, l := range lines {
		e, err := parse(l)
		if err != nil {
			t.Fatal(err)
		}
		var line []byte
		line, head, err = head.next(e.Record, nil)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(line)
	}
	return out.Bytes()
}

func TestVerifyNamesTheFirstBadLine(t *testing.T) {
	t.Parallel()
	_, content, head := file(t, "create", "run", "read", "close")
	lines := bytes.SplitAfter(content, []byte("\n"))[:4]
	join := func(l ...[]byte) []byte { return bytes.Join(l, nil) }
	swap := func(at int, from, to string) []byte {
		l := bytes.Clone(lines[at])
		if !bytes.Contains(l, []byte(from)) {
			t.Fatalf("no %q in %s", from, l)
		}
		all := [][]byte{lines[0], lines[1], lines[2], lines[3]}
		all[at] = bytes.Replace(l, []byte(from), []byte(to), 1)
		return join(all...)
	}
	for _, c := range []struct {
		name  string
		data  []byte
		head  string
		field string // "" = it is good
		says  string
	}{
		{"as it was written", content, "", "", ""},
		{"with its head", content, head.Hash, "", ""},
		{"with an earlier head", content, hash(bytes.TrimSuffix(lines[1], []byte("\n"))), "", ""},
		{"empty", nil, "", "", ""},
		{"a changed record", swap(1, `"op":"run"`, `"op":"rum"`), "", "line 3", "does not follow"},
		{"a changed last record, without a head", swap(3, `"op":"close"`, `"op":"clone"`), "", "", ""},
		{"a changed last record, with the head", swap(3, `"op":"close"`, `"op":"clone"`), head.Hash, "head", "no line has the hash"},
		{"a record removed", join(lines[0], lines[2], lines[3]), "", "line 2", "its number is 3, not 2"},
		{"the first removed", join(lines[1], lines[2]), "", "line 1", "its number is 2"},
		{"the last removed, without a head", join(lines[:3]...), "", "", ""},
		{"the last removed, with the head", join(lines[:3]...), head.Hash, "head", "no line has the hash"},
		{"everything removed, with the head", nil, head.Hash, "head", "no line has the hash"},
		{"two exchanged", join(lines[0], lines[2], lines[1]), "", "line 2", "its number is 3"},
		{"a line twice", join(lines[0], lines[0]), "", "line 2", "its number is 1"},
		{"a new chain of the rest, with the head", relink(t, [][]byte{lines[0][:len(lines[0])-1], lines[2][:len(lines[2])-1], lines[3][:len(lines[3])-1]}), head.Hash, "head", "no line has the hash"},
		{"another prev", swap(2, `"prev":"sha256:`, `"prev":"sha256:0`), "", "line 3", "does not follow"},
		{"no end", content[:len(content)-1], "", "line 4", "it does not end"},
		{"an empty line", join(lines[0], []byte("\n"), lines[1]), "", "line 2", "no entry"},
		{"white space", swap(1, `,"prev"`, `, "prev"`), "", "line 2", "not written as an entry"},
		{"a carriage return", swap(1, "}\n", "}\r\n"), "", "line 2", "not written as an entry"},
		{"a second value on the line", swap(1, "}\n", "}{}\n"), "", "line 2", "not written as an entry"},
		{"an unknown field", swap(1, `{"seq"`, `{"x":1,"seq"`), "", "line 2", "unknown field"},
		{"a field twice", swap(1, `{"seq"`, `{"seq":2,"seq"`), "", "line 2", "not written as an entry"},
		{"a field of the record twice", swap(1, `"op":"run"`, `"op":"run","op":"run"`), "", "line 2", `"op" is there twice`},
		{"and in another case", swap(1, `"op":"run"`, `"op":"run","OP":"read"`), "", "line 2", `"op" is there twice`},
		{"deep in the record", swap(1, `"code":1`, `"code":1,"code":0`), "", "line 2", `"code" is there twice`},
		{"a record that is none", swap(1, `"op":"run"`, `"op":7`), "", "line 2", "holds no record"},
		{"neither record nor repair", []byte(`{"seq":1,"prev":"` + genesis + `"}` + "\n"), "", "line 1", "exactly one"},
		{"null for a record", []byte(`{"seq":1,"prev":"` + genesis + `","record":null}` + "\n"), "", "line 1", "holds no record"},
		{"no UTF-8", swap(1, "run", "r\xffn"), "", "line 2", "no UTF-8"},
		{"zeros", make([]byte, 100), "", "line 1", "does not end"},
		{"a line that is too long", append(bytes.Repeat([]byte("x"), maxLine+1), '\n'), "", "line 1", "longer than"},
		{"a head that is none", content, "abc", "head", `"abc" is no hash`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rep, err := Verify(iotest.HalfReader(bytes.NewReader(c.data)), VerifyOptions{Head: c.head})
			if c.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *sandbox.Error
			if !errors.As(err, &e) || e.Code != sandbox.CodeInvalid || e.Field != c.field || !strings.Contains(e.Error(), c.says) {
				t.Errorf("got %v (%+v), want %s: %s", err, rep, c.field, c.says)
			}
		})
	}
}

func TestVerifyTellsAReaderThatFails(t *testing.T) {
	t.Parallel()
	if _, err := Verify(iotest.ErrReader(errors.New("gone")), VerifyOptions{}); !errors.Is(err, sandbox.CodeUnavailable) {
		t.Errorf("got %v", err)
	}
}

// Whatever a file holds, Verify ends, and what it accepts is one chain: no
// byte can be changed without another answer.
func FuzzVerify(f *testing.F) {
	head := Head{Hash: genesis}
	var chain []byte
	for _, op := range []string{"create", "run", "close"} {
		line, next, err := head.next(record(op), nil)
		if err != nil {
			f.Fatal(err)
		}
		chain, head = append(chain, line...), next
		f.Add(chain, uint16(len(chain)-2), byte('x'))
	}
	f.Add([]byte("{}\n"), uint16(0), byte(' '))
	f.Add([]byte(`{"seq":1,"prev":"`+genesis+`","record":{"a":[{"b":1},{"b":2}]}}`+"\n"), uint16(4), byte('"'))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, with byte) {
		rep, err := Verify(bytes.NewReader(data), VerifyOptions{})
		if err != nil {
			if sandbox.CodeOf(err) != sandbox.CodeInvalid {
				t.Errorf("got %v", err)
			}
			return
		}
		if n := uint64(bytes.Count(data, []byte("\n"))); rep.Head.Seq != n || rep.Records+rep.Repairs != n {
			t.Errorf("%d lines, %+v", n, rep)
		}
		if len(data) == 0 {
			return
		}
		changed := bytes.Clone(data)
		changed[int(at)%len(data)] = with
		if bytes.Equal(changed, data) {
			return
		}
		if _, err := Verify(bytes.NewReader(changed), VerifyOptions{Head: rep.Head.Hash}); err == nil {
			t.Errorf("byte %d was changed unseen", int(at)%len(data))
		}
	})
}
