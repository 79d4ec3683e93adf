// Package policy judges what is about to be made, by rules written in Rego.
//
// There is one input document for every door: a Terraform plan, an apply and
// a program's call all end in the same [Resource], so that a configuration
// gets the same answer everywhere. [FromSpec] and [FromRequest] make it; the
// facts that need care (address arithmetic, host names, the shape of
// credentials) are computed here, in Go, and rules only decide.
//
// An [Engine] holds the built-in rules, which are always there, and the sets
// that [Options] names. A set of the customer's is compiled apart from the
// built-in rules: it can add findings, never remove one. A set is a directory,
// or a signed [Bundle].
//
// A [Waiver] excuses a finding about one value for a time, and the finding stays
// in the verdict. Where the environment names a floor ([FloorVariable]), mode,
// parameters and waivers of Options can be stricter than it and not more
// lenient; what tries is the finding SBX-POL-001.
//
// The answer is the worst of what the rules say: error, deny, unknown, warn,
// allow. What cannot be judged does not pass: a rule that fails denies, a rule
// that reads a value not known yet answers unknown, and an evaluation in which
// no rule ran is an error.
//
// No value of an environment variable reaches a rule, a finding or an error.
package policy
