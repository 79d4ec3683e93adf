package gateway

import (
	"bufio"
	"errors"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/egress"
)

// MaxHead is how many bytes the head of an HTTP request may take.
const MaxHead = 32 << 10

// readLine reads a line of at most limit bytes, its end not counted, and gives
// it without its end, which is CR LF and nothing else. Neither CR nor LF nor
// NUL is in what it gives.
func readLine(r *bufio.Reader, limit int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit+len("\r\n") {
			return "", refuse(egress.BadHTTP, "a line or the whole head is too long")
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if len(line) > 0 {
				err = whole(err)
			}
			return "", err
		}
		break
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok || strings.ContainsAny(text, "\r\x00") {
		return "", refuse(egress.BadHTTP, "a line ends in something else than CR LF")
	}
	return text, nil
}

// isToken reports whether s is a token of HTTP: a method, or a field's name.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// isVisible reports whether s is printable ASCII without blanks.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// isFieldValue reports whether s has no control characters but tabs.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
