package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/sandboxio/terraform-provider-sandboxio/policies"
)

// catalogue is what the checks of a set found out about the built-in rules:
// half of the time that compiling them takes, for an answer that is the same in
// every process. A test makes it, by [compile], and holds it against the rules.
type catalogue struct {
	Sources string           `json:"sources"` // digest of the rules and the schema that were checked
	Rules   []catalogueEntry `json:"rules"`
}

type catalogueEntry struct {
	File    string   `json:"file"`
	Answers []string `json:"answers"`
	RuleInfo
}

func sourcesDigest(sources map[string]string) string {
	h := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(sources)) {
		fmt.Fprintf(h, "%q %d\n", file, len(sources[file]))
		h.Write([]byte(sources[file]))
	}
	h.Write(policies.Schema)
	return hex.EncodeToString(h.Sum(nil))
}

// builtinRules compiles the rules that are always there, once in a process and
// not before somebody asks.
var builtinRules = sync.OnceValues(func() (*ruleset, error) { return compileBuiltin(policies.Catalogue) })

// onlyChecks are the compiler's stages that look for faults, and change nothing
// of what is evaluated.
var onlyChecks = []ast.StageID{
	ast.StageCheckUnusedImports, ast.StageCheckKeywordOverrides, ast.StageCheckDuplicateImports, ast.StageCheckVoidCalls, ast.StageCheckRuleConflicts,
	ast.StageCheckUndefinedFuncs, ast.StageCheckSafetyRuleHeads, ast.StageCheckRecursion, ast.StageCheckTypes, ast.StageCheckUnsafeBuiltins,
	ast.StageCheckDeprecatedBuiltins, ast.StageBuildRequiredCapabilities,
}

// compileBuiltin leaves out the checks that the catalogue has the outcome of. A
// catalogue of other rules than these counts for nothing.
func compileBuiltin(found []byte) (*ruleset, error) {
	sources, err := readSet(policies.Files)
	if err != nil {
		return nil, err
	}
	var known catalogue
	if err := json.Unmarshal(found, &known); err != nil || known.Sources != sourcesDigest(sources) {
		return compile(builtin, sources)
	}
	modules, err := parse(builtin, sources, false)
	if err != nil {
		return nil, err
	}
	c := ast.NewCompiler().WithCapabilities(capabilities()).WithSkipStages(onlyChecks...)
	if c.Compile(modules); c.Failed() {
		return nil, c.Errors
	}
	rs := &ruleset{name: builtin, sources: sources, compiler: c}
	for _, e := range known.Rules {
		m, ok := c.Modules[e.File]
		if !ok {
			return nil, fmt.Errorf("%s is in the catalogue, and nowhere else", e.File)
		}
		r := &rule{RuleInfo: e.RuleInfo, file: e.File, answers: e.Answers, pkg: m.Package.Path}
		for _, at := range e.Reads {
			p, err := parseOpen(at, anyStep{})
			if err != nil {
				return nil, err
			}
			r.reads = append(r.reads, p)
		}
		rs.rules = append(rs.rules, r)
	}
	return rs, nil
}
