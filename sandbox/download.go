package sandbox

import (
	"context"
	"errors"
	"io/fs"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/archive"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// Download copies the sandbox's directory name to the host's directory dir: a
// path of the host's system, which does not exist yet (but its parent does),
// or is empty. Zero limits are those of [archive.Limits].
//
// dir is trusted, what comes is not. Only directories and regular files come,
// with their names, modification times to the second, and modes; but nobody
// except the owner may write to what came, and the owner may read it.
// Symbolic links, devices, FIFOs and sockets are left out, and so are names
// that the host's system does not have; the report says what. Names and
// content are as hostile as the code that made them.
//
// dir is changed in full or not at all, also when ctx or the sandbox ends. A
// process that is killed meanwhile leaves a directory whose name begins with
// ".sandboxio-", in dir if that exists, else beside it.
//
// Codes: exhausted (a limit, or the host's disk), conflict (dir is not empty),
// invalid (what came is no archive).
func (f *Files) Download(ctx context.Context, name, dir string, limits archive.Limits) (archive.Report, error) {
	return operate(ctx, f, "download", func(d driver.Files) (archive.Report, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		to, err := newStage(dir)
		if err != nil {
			return archive.Report{}, err
		}
		r, err := d.Pack(ctx, name)
		if err != nil {
			return archive.Report{}, driver.Join(err, to.drop())
		}
		report, err := archive.Extract(ctx, r, to.inside, archive.Options{Limits: limits, Mode: ownersAlone})
		cancel() // so that closing a stream that was not read to its end waits for nothing
		_ = r.Close()
		if err == nil {
			err = to.commit()
		}
		if err != nil {
			return archive.Report{}, driver.Join(received(err), to.drop())
		}
		return report, to.close()
	}, nil)
}

// ownersAlone keeps a mode from inside from opening the host's directory to
// others, or closing it to its owner.
func ownersAlone(want fs.FileMode) fs.FileMode {
	if want.IsDir() {
		return want&^0o022 | 0o700
	}
	return want&^0o022 | 0o400
}

// received gives what went wrong between the stream and the host's disk its
// code, if it has none.
func received(err error) error {
	bad, ok := errors.AsType[*archive.Error](err)
	if !ok {
		if c := CodeOf(err); c != CodeInternal {
			return err
		}
		return onHost(err)
	}
	e := &Error{Code: CodeInvalid, Field: "name", Err: bad, Hint: bad.Hint()}
	if bad.Limit != "" {
		e.Code, e.Field = CodeExhausted, "limits."+bad.Limit
	}
	return e
}
