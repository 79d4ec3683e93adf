package mutant

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/drivertest"
)

var streams = []Mutant{
	{
		Name: "it drops stderr",
		Lie: wrap(lie{recv: func(ctx context.Context, p driver.Process) (driver.Chunk, error) {
			for {
				c, err := p.Recv(ctx)
				if err != nil || c.Stream != driver.Stderr {
					return c, err
				}
			}
		}}),
		Fails: []string{
			"streams: stdout and stderr arrive apart (M63)",
			"streams: the result comes without its output being read",
			"run: the one call gives the result and leaves nothing",
			"records: there is one of each operation, true to what happened",
		},
	},
	{
		Name: "it leaves stdin open",
		Lie: wrap(lie{cmd: func(_ driver.Spec, c driver.Cmd) driver.Cmd {
			c.Stdin = true
			return c
		}}),
		Fails: []string{
			"streams: no stdin is end of file (M46, M47)",
			"streams: a program that was given no stdin cannot be written to",
		},
	},
	{
		Name: "it takes output for text",
		Lie: wrap(lie{recv: func(ctx context.Context, p driver.Process) (driver.Chunk, error) {
			c, err := p.Recv(ctx)
			c.Data = bytes.ToValidUTF8(c.Data, []byte("\ufffd"))
			return c, err
		}}),
		Fails: []string{
			"exec: arguments arrive as they were given (M45, M98)",
			"streams: stdin arrives whole, then ends (M48, M49)",
			"streams: output is bytes (M59)",
			"env: values arrive byte for byte (M100, M101)",
			"files: every legal name serves, as bytes (M88, M95)",
		},
	},
	{
		Name: "it cuts stdin",
		Lie:  wrap(lie{stdin: func(w io.WriteCloser) io.WriteCloser { return &cutting{w, 64 << 10} }}),
		Fails: []string{
			"streams: stdin arrives whole, then ends (M48, M49)",
		},
	},
	{
		Name: "it keeps stdin until it is closed",
		Lie: fresh(func(drivertest.Harness) lie {
			var all sync.Map
			return lie{stdin: func(w io.WriteCloser) io.WriteCloser {
				kept, _ := all.LoadOrStore(w, &keeping{WriteCloser: w})
				return kept.(io.WriteCloser) //nolint:forcetypeassert // nothing else is stored
			}}
		}),
		Fails: []string{
			"streams: stdin arrives as it is written, not only at its end",
			"streams: a program that was given no stdin cannot be written to",
		},
	},
	{
		Name: "it calls a broken pipe something else",
		Lie:  wrap(lie{stdin: func(w io.WriteCloser) io.WriteCloser { return vague{w} }}),
		Fails: []string{
			"streams: writing to a program that closed its stdin fails with EPIPE",
			"streams: a program that reads no stdin keeps its exit code",
			"streams: a program that was given no stdin cannot be written to",
		},
	},
	{
		Name: "it reads every piece into one buffer",
		Lie: fresh(func(drivertest.Harness) lie {
			var mu sync.Mutex
			buffers := map[driver.Process][]byte{}
			return lie{recv: func(ctx context.Context, p driver.Process) (driver.Chunk, error) {
				c, err := p.Recv(ctx)
				mu.Lock()
				defer mu.Unlock()
				if buffers[p] == nil {
					buffers[p] = make([]byte, 1<<20)
				}
				n := copy(buffers[p], c.Data)
				c.Data = buffers[p][:n:n]
				return c, err
			}}
		}),
		Fails: []string{
			"streams: output keeps its order, and each piece is the reader's own",
		},
	},
	{
		Name: "it drops the output of what it has told the end of",
		Lie: fresh(func(drivertest.Harness) lie {
			var told sync.Map
			return lie{
				wait: func(ctx context.Context, p driver.Process) (driver.Exit, error) {
					exit, err := p.Wait(ctx)
					if err == nil {
						told.Store(p, true)
					}
					return exit, err
				},
				recv: func(ctx context.Context, p driver.Process) (driver.Chunk, error) {
					if _, ok := told.Load(p); ok {
						return driver.Chunk{}, io.EOF
					}
					return p.Recv(ctx)
				},
			}
		}),
		Fails: []string{
			"streams: the result waits for nobody who holds the pipes (M39)",
			"streams: the result comes without its output being read",
			"streams: what a program writes last is there, however fast it ends (M65)",
		},
	},
	{
		Name: "it keeps a megabyte of output, and says nothing",
		Lie: fresh(func(drivertest.Harness) lie {
			return limited(func(context.Context, driver.Process) error { return nil })
		}),
		Fails: []string{
			"streams: output larger than any buffer arrives whole (M79)",
			"streams: eight at once, each gets all of its own",
			"output: read to its end, it is whole and the program has ended",
		},
	},
	{
		Name: "its streams break after a megabyte",
		Lie: fresh(func(drivertest.Harness) lie {
			return limited(func(ctx context.Context, p driver.Process) error {
				return &driver.Error{Code: driver.CodeInternal, Op: "output"}
			})
		}),
		Fails: []string{
			"run: output beyond what is wanted is cut and said to be, not the program",
			"streams: output larger than any buffer arrives whole (M79)",
			"streams: eight at once, each gets all of its own",
			"output: read to its end, it is whole and the program has ended",
			"wait: what nobody has read is dropped, and the exit comes",
		},
	},
	{
		Name: "it reads ahead without end",
		Lie: fresh(func(h drivertest.Harness) lie {
			return lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
				if args, ok := says(h, cmd, drivertest.Flood); ok && len(args) == 1 && len(args[0]) > 8 {
					cmd.Args = h.Programs.Argv(drivertest.Flood, "1000") // as if the rest lay somewhere
				}
				return s.Start(ctx, cmd)
			}}
		}),
		Fails: []string{
			"streams: a reader that stops stops its program, not the neighbours (M76)",
		},
	},
	{
		Name: "it mixes up the output of two programs",
		Lie: fresh(func(h drivertest.Harness) lie {
			var mu sync.Mutex
			last := map[string]driver.Cmd{}
			return lie{start: func(ctx context.Context, s driver.Sandbox, cmd driver.Cmd) (driver.Process, error) {
				if _, ok := says(h, cmd, drivertest.Args); ok && cmd.Env == nil {
					mu.Lock()
					id := s.Status().ID
					before, ok := last[id]
					last[id] = cmd
					mu.Unlock()
					if ok {
						cmd = before
					}
				}
				return s.Start(ctx, cmd)
			}}
		}),
		Fails: []string{
			"exec: programs run side by side, each with its own output",
			"attach: several who joined at once get each their own answers",
			"handle: many goroutines use one at once",
		},
	},
}

