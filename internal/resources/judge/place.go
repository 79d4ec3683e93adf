package judge

import (
	"maps"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
)

// Places says which attributes the fields of requests and findings stand for:
// "network.egress[2].cidr" is an attribute of a template, but of a sandbox it
// is something inside its template.
type Places struct {
	Fields map[string]path.Path // by the whole field, or by its first word, which the rest of the field follows
	Else   path.Path            // for every other field, whose rest is dropped
}

// Same are fields that are attributes of the same name.
func Same(names ...string) Places {
	p := Places{Fields: map[string]path.Path{}}
	for _, n := range names {
		p.Fields[n] = path.Root(n)
	}
	return p
}

// With is p with one more field.
func (p Places) With(field string, at path.Path) Places {
	p.Fields = maps.Clone(p.Fields)
	p.Fields[field] = at
	return p
}

// sets are fields whose elements have no index in Terraform.
var sets = map[string]bool{"secrets": true, "ports": true, "expose": true}

// Of gives the attribute for a field such as "resources.pids" or
// `env["TOKEN"]`. What cannot be read leads to the nearest thing that can.
func (p Places) Of(field string) path.Path {
	if at, ok := p.Fields[field]; ok {
		return at
	}
	first, rest := field, ""
	if i := strings.IndexAny(field, ".["); i >= 0 {
		first, rest = field[:i], field[i:]
	}
	at, ok := p.Fields[first]
	if !ok {
		return p.Else
	}
	for last := first; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "["):
			if quoted, err := strconv.QuotedPrefix(rest[1:]); err == nil && strings.HasPrefix(rest[1+len(quoted):], "]") {
				key, err := strconv.Unquote(quoted)
				if err != nil {
					return at
				}
				at, rest, last = at.AtMapKey(key), rest[len(quoted)+2:], ""
				continue
			}
			digits, after, ok := strings.Cut(rest[1:], "]")
			n, err := strconv.ParseUint(digits, 10, 31)
			if !ok || err != nil || sets[last] {
				return at
			}
			at, rest, last = at.AtListIndex(int(n)), after, ""
		case strings.HasPrefix(rest, ".") && len(rest) > 1:
			rest = rest[1:]
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return at
			}
			last = rest[:end]
			at, rest = at.AtName(last), rest[end:]
		default:
			return at
		}
	}
	return at
}
