package archtest

import (
	"slices"
	"strings"
)

// matches tells whether a pattern covers a package.
func matches(pattern, pkg string) bool {
	if pattern == "std" {
		return standard(pkg)
	}
	prefix, open := strings.CutSuffix(pattern, "...")
	if !open {
		return pattern == pkg
	}
	return strings.HasPrefix(pkg, prefix) || pkg == strings.TrimSuffix(prefix, "/")
}

func anyMatches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// standard tells the standard library by the go command's own rule: the first
// element of anybody else's path has a dot.
func standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return first == "vendor" || !strings.Contains(first, ".")
}

// allowed judges one import by an only list and a never list.
func allowed(only, never []string, pkg string) bool {
	return (only == nil || anyMatches(only, pkg)) && !anyMatches(never, pkg)
}

// gone lists the patterns of ours that match no package, against the planned
// ones: what is missing must be planned, and what is planned must be missing.
func gone(patterns, planned, dirs []string) []finding {
	var found []finding
	for _, pattern := range patterns {
		if !strings.HasPrefix(pattern, ".") || exists(pattern, dirs) || slices.Contains(planned, pattern) {
			continue
		}
		found = append(found, finding{"rules.go", pattern + " is named by a rule and is gone"})
	}
	for _, pattern := range planned {
		switch {
		case !slices.Contains(patterns, pattern):
			found = append(found, finding{"rules.go", pattern + " is planned and no rule names it"})
		case exists(pattern, dirs):
			found = append(found, finding{"rules.go", pattern + " is built: strike it from planned"})
		}
	}
	return found
}

func exists(pattern string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return matches(pattern, dir) })
}

// named collects the patterns of all rules.
func named() []string {
	var all []string
	for _, r := range importRules {
		all = slices.Concat(all, r.who, r.except, r.only, r.never)
	}
	for _, r := range reachRules {
		all = slices.Concat(all, r.who, r.only, r.never)
	}
	for _, r := range vocabularyRules {
		all = slices.Concat(all, r.who)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
