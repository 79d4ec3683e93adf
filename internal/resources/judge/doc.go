// Package judge turns what the policy and the backends say into diagnostics on
// the attribute that caused them.
//
// A denial stops the plan, with one exception: an object that exists and whose
// configuration did not change only warns, so that a policy tightened later
// stops neither destroy nor plans of other things. A rule that reads a value
// not known yet warns and is asked again before creation, when all is known.
package judge
