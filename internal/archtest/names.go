package archtest

import (
	"fmt"
	"go/ast"
	"strings"
)

// check finds the rule's words in imports and in identifiers. Strings, comments
// and tests are free: a host's name is data.
func (r vocabulary) check(t *tree) []finding {
	var found []finding
	for _, f := range t.code() {
		if !anyMatches(r.who, f.dir) {
			continue
		}
		for _, imported := range f.imports {
			if word := r.wordIn(imported); word != "" {
				found = append(found, finding{f.name, fmt.Sprintf("imports %s, which names %s", imported, word)})
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if word := r.wordIn(id.Name); word != "" {
					found = append(found, finding{f.pos.Position(id.Pos()).String(), fmt.Sprintf("identifier %s names %s", id.Name, word)})
				}
			}
			return true
		})
	}
	return found
}

func (r vocabulary) wordIn(s string) string {
	s = strings.ToLower(s)
	for _, word := range r.words {
		if strings.Contains(s, word) {
			return word
		}
	}
	return ""
}
