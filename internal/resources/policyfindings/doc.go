// Package policyfindings shows what the policy says of a template's manifest:
// the data source sandboxio_policy_findings by the policy of the provider, and
// the function policy_findings by the built-in rules alone. Neither refuses
// anything.
package policyfindings
