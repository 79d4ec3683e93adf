package gateway

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// Refusal is why bytes were not passed on.
type Refusal struct {
	Reason egress.Reason
	Detail string // ours, never a byte of what was sent
}

func (r *Refusal) Error() string {
	if r.Detail == "" {
		return r.Reason.Text()
	}
	return r.Reason.Text() + ": " + r.Detail
}

func refuse(r egress.Reason, detail string, args ...any) error {
	return &Refusal{r, fmt.Sprintf(detail, args...)}
}

// reasonOf is the reason of a refusal; anything else that ends a connection
// early is told by what was being read.
func reasonOf(err error, otherwise egress.Reason) egress.Reason {
	if why := Refused(err); why != "" {
		return why
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return egress.Slow
	}
	return otherwise
}

// Refused is the reason of a refusal, "" of any other end.
func Refused(err error) egress.Reason {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Reason
	}
	return ""
}

// whole makes an end in the middle an error of its own.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
