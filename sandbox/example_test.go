package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/memory"
	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/redact"
)

// open makes the Runtime of the examples. A program opens a real backend with
// one of the packages below drivers, and gives a Guard from package policy.
func open() *sandbox.Runtime {
	return sandbox.New(memory.Open(memory.Options{}), sandbox.Options{Unguarded: "an example"})
}

// One call creates a sandbox, runs a program in it and destroys it.
func ExampleRuntime_Run() {
	res, err := open().Run(context.Background(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"echo", "hello"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(res.Stdout))
	// Output: hello
}

// Code goes in by a file, so that no length and no quoting can go wrong.
func ExampleSandbox_RunCode() {
	ctx := context.Background()
	sb, err := open().Create(ctx, sandbox.Spec{Lifetime: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()

	res, err := sb.RunCode(ctx, sandbox.Source{Language: "python", Text: `print("it's \"quoted\"")`})
	if err != nil {
		log.Fatal(err)
	}
	stdout, _ := res.Text()
	fmt.Print(stdout)
	// Output: it's "quoted"
}

// Output comes while the program runs. Leaving the loop kills it.
func ExampleProcess_Output() {
	ctx := context.Background()
	sb, err := open().Create(ctx, sandbox.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()

	p, err := sb.Start(ctx, sandbox.Cmd{Args: []string{"yes"}, Timeout: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	bytes := 0
	for chunk, err := range p.Output() {
		if err != nil {
			log.Fatal(err)
		}
		if bytes += len(chunk.Data); bytes > 100_000 {
			break
		}
	}
	exit, err := p.Wait()
	fmt.Println(bytes > 100_000, exit.Signal, err)
	// Output: true SIGKILL <nil>
}

// Text is output for people: characters are whole wherever the chunks end.
func ExampleProcess_Text() {
	ctx := context.Background()
	sb, err := open().Create(ctx, sandbox.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()

	p, err := sb.Start(ctx, sandbox.Cmd{Args: []string{"cat"}, Stdin: strings.NewReader("pâté\n")})
	if err != nil {
		log.Fatal(err)
	}
	for text, err := range p.Text() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text.Text)
	}
	// Output: pâté
}

// A status other than 0 is a result. Err makes an error of it, for callers to
// whom it is one.
func ExampleResult_Err() {
	res, err := open().Run(context.Background(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"exit", "3"}})
	if err != nil {
		log.Fatal(err)
	}
	var failed *sandbox.ExitError
	fmt.Println(res.Exit.Code, errors.As(res.Err(), &failed), res.Err())
	// Output: 3 true exit status 3
}

// Errors have a code, and say which field is wrong and how to mend it.
func ExampleCodeOf() {
	_, err := open().Create(context.Background(), sandbox.Spec{Lifetime: -time.Second})
	fmt.Println(sandbox.CodeOf(err), errors.Is(err, sandbox.CodeInvalid))
	if problem, ok := errors.AsType[*sandbox.Error](err); ok {
		fmt.Println(problem.Field)
	}
	// Output:
	// invalid true
	// lifetime
}

// A secret reaches one command, and prints itself nowhere.
func ExampleSecret() {
	token := sandbox.NewSecret("s3cr3t")
	res, err := open().Run(context.Background(), sandbox.Spec{}, sandbox.Cmd{
		Args:    []string{"sha256", "TOKEN"},
		Secrets: map[string]sandbox.Secret{"TOKEN": token},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v %d\n", token, len(strings.TrimSpace(string(res.Stdout))))
	// Output: [secret] 64
}

// A program can print its secrets, and its output is not redacted: whoever logs
// it takes them out first.
func ExampleCmd_secrets() {
	token := sandbox.NewSecret("s3cr3t")
	res, err := open().Run(context.Background(), sandbox.Spec{}, sandbox.Cmd{
		Args:    []string{"getenv", "TOKEN"},
		Secrets: map[string]sandbox.Secret{"TOKEN": token},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(res.Stdout))
	fmt.Println(redact.New(token.Reveal()).String(string(res.Stdout)))
	// Output:
	// s3cr3t
	// [secret]
}

// A sandbox lives longer if it was created with room for that.
func ExampleSandbox_Extend() {
	ctx := context.Background()
	sb, err := open().Create(ctx, sandbox.Spec{Lifetime: time.Minute, MaxLifetime: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	if err := sb.Extend(ctx, 10*time.Minute); err != nil {
		log.Fatal(err)
	}
	fmt.Println(time.Until(sb.Status().Deadline) > 9*time.Minute)
	fmt.Println(sandbox.CodeOf(sb.Extend(ctx, 2*time.Hour)))
	// Output:
	// true
	// invalid
}

// Another process joins a sandbox by its id.
func ExampleRuntime_Attach() {
	ctx := context.Background()
	world := memory.NewWorld()
	mine := sandbox.New(memory.Open(memory.Options{World: world}), sandbox.Options{Unguarded: "an example"})
	sb, err := mine.Create(ctx, sandbox.Spec{Detached: true})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()

	theirs := sandbox.New(memory.Open(memory.Options{World: world}), sandbox.Options{})
	joined, err := theirs.Attach(ctx, sb.ID())
	if err != nil {
		log.Fatal(err)
	}
	res, err := joined.Run(ctx, sandbox.Cmd{Args: []string{"pwd"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(res.Stdout))
	// Output: /work
}

// List finds sandboxes by their labels, whoever made them.
func ExampleRuntime_List() {
	ctx := context.Background()
	rt := open()
	sb, err := rt.Create(ctx, sandbox.Spec{Labels: map[string]string{"team": "data"}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	for status, err := range rt.List(ctx, map[string]string{"team": "data"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(status.ID == sb.ID(), status.State)
	}
	// Output: true running
}

// Check says how each control would be enforced, without making anything.
func ExampleRuntime_Check() {
	plan, err := open().Check(context.Background(), sandbox.Spec{Resources: sandbox.Resources{PIDs: 64}})
	if err != nil {
		log.Fatal(err)
	}
	for _, cap := range plan.Caps {
		if cap.Name == "pids" {
			fmt.Println(cap.By)
		}
	}
	// Output: simulated 64
}

// A manifest is what Terraform reviewed. A wish may only tighten it.
func ExampleParseTemplate() {
	manifest, err := sandbox.Template{Name: "agent", Lifetime: 10 * time.Minute}.Manifest()
	if err != nil {
		log.Fatal(err)
	}
	template, err := sandbox.ParseTemplate(manifest)
	if err != nil {
		log.Fatal(err)
	}
	_, err = open().Create(context.Background(), sandbox.Spec{Template: template, Lifetime: time.Hour})
	fmt.Println(template.Name, sandbox.CodeOf(err))
	// Output: agent invalid
}

// Files go in and out byte for byte.
func ExampleFiles() {
	ctx := context.Background()
	sb, err := open().Create(ctx, sandbox.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	if err := sb.Files().Write(ctx, "data/in.txt", []byte("x"), 0o644); err != nil {
		// The directory is not there yet.
		fmt.Println(sandbox.CodeOf(err))
	}
	if err := sb.Files().Mkdir(ctx, "data", 0o755); err != nil {
		log.Fatal(err)
	}
	if err := sb.Files().Write(ctx, "data/in.txt", []byte("x"), 0o644); err != nil {
		log.Fatal(err)
	}
	got, err := sb.Files().Read(ctx, "/work/data/in.txt")
	fmt.Println(string(got), err)
	// Output:
	// not-found
	// x <nil>
}

// A LogSink writes one line for each operation.
func ExampleLogSink() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "op" || a.Key == "program" {
			return a
		}
		return slog.Attr{} // what differs from run to run, and more
	}})
	rt := sandbox.New(memory.Open(memory.Options{}), sandbox.Options{
		Unguarded: "an example",
		Sinks:     []sandbox.Sink{sandbox.LogSink{Logger: slog.New(handler)}},
	})
	if _, err := rt.Run(context.Background(), sandbox.Spec{}, sandbox.Cmd{Args: []string{"true"}}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// op=create
	// op=run program=true
	// op=close
}
