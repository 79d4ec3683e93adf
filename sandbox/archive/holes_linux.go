package archive

import (
	"errors"
	"io"
	"os"
	"syscall"
)

const (
	seekData = 3
	seekHole = 4

	maxSpans = 4096 // of a file with more, the holes are sent as zeros
)

// spans finds where a file of that size has data; ok is false when holes are
// not known, or not worth it. The file is at its beginning afterwards.
func spans(f *os.File, size int64) (data []span, ok bool) {
	defer func() {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			ok = false
		}
	}()
	stored := int64(0)
	for at := int64(0); at < size; {
		from, err := f.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) { // nothing but a hole
			break
		}
		if err != nil {
			return nil, false
		}
		to, err := f.Seek(from, seekHole)
		if err != nil || to <= from {
			return nil, false
		}
		if from, to = min(from, size), min(to, size); from < to {
			data = append(data, span{from, to - from})
			stored += to - from
		}
		if at = to; len(data) > maxSpans {
			return nil, false
		}
	}
	return data, size-stored >= worthwhile
}
