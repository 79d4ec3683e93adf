package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Within is how long an attempt may take.
const Within = 8 * time.Second

// Main is the program: "try NAME ENV", "agent" or "canary WORLD".
func Main(args []string) int {
	switch {
	case len(args) == 2 && args[0] == "canary":
		if err := serve(args[1]); err != nil {
			_ = json.NewEncoder(os.Stdout).Encode(Told{Error: err.Error()})
			return 1
		}
		return 0
	case len(args) == 1 && args[0] == "agent":
		if err := agent(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case len(args) == 3 && args[0] == "try":
		var env Env
		if err := json.Unmarshal([]byte(args[2]), &env); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		f, ok := attempts[args[1]]
		if !ok {
			fmt.Fprintf(os.Stderr, "there is no attempt %q\n", args[1])
			return 1
		}
		ctx, cancel := context.WithTimeout(context.Background(), Within)
		defer cancel()
		done := make(chan Result, 1)
		go func() {
			said, err := f(&try{ctx, env})
			r := Result{Attempt: args[1], Said: said}
			if err != nil {
				r.Said, r.Failed = err.Error(), true
			}
			r.Unfinished = ctx.Err() != nil
			done <- r
		}()
		select {
		case r := <-done:
			return print(r)
		case <-ctx.Done():
			return print(Result{Attempt: args[1], Said: "no end within " + Within.String(), Failed: true, Unfinished: true})
		}
	}
	fmt.Fprintln(os.Stderr, "sandboxio egress prove starts this program")
	return 1
}

// agent tries each Order that it reads, in a process of its own, some at a
// time, and tells each Result.
func agent() error {
	in := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, AtOnce)
	for {
		var o Order
		if err := in.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			r := o.carryOut()
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(r)
		})
	}
}

func (o Order) carryOut() Result {
	env, err := json.Marshal(o.Env)
	if err != nil {
		return o.unfinished(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*Within)
	defer cancel()
	text, err := exec.CommandContext(ctx, "/proc/self/exe", "try", o.Attempt, string(env)).Output()
	if err != nil {
		return o.unfinished(err)
	}
	return o.result(text)
}

// result reads what a process says of an attempt.
func (o Order) result(text []byte) Result {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return o.unfinished(err)
	}
	if r.Attempt != o.Attempt {
		return o.unfinished(fmt.Errorf("it tells of %q", r.Attempt))
	}
	return r
}

func (o Order) unfinished(err error) Result {
	return Result{Attempt: o.Attempt, Said: err.Error(), Failed: true, Unfinished: true}
}

func print(r Result) int {
	if json.NewEncoder(os.Stdout).Encode(r) != nil {
		return 1
	}
	return 0
}