// cutting drops what is beyond its limit.
type cutting struct {
	io.WriteCloser
	left int
}

func (c *cutting) Write(b []byte) (int, error) {
	n := min(len(b), c.left)
	c.left -= n
	if n, err := c.WriteCloser.Write(b[:n]); err != nil {
		return n, err
	}
	return len(b), nil
}

// keeping writes nothing before its end.
type keeping struct {
	io.WriteCloser
	mu   sync.Mutex
	data []byte
}

func (k *keeping) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.data) > 4<<20 { // it has to end somewhere
		if n, err := k.WriteCloser.Write(b); err != nil {
			return n, err
		}
	}
	k.data = append(k.data, b...)
	return len(b), nil
}

func (k *keeping) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, err := k.WriteCloser.Write(k.data)
	return errors.Join(err, k.WriteCloser.Close())
}

// vague has one error for everything.
type vague struct{ io.WriteCloser }

func (v vague) Write(b []byte) (int, error) {
	n, err := v.WriteCloser.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = &driver.Error{Code: driver.CodeInternal, Op: "stdin"}
	}
	return n, err
}

// limited gives a megabyte of each program's output, and then what broken
// says, or the end.
func limited(broken func(context.Context, driver.Process) error) lie {
	var mu sync.Mutex
	got := map[driver.Process]int{}
	return lie{recv: func(ctx context.Context, p driver.Process) (driver.Chunk, error) {
		mu.Lock()
		n := got[p]
		mu.Unlock()
		c, err := p.Recv(ctx)
		if err != nil {
			return c, err
		}
		if n >= 1<<20 {
			if err := broken(ctx, p); err != nil {
				return driver.Chunk{}, err
			}
			for err == nil { // the program goes on; what it says is lost
				_, err = p.Recv(ctx)
			}
			return driver.Chunk{}, err
		}
		mu.Lock()
		got[p] += len(c.Data)
		mu.Unlock()
		return c, nil
	}}
}
