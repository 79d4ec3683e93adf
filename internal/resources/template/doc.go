// Package template is sandboxio_template: a reviewed description of sandboxes.
//
// It is a pure value. Nothing is made at a provider; what counts is the
// manifest, known in the plan as soon as its inputs are, judged by the policy
// in the plan and again before it enters the state, and read by agent programs
// with sandbox.ParseTemplate.
package template
