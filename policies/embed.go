// Package policies holds the built-in rules, in Rego, and the schema of what
// they see. Package policy compiles and runs them.
//
// Each rule has a folder of its own, <category>/<rule>, with the rule, its
// tests, and examples: inputs that are judged through the whole engine, and a
// good and a bad configuration that Terraform plans, or that is reviewed if it
// is of somebody else's resources. Its package is sandboxio.<category>.<rule>,
// its METADATA says what it is for, and docs/policies has a page made from all
// of it.
package policies

import "embed"

// Files are the rules: lib and <category>/<rule>/rule.rego.
//
//go:embed lib/*.rego */*/rule.rego
var Files embed.FS

// Schema is the JSON schema of the rules' input, made from package policy's
// Go types by "go test ./policy -run TestSchema -update".
//
//go:embed schema/input.schema.json
var Schema []byte

// Catalogue is what the checks of the rules found, made from the rules by
// "go test ./policy -run TestCatalogue -update".
//
//go:embed schema/catalogue.json
var Catalogue []byte
