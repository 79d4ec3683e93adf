# METADATA
# title: Caps
# description: >-
#   What is wrong with a cap that must be there and must not pass a limit. The unit, with its space, is for
#   the message.
package sandboxio.lib.cap

problem(value, _, _) := "there is no cap" if value == null

problem(value, _, unit) := sprintf("%d%s is no cap", [value, unit]) if {
	value != null
	value < 1
}

problem(value, limit, unit) := sprintf("%d%s is above the limit of %d%s", [value, unit, limit, unit]) if {
	value != null
	value > limit
}
