package archive

import "fmt"

// Report says what became of an archive.
type Report struct {
	Files int
	Dirs  int
	Bytes int64 // of the files, holes counted

	// LeftOut are the first hundred things that were not carried;
	// LeftOutCount is how many there were in all.
	LeftOut      []LeftOut
	LeftOutCount int
}

const maxLeftOut = 100

// LeftOut is one thing that an archive does not carry.
type LeftOut struct {
	Name string // as it was given; quote it before printing it
	Why  string // "symbolic link", "device", …
}

// String quotes the name.
func (l LeftOut) String() string { return fmt.Sprintf("%s (%s)", quote(l.Name), l.Why) }

func (r *Report) leaveOut(name, why string) {
	if r.LeftOutCount++; len(r.LeftOut) < maxLeftOut {
		r.LeftOut = append(r.LeftOut, LeftOut{name, why})
	}
}
