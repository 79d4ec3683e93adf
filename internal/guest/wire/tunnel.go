package wire

// A tunnel carries one connection that a program inside made to ProxyPort. The
// guest sends frames: content as TagStdout, TagEnd when the program has said
// all, and TagError, at any time and last, when its connection is gone in both
// directions. The host sends bare bytes, and says all with the stream's end.
const (
	// ProxyPort of 127.0.0.1 is where the guest listens once it was told to.
	ProxyPort = 3128

	// MaxTunnels is how many connections there are at a time. The others wait
	// in the kernel, which takes and answers no byte of theirs.
	MaxTunnels = 64
)
