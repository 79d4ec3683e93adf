package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// finding is one breach: where, and what.
type finding struct{ where, what string }

func (f finding) String() string { return f.where + ": " + f.what }

// check finds the imports that break the rule.
func (r imports) check(t *tree) []finding {
	var found []finding
	for _, f := range t.code() {
		if r.who != nil && !anyMatches(r.who, f.dir) || anyMatches(r.except, f.dir) {
			continue
		}
		for _, imported := range f.imports {
			if !allowed(r.only, r.never, imported) {
				found = append(found, finding{f.name, "imports " + imported})
			}
		}
	}
	return found
}

// check finds what the packages of the rule pull in against it, and by whom.
func (r reach) check(packages []listed) []finding {
	importers := map[string][]string{}
	for _, p := range packages {
		for _, imported := range p.Imports {
			importers[imported] = append(importers[imported], p.ImportPath)
		}
	}
	var found []finding
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, ".") || r.who == nil && p.Name != "main" || r.who != nil && !anyMatches(r.who, p.ImportPath) {
			continue
		}
		for _, dep := range p.Deps {
			if allowed(r.only, r.never, dep) {
				continue
			}
			for _, by := range importers[dep] {
				if (by == p.ImportPath || slices.Contains(p.Deps, by)) && !anyMatches(r.past, by) {
					found = append(found, finding{p.ImportPath, fmt.Sprintf("reaches %s by %s", dep, by)})
				}
			}
		}
	}
	return found
}

// backendDoors is the rule that has a variable in it: only drivers/<x> imports
// internal/backends/<x>, beside the backend itself.
func backendDoors(t *tree) []finding {
	const room = "./internal/backends/"
	var found []finding
	for _, f := range t.code() {
		for _, imported := range f.imports {
			rest, ok := strings.CutPrefix(imported, room)
			if !ok {
				continue
			}
			name, _, _ := strings.Cut(rest, "/")
			if !anyMatches([]string{room + name + "/...", "./drivers/" + name}, f.dir) {
				found = append(found, finding{f.name, "imports " + imported + ", which is behind the door ./drivers/" + name})
			}
		}
	}
	return found
}

// namelessRooms finds packages, or folders on the way to one, whose name is a
// lumber room's.
func namelessRooms(t *tree) []finding {
	var found []finding
	for _, dir := range t.dirs() {
		for part := range strings.SplitSeq(dir, "/") {
			if slices.Contains(rooms, part) {
				found = append(found, finding{dir, fmt.Sprintf("%q does not say what is inside", part)})
			}
		}
	}
	for _, f := range t.files {
		if name := f.syntax.Name.Name; slices.Contains(rooms, name) && path.Base(f.dir) != name {
			found = append(found, finding{f.name, fmt.Sprintf("package %s does not say what is inside", name)})
		}
	}
	return found
}

// longFiles finds files past the length at which they are split.
func longFiles(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if f.lines > longest && !generated(f.syntax) {
			found = append(found, finding{f.name, fmt.Sprintf("%d lines; split at %d", f.lines, longest)})
		}
	}
	return found
}
