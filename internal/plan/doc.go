// Package plan reads what is under review into the policy's words: a binary
// plan file, a plan as JSON, or a directory of Terraform sources.
//
// It promises four things. What it does not know it names as unknown and never
// fills in. Values marked as sensitive are named, so that no rule sees them,
// and [Item.Redact] takes them out of whatever is said. Each place in the
// policy's words leads back to file, line and column, or to the nearest
// enclosing thing that can be found, and says which of both. It holds one
// resource at a time, whatever the plan's size.
//
// Plans are hostile input: archives are read within limits and nothing of them
// is written to disk.
package plan
