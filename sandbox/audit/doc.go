// Package audit keeps Records so that what was done can be shown later: a file
// in which no line can be changed unseen, a queue for sinks that are slow, and
// a wrapper for sinks that may fail.
//
//	f, err := audit.OpenFile("/var/log/sandboxio/audit.jsonl", audit.FileOptions{})
//	rt := sandbox.New(backend, sandbox.Options{Guard: guard, Sinks: []sandbox.Sink{f}})
//
// # The file
//
// One line is one entry, a JSON object without white space, of three fields in
// this order:
//
//		{"seq":2,"prev":"sha256:…","record":{…}}
//
//	  - seq counts from 1.
//	  - prev is the SHA-256, in hexadecimal, of the line before it, without its
//	    line end. The first line's is that of nothing: 64 zeros.
//	  - record is a [sandbox.Record]. In its place, repair tells of a line that a
//	    crash left half written: when it was found, and the bytes there were.
//
// The hash of the last line, the head, stands for all lines before it. Nobody
// can change, remove or insert a line and keep it. Whoever can write the file
// can make up a new chain, though, or drop the newest lines: note the head
// where the writer cannot reach, and give it to [Verify].
//
// One process writes a file at a time. Rotation is the operator's: end the
// writer, note the head, move the file, start the writer. A file that is moved,
// replaced, cut or written by others while it is open fails every Record.
package audit
