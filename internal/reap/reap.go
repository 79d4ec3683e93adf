// Package reap finds sandboxes that should not be there any more, and removes
// them.
//
// A sweep lists a backend once, judges every sandbox again on our side by the
// backend's own clock, looks at each candidate a second time just before it
// kills it by id, and reports everything it saw. It never touches a sandbox
// whose time has not come, whoever owns it.
package reap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// MaxSkew is how far the backend's clock may be from ours. Beyond it one of
// the two is wrong, and a sweep would kill by a wrong clock.
const MaxSkew = 30 * time.Second

// Options choose what a sweep may remove. The zero value looks at every
// sandbox of the backend and kills nothing.
type Options struct {
	Labels map[string]string // native labels that a sandbox must all have; empty = any
	MaxAge time.Duration     // older ones go whatever their deadline; zero = deadlines only
	Kill   bool              // false reports only
}

// Item is one sandbox that is due.
type Item struct {
	ID      string
	Name    string
	State   driver.State
	Created time.Time
	Owner   string
	Reason  string // why it is due
	Removed bool
	Err     error // why it could not be removed
}

// Report is what a sweep saw and did.
type Report struct {
	Backend string
	Now     time.Time // the backend's clock
	Seen    int       // sandboxes that were looked at
	Items   []Item    // those that are due
}

// Removed counts what the sweep removed.
func (r Report) Removed() int {
	n := 0
	for _, it := range r.Items {
		if it.Removed {
			n++
		}
	}
	return n
}

// Sweep looks once at every sandbox of b that opts selects. The Report is
// valid with an error too: it holds what was done until then. Failures to
// remove single sandboxes stand in their Items and are joined in the error.
// Codes: unsupported, when b cannot list; conflict, when the clocks disagree.
func Sweep(ctx context.Context, b driver.Backend, opts Options) (Report, error) {
	rep := Report{Backend: b.Info().Name}
	now, err := clock(ctx, b)
	if err != nil {
		return rep, err
	}
	rep.Now = now
	var due []driver.Status
	for st, err := range b.List(ctx, opts.Labels) {
		if err != nil {
			return rep, err
		}
		rep.Seen++
		if opts.reason(st, now) != "" {
			due = append(due, st)
		}
	}
	for _, st := range due {
		it := Item{ID: st.ID, Name: st.Name, State: st.State, Created: st.Created, Owner: st.Facts.Owner, Reason: opts.reason(st, now)}
		if opts.Kill {
			it.Removed, it.Err = remove(ctx, b, st.ID, func(st driver.Status) bool { return opts.reason(st, now) != "" })
			if it.Err == nil && !it.Removed {
				continue // it was given more time since it was listed
			}
			err = driver.Join(err, it.Err)
		}
		rep.Items = append(rep.Items, it)
	}
	return rep, err
}

// reason says why st is due, and "" when it is not, or is none of ours to
// judge: a server may have ignored the filter.
func (o Options) reason(st driver.Status, now time.Time) string {
	native := st.Facts.Labels(driver.RoleSandbox, st.Created, st.Deadline)
	maps.Copy(native, st.Labels)
	if !driver.HasLabels(native, o.Labels) {
		return ""
	}
	if o.MaxAge > 0 && now.Sub(st.Created) > o.MaxAge {
		return fmt.Sprintf("older than %v", o.MaxAge)
	}
	return st.Overdue(now)
}

func remove(ctx context.Context, b driver.Backend, id string, stillDue func(driver.Status) bool) (bool, error) {
	sb, err := b.Attach(ctx, id)
	if errors.Is(err, driver.CodeGone) || errors.Is(err, driver.CodeNotFound) {
		return true, nil // it ended by itself meanwhile
	}
	if err != nil {
		return false, err
	}
	if !stillDue(sb.Status()) {
		return false, nil
	}
	if err := sb.Kill(ctx); err != nil {
		return false, err
	}
	return true, nil
}

func clock(ctx context.Context, b driver.Backend) (time.Time, error) {
	c, ok := driver.As[driver.Clock](b)
	if !ok || !b.Info().Can(driver.CanList) {
		return time.Time{}, &driver.Error{Code: driver.CodeUnsupported, Op: "reap", Backend: b.Info().Name,
			Err: errors.New("the backend cannot list its sandboxes"), Hint: "rely on lifetimes there"}
	}
	before := time.Now()
	now, err := c.Now(ctx)
	if err != nil {
		return now, err
	}
	// The answer was given between before and now; half the way is the best guess.
	ours := before.Add(time.Since(before) / 2)
	if skew := now.Sub(ours); skew.Abs() > MaxSkew {
		return now, &driver.Error{Code: driver.CodeConflict, Op: "reap", Backend: b.Info().Name,
			Err:  fmt.Errorf("the backend's clock is %v from ours, more than %v", skew.Round(time.Second), MaxSkew),
			Hint: "synchronise the clocks (timedatectl set-ntp true), then sweep again"}
	}
	return now, nil
}
