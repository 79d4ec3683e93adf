package docker

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// The context ends while the engine holds back its answer to one call, or just
// after it gave it. What is reported is the context's own error, joined with
// leaked only where the sandbox may be there though it should not.
func TestM176CancellingAnyCallIsTheContextsErrorAndSaysLeakedOnlyOfAKill(t *testing.T) {
	for name, c := range map[string]struct {
		calls []string
		do    func(ctx context.Context, b *Backend, sb driver.Sandbox) error
		kills bool
	}{
		"attach": {[]string{"inspect"}, func(ctx context.Context, b *Backend, sb driver.Sandbox) error {
			_, err := b.Attach(ctx, sb.Status().ID)
			return err
		}, false},
		"list": {[]string{"list"}, func(ctx context.Context, b *Backend, _ driver.Sandbox) error {
			for _, err := range b.List(ctx, nil) {
				if err != nil {
					return err
				}
			}
			return nil
		}, false},
		"start": {[]string{"exec", "execstart", "wait"}, func(ctx context.Context, _ *Backend, sb driver.Sandbox) error {
			_, err := sb.Start(ctx, driver.Cmd{Args: []string{"true"}, Timeout: time.Minute})
			return err
		}, false},
		"files": {[]string{"exec", "execstart"}, func(ctx context.Context, _ *Backend, sb driver.Sandbox) error {
			_, err := sb.Files().Stat(ctx, "x")
			return err
		}, false},
		"kill": {[]string{"remove", "inspect"}, func(ctx context.Context, _ *Backend, sb driver.Sandbox) error { return sb.Kill(ctx) }, true},
	} {
		for _, call := range c.calls {
			for _, how := range []fault{hang, none} {
				t.Run(name+"/"+call+map[fault]string{hang: "/during", none: "/after"}[how], func(t *testing.T) {
					f := newFake(t)
					b := f.open(t)
					creator, err := b.Create(limited(t, 20*time.Second), testSpec("one"))
					if err != nil {
						t.Fatal(err)
					}
					sb, err := b.Attach(t.Context(), creator.Status().ID)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(limited(t, 20*time.Second))
					defer cancel()
					f.hook(func(got string, w http.ResponseWriter) fault {
						switch {
						case got == "remove" && call == "inspect":
							f.fail(w, 409, "removal of container is already in progress")
							return answered
						case got != call:
							return none
						case how == hang:
							time.AfterFunc(10*time.Millisecond, cancel)
						}
						return how
					}, func(got string) {
						if got == call && how == none {
							cancel()
						}
					})
					err = c.do(ctx, b, sb)
					cancelled := ctx.Err() != nil // else the fake guest, which runs no program, said so first
					left := f.find(sb.Status().ID) != nil
					switch leaks := errors.Is(err, driver.CodeLeaked); {
					case err == nil && c.kills && left:
						t.Error("it is there, and nobody says so")
					case err == nil, !cancelled && !c.kills:
					case !errors.Is(err, context.Canceled):
						t.Errorf("not the context's own error: %v", err)
					case leaks != c.kills:
						t.Errorf("leaked: %v", err)
					}
					f.hook(nil, nil)
					if err := creator.Kill(limited(t, 20*time.Second)); err != nil || len(f.left()) > 0 {
						t.Errorf("afterwards: %v, left %v", err, f.left())
					}
				})
			}
		}
	}
}
