package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

const (
	genesis = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	// maxRecord bounds a line with a record, in bytes. One with a repair holds
	// a part of such a line in base64.
	maxRecord = 512 << 10
	maxLine   = 1 << 20
)

// entry is one line.
type entry struct {
	Seq    uint64          `json:"seq"`
	Prev   string          `json:"prev"`
	Record json.RawMessage `json:"record,omitempty"`
	Repair *repair         `json:"repair,omitempty"`
}

// repair tells of a half-written line that was taken out of the file.
type repair struct {
	Time time.Time `json:"time"`
	Cut  []byte    `json:"cut"` // what there was of it
}

// Head is where a chain has come to.
type Head struct {
	Seq  uint64 // how many entries there are
	Hash string // of the last one, "sha256:…"
}

// next gives the line that continues the chain, and the head after it.
func (h Head) next(record any, rep *repair) ([]byte, Head, error) {
	e := entry{Seq: h.Seq + 1, Prev: h.Hash, Repair: rep}
	if record != nil {
		raw, err := json.Marshal(record)
		if err != nil {
			return nil, h, err
		}
		e.Record = raw
	}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, h, err
	}
	return append(line, '\n'), Head{e.Seq, hash(line)}, nil
}

// start is how every line that continues the chain begins.
func (h Head) start() string { return fmt.Sprintf(`{"seq":%d,"prev":%q,"re`, h.Seq+1, h.Hash) }

// hash is that of a line without its end.
func hash(line []byte) string {
	sum := sha256.Sum256(line)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// parse reads a line, without its end, and refuses what another reader could
// read otherwise: there is one way to write an entry.
func parse(line []byte) (entry, error) {
	var e entry
	if !utf8.Valid(line) {
		return e, errors.New("it is no UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("it is no entry: %w", err)
	}
	if (e.Record == nil) == (e.Repair == nil) {
		return e, errors.New("it has not exactly one of record and repair")
	}
	if canonical, err := json.Marshal(e); err != nil || !bytes.Equal(canonical, line) {
		return e, errors.New("it is not written as an entry is: white space, an escape, or a field twice or out of order")
	}
	if e.Record != nil {
		if err := unambiguous(e.Record); err != nil {
			return e, err
		}
		if e.Record[0] != '{' {
			return e, errors.New("it holds no record")
		}
		var r sandbox.Record
		if err := json.Unmarshal(e.Record, &r); err != nil {
			return e, fmt.Errorf("it holds no record: %w", err)
		}
	}
	return e, nil
}

// unambiguous refuses an object with a field twice, of which readers take
// different ones, at any depth.
func unambiguous(raw []byte) error {
	type level struct {
		object bool
		value  bool // the next token is a field's value
		seen   map[string]bool
	}
	var levels []level
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		delim, isDelim := tok.(json.Delim)
		if isDelim && (delim == '}' || delim == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].object {
			in := &levels[n-1]
			if in.value = !in.value; in.value {
				// encoding/json takes fields whatever their case.
				name := strings.ToLower(fmt.Sprint(tok))
				if in.seen[name] {
					return fmt.Errorf("its field %q is there twice", name)
				}
				in.seen[name] = true
				continue
			}
		}
		if isDelim {
			levels = append(levels, level{object: delim == '{', seen: map[string]bool{}})
		}
	}
}
