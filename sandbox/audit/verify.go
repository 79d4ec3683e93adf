package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
)

// VerifyOptions say what is expected of a file. The zero value expects a whole
// chain, of any length.
type VerifyOptions struct {
	// Head is a hash that was noted before, "sha256:…". The line that has it
	// must be there: then nothing up to it was changed, removed or inserted.
	// Lines may follow it; Report.After counts them. "" expects none.
	Head string
}

// Report is what there is in a chain, up to the first bad line.
type Report struct {
	Head    Head
	Records uint64
	Repairs uint64 // lines that a crash left half written
	After   uint64 // entries that follow the expected head
}

var headForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Verify reads a file from its first line to its last and tells the first that
// is wrong, and how. It needs the memory of one line. A file that is being
// written may end within a line: copy it, or wait for the writer.
//
// Codes: invalid (Field is "line N", or "head"), unavailable (r failed).
func Verify(r io.Reader, opts VerifyOptions) (Report, error) {
	rep := Report{Head: Head{Hash: genesis}}
	if opts.Head != "" && !headForm.MatchString(opts.Head) {
		return rep, bad("head", fmt.Errorf("%q is no hash", opts.Head), "write sha256: and 64 hexadecimal digits")
	}
	found := opts.Head == "" || opts.Head == genesis
	in := bufio.NewReader(r)
	var line []byte
	for {
		var err error
		line, err = readLine(in, line[:0])
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		at := fmt.Sprintf("line %d", rep.Head.Seq+1)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return rep, bad(at, errors.New("it is longer than an entry can be"), "")
		case errors.Is(err, io.EOF):
			return rep, bad(at, errors.New("it does not end: it is being written, or was when its writer ended"), "wait, or have its writer open the file again, which repairs it")
		case err != nil:
			return rep, unavailable(err, "")
		}
		if err := rep.take(line[:len(line)-1]); err != nil {
			return rep, bad(at, err, "compare the file with a copy from another place; lines before this one are as they were written")
		}
		if found {
			rep.After++
		}
		found = found || rep.Head.Hash == opts.Head
	}
	if opts.Head == "" {
		rep.After = 0
	}
	if !found {
		return rep, bad("head", fmt.Errorf("no line has the hash %s: lines were changed or removed", opts.Head), "compare the file with a copy from another place")
	}
	return rep, nil
}

// readLine appends a line with its end; one that is too long gives
// [bufio.ErrBufferFull].
func readLine(in *bufio.Reader, to []byte) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		to = append(to, part...)
		if len(to) > maxLine {
			return to, bufio.ErrBufferFull
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return to, err
		}
	}
}

// take adds one line to the chain.
func (rep *Report) take(line []byte) error {
	e, err := parse(line)
	switch {
	case err != nil:
		return err
	case e.Seq != rep.Head.Seq+1:
		return fmt.Errorf("its number is %d, not %d: lines were removed, inserted or moved", e.Seq, rep.Head.Seq+1)
	case e.Prev != rep.Head.Hash:
		return errors.New("it does not follow the line before it: one of the two was changed, or lines were removed")
	}
	if e.Repair != nil {
		rep.Repairs++
	} else {
		rep.Records++
	}
	rep.Head = Head{e.Seq, hash(line)}
	return nil
}

func bad(field string, err error, hint string) error {
	return &sandbox.Error{Code: sandbox.CodeInvalid, Op: "audit verify", Field: field, Err: err, Hint: hint}
}
