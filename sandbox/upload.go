package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Upload writes the directories and regular files of src, dotfiles and modes
// included, into the sandbox's directory name, which is made with its parents
// if it is missing. What is there already stays, but for files of the same
// name.
//
// Symbolic links are not followed and not carried, since they could lead out
// of src; neither are devices, FIFOs and sockets, nor setuid, setgid and
// sticky bits. The report says what was left out. Give [os.Root.FS] for a
// directory that others may write to.
//
// Each file appears whole. When Upload fails, or ctx ends, those that were
// whole by then may be there, and no part of another is.
func (f *Files) Upload(ctx context.Context, src fs.FS, name string) (archive.Report, error) {
	return operate(ctx, f, "upload", func(d driver.Files) (archive.Report, error) {
		if src == nil {
			return archive.Report{}, driver.Invalid("src", "there is nothing to upload", "give os.DirFS(dir)")
		}
		// A stream that does not come to its end is given up with its context.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w, err := d.Unpack(ctx, name)
		if err != nil {
			return archive.Report{}, err
		}
		to := &sending{w: w}
		b := bufio.NewWriterSize(to, 64<<10)
		report, err := archive.Write(ctx, b, src)
		if err == nil {
			err = b.Flush()
		}
		if err != nil {
			cancel()
			_ = w.Close()
			return report, to.cause(err)
		}
		return report, w.Close()
	}, nil)
}

// sending tells an error of the sandbox's from one of what is sent.
type sending struct {
	w   io.Writer
	err error
}

func (s *sending) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

func (s *sending) cause(err error) error {
	switch {
	case s.err != nil:
		return s.err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &Error{Code: CodeInvalid, Field: "src", Err: err, Hint: "every file of src must be readable and stay as it is meanwhile"}
}
