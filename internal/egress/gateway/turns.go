package gateway

import (
	"context"
	"errors"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// maxTurns is how many clients have a turn at a time.
const maxTurns = 32

// Turns bound the memory of what clients say later than their first words and
// what is kept until it is whole: further requests' heads, and second
// ClientHellos. One client's silence delays others with the same Turns, and so
// no two sandboxes have the same.
type Turns chan struct{}

// NewTurns makes Turns, of which none is taken.
func NewTurns() Turns { return make(Turns, maxTurns) }

// take calls pass when there is a turn. Waiting and pass may take FirstWords
// together: then shut is called, which has to end pass, and it is a refusal.
func (t Turns) take(ctx context.Context, shut func(), pass func() error) error {
	ctx, cancel := context.WithTimeout(ctx, FirstWords)
	defer cancel()
	stop := context.AfterFunc(ctx, shut)
	defer stop()
	var err error
	select {
	case t <- struct{}{}:
		defer func() { <-t }()
		err = pass()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && Refused(err) == "" {
		return refuse(egress.Slow, "what follows its first words")
	}
	return err
}
