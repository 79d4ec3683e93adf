// Package wish turns what a configuration says into the words of package
// driver. The provider, which reads Terraform's types, and the review of plans,
// which reads JSON and source text, share it, so that one configuration is one
// request to the policy whichever way it came.
package wish
