# METADATA
# title: Caps
# description: What is wrong with a cap that must be there and must not pass a limit.
package sandboxio.lib.cap

problem(value, _) := "there is no cap" if value == null

problem(value, _) := sprintf("%d is no cap", [value]) if {
	value != null
	value < 1
}

problem(value, limit) := sprintf("%d is above the limit of %d", [value, limit]) if {
	value != null
	value > limit
}
