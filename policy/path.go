package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"
)

// A path leads to a place in the document: strings are keys, ints are
// indices, and any stands for every key or index.
type path []any

type anyStep struct{}

// parsePath reads "network.egress[2].cidr" and `env["A.B"]`.
func parsePath(s string) (path, error) {
	bad := func() (path, error) {
		return nil, driver.Invalid("path", fmt.Sprintf("%q is not a path", s), `write paths as network.egress[2].cidr or env["NAME"]`)
	}
	var p path
	for rest := s; rest != ""; {
		switch {
		case rest[0] == '[':
			if quoted, err := strconv.QuotedPrefix(rest[1:]); err == nil {
				key, err := strconv.Unquote(quoted)
				if err != nil || !strings.HasPrefix(rest[1+len(quoted):], "]") {
					return bad()
				}
				p, rest = append(p, key), rest[len(quoted)+2:]
			} else {
				digits, after, ok := strings.Cut(rest[1:], "]")
				n, err := strconv.ParseUint(digits, 10, 31)
				if !ok || err != nil {
					return bad()
				}
				p, rest = append(p, int(n)), after
			}
			if rest != "" && rest[0] != '[' && rest[0] != '.' {
				return bad()
			}
		default:
			if len(p) > 0 {
				if rest[0] != '.' {
					return bad()
				}
				rest = rest[1:]
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return bad()
			}
			p, rest = append(p, rest[:end]), rest[end:]
		}
	}
	if len(p) == 0 {
		return bad()
	}
	return p, nil
}

// parseOpen is parsePath, with what "[*]" stands for.
func parseOpen(s string, open any) (path, error) {
	const mark = "[2147483646]" // no list is that long
	if strings.Contains(s, mark) {
		return nil, driver.Invalid("path", fmt.Sprintf("%q is out of range", s), "indices are small numbers")
	}
	p, err := parsePath(strings.ReplaceAll(s, "[*]", mark))
	for i, step := range p {
		if step == 2147483646 {
			p[i] = open
		}
	}
	return p, err
}

func (p path) String() string {
	var b strings.Builder
	for i, step := range p {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		case anyStep:
			b.WriteString("[*]")
		case string:
			switch {
			case !isWord(s) || i == 1 && freeKeys[p[0]]:
				fmt.Fprintf(&b, "[%q]", s)
			case i > 0:
				b.WriteString("." + s)
			default:
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

// freeKeys are the fields whose keys the author chose.
var freeKeys = map[any]bool{"env": true, "labels": true, "build_args": true, "files": true}

// isWord reports whether s is a field's name rather than a free key.
func isWord(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return s != ""
}

// under reports whether p is at or below top.
func (p path) under(top path) bool {
	return len(p) >= len(top) && p.meets(top)
}

// meets reports whether one of p and q contains the other.
func (p path) meets(q path) bool {
	for i := range min(len(p), len(q)) {
		_, wild := p[i].(anyStep)
		_, also := q[i].(anyStep)
		if p[i] != q[i] && !wild && !also {
			return false
		}
	}
	return true
}
