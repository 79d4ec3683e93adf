# METADATA
# title: Isolation tiers
# description: How far hostile code is from the host's kernel, as driver.Isolation ranks it.
package sandboxio.lib.tier

ranks := {
	"unverified": 0,
	"container": 10,
	"user-kernel": 20,
	"microvm": 30,
}

# What is no tier satisfies nothing.
rank(tier) := object.get(ranks, tier, 0)
