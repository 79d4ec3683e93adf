// Package review has the policy judge a plan, and tells reviewers what it said:
// as text, JSON, SARIF, JUnit, annotations of GitHub, or Markdown.
//
// Every format is made from one [Report], in which sensitive values are
// redacted already. A report says which rules ran and how many resources were
// judged, so that a review that looked at nothing cannot pass for a good one.
package review
