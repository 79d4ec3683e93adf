// Package wire is the language that the host and the guest speak: messages,
// their encoding and its limits, and nothing that acts.
//
// A connection begins with one greeting each way, the host's first; until it
// came the guest says nothing. The greeting's layout never changes, so that
// any two versions can tell that they do not match. Then follows a yamux
// session whose streams the host opens, one operation each: a byte naming the
// operation, one length-prefixed message, and what the operation says.
//
// Both sides close a stream in the same order, the host first: yamux resets a
// stream that stays half closed for long, and a reset drops what the reader
// has not taken yet.
//
// Every length is bounded before it is believed. Strings are bytes: nothing
// assumes UTF-8.
package wire
