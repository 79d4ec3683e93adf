package archive

// Limits bound what an archive may hold. A field that is zero has the default
// that it names; a negative one allows nothing.
type Limits struct {
	Bytes   int64 // of all files together, holes counted; zero is 1 GiB
	Entries int   // of any kind; zero is 100,000
	Depth   int   // parts of a name; zero is 128
	Name    int   // bytes of a whole name; zero is 4096
}

const (
	defaultBytes   = 1 << 30
	defaultEntries = 100_000
	defaultDepth   = 128
	defaultName    = 4096

	maxPart = 255 // bytes of one part of a name, on any system
)

func (l Limits) resolved() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Entries == 0 {
		l.Entries = defaultEntries
	}
	if l.Depth == 0 {
		l.Depth = defaultDepth
	}
	if l.Name == 0 {
		l.Name = defaultName
	}
	return l
}

// overhead is what a stream may have beside its files' content, so that one
// of nothing but headers ends too.
func (l Limits) overhead() int64 { return 16<<20 + int64(max(l.Entries, 0))*(16<<10) }
