// Package sandbox gives a program a closed place to run code that nobody has
// read: for one run, or for as long as its lifetime allows.
//
//	rt := sandbox.New(backend, sandbox.Options{Guard: guard})
//	res, err := rt.Run(ctx, sandbox.Spec{Image: image}, sandbox.Cmd{Args: []string{"make", "test"}})
//
//	sb, err := rt.Create(ctx, sandbox.Spec{Image: image})
//	defer sb.Close()
//	res, err := sb.RunCode(ctx, sandbox.Source{Language: "python", Text: code})
//
// What it promises, on every backend that declares it:
//
//   - A control that was asked for is applied, or creation fails.
//   - A sandbox reaches no network unless a rule opens it.
//   - Every sandbox ends: a lifetime (300 s unless said otherwise) and every
//     command's timeout are mandatory, and after the creator died nothing of
//     an owned sandbox runs on.
//   - CPU, memory, disk and process caps always apply.
//   - Secrets travel apart from env and appear in no log, error or record of
//     ours. A program's output is its own, and handed over as it is.
//   - Isolation is measured, and reported with its evidence.
//
// What it does not: make untrusted code safe on the container tier, defend
// against prompt injection, or manage who may run what.
//
// A [Spec] is a wish whose zero value is strict; a [driver.Spec] is the order
// that follows from it, in which nothing is left open. The package and
// everything below it import the standard library only, start no goroutine
// and open no connection on import.
package sandbox
