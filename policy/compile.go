package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/sandboxio/terraform-provider-sandboxio/policies"
)

// builtin names the set that is always there.
const builtin = "builtin"

// setRoot is the package below which a set's rules live. Rego merges packages
// of one name, so that a set that could write into another's could switch its
// rules off.
func setRoot(set string) string {
	if set == builtin {
		return "data.sandboxio"
	}
	return "data.custom." + set
}

// allowed are the functions that rules may call: pure ones, bounded in what
// they make of their input. Nothing here reaches a network, a clock, a source
// of randomness or the process.
var allowed = strings.Fields(`
	eq equal neq lt lte gt gte assign internal.member_2 internal.member_3
	plus minus mul div rem and or abs ceil floor round
	count sum product max min sort intersection union
	array.concat array.reverse array.slice
	object.filter object.get object.keys object.remove object.subset object.union object.union_n
	json.filter json.patch json.remove walk
	concat contains endswith format_int indexof indexof_n lower replace split sprintf startswith substring to_number upper
	strings.any_prefix_match strings.any_suffix_match strings.count strings.replace_n strings.reverse
	trim trim_left trim_prefix trim_right trim_space trim_suffix
	regex.find_n regex.is_valid regex.match regex.replace regex.split glob.match glob.quote_meta semver.compare semver.is_valid
	net.cidr_contains net.cidr_intersects net.cidr_is_valid
	is_array is_boolean is_null is_number is_object is_set is_string type_name units.parse units.parse_bytes
	crypto.sha256 time.parse_rfc3339_ns`)

// capabilities are the language that rules are written in.
var capabilities = sync.OnceValue(func() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool { return !slices.Contains(allowed, b.Name) })
	c.Features = []string{ast.FeatureRegoV1, ast.FeatureKeywordsInRefs}
	c.FutureKeywords = nil
	c.AllowNet = []string{} // empty refuses every host, nil would allow all
	return c
})

// inputSchema types input for every module, so that a misspelt path is an
// error at load and not a rule that never fires.
func inputSchema() (*ast.SchemaSet, error) {
	var raw any
	if err := json.Unmarshal(policies.Schema, &raw); err != nil {
		return nil, fmt.Errorf("policies/schema: %w", err)
	}
	s := ast.NewSchemaSet()
	s.Put(ast.SchemaRootRef, raw)
	return s, nil
}

// ruleset is one set of rules, compiled.
type ruleset struct {
	name     string
	sources  map[string]string // by file
	compiler *ast.Compiler
	rules    []*rule // by id
}

// parse reads the modules of a set, as many at a time as there are processors.
func parse(set string, sources map[string]string, annotated bool) (map[string]*ast.Module, error) {
	opts := ast.ParserOptions{ProcessAnnotation: annotated, RegoVersion: ast.RegoV1, Capabilities: capabilities()}
	files := slices.Sorted(maps.Keys(sources))
	parsed, errs := make([]*ast.Module, len(files)), make([]error, len(files))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(files)); i = next.Add(1) - 1 {
				m, err := ast.ParseModuleWithOpts(files[i], sources[files[i]], opts)
				if err == nil {
					err = checkPackage(set, files[i], m)
				}
				parsed[i], errs[i] = m, err
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	modules := make(map[string]*ast.Module, len(files))
	for i, m := range parsed {
		modules[files[i]] = m
	}
	return modules, nil
}

// compile parses and checks a set. Every fault found is reported, and any
// fault refuses the whole set.
func compile(set string, sources map[string]string) (*ruleset, error) {
	modules, err := parse(set, sources, true)
	if err != nil {
		return nil, err
	}
	schema, err := inputSchema()
	if err != nil {
		return nil, err
	}
	c := ast.NewCompiler().WithStrict(true).WithCapabilities(capabilities()).WithSchemas(schema).WithUseTypeCheckAnnotations(true)
	if c.Compile(modules); c.Failed() {
		return nil, c.Errors
	}
	rs := &ruleset{name: set, sources: sources, compiler: c}
	annotations := c.GetAnnotationSet()
	says := map[*rule]*metadata{}
	var errs []error
	for _, file := range slices.Sorted(maps.Keys(c.Modules)) {
		m := c.Modules[file]
		if isLib(set, m.Package.Path) {
			errs = append(errs, checkRefs(rs, m, nil))
			continue
		}
		at := &metadata{module: m, block: annotations.GetPackageScope(m.Package)}
		r, err := newRule(set, at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, checkRefs(rs, m, r), checkAnswers(rs, at, r))
		says[r] = at
		rs.rules = append(rs.rules, r)
	}
	slices.SortFunc(rs.rules, func(a, b *rule) int { return strings.Compare(a.ID, b.ID) })
	for i, r := range rs.rules {
		if i > 0 && rs.rules[i-1].ID == r.ID {
			errs = append(errs, fmt.Errorf("%s: METADATA: custom.id %s is taken by %s", says[r].at("custom", "id"), r.ID, says[rs.rules[i-1]].at("custom", "id")))
		}
	}
	return rs, errors.Join(errs...)
}
