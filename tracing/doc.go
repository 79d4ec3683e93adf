// Package tracing renders every Record as an OpenTelemetry span: a
// [sandbox.Sink] beside the ones that keep Records.
//
//	rt := sandbox.New(backend, sandbox.Options{Guard: guard, Sinks: []sandbox.Sink{file, tracing.New(provider)}})
//
// A span has the times at which its operation began and ended, and is a child
// of the span in the context that the operation was called with.
//
// What happens in a sandbox for an agent (code, programs, files) follows the
// semantic conventions for generative AI, which call it execute_tool; they are
// not stable yet, and these are of version 1.41. What makes, extends and
// destroys a sandbox is named after it. Attributes of our own begin with
// "sandboxio.".
//
// A span holds what a Record holds, less: no argument, code, output, path,
// environment, secret or text of an error, only its code.
//
// It is a package of its own so that a program that does not trace compiles
// none of it.
package tracing
