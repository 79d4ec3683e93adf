#!/usr/bin/env bash
# What a daemon holds, before and after: ALL containers, networks and volumes,
# not only those that wear our labels, so that a leak without a label shows.
#
#   leaks.sh snapshot FILE   write the list
#   leaks.sh diff FILE       compare with it; exit 1 and print the difference
#
# Only the helper volumes (sandboxio-guest-…) may come: they are a cache.
#
# On a daemon that others use too, SANDBOXIO_TEST_RUN narrows the list to what
# is sandboxio's: managed objects, and those that wear the run's own label.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# The daemon's own networks go by name: each of its restarts makes bridge anew.
holds() {
	docker ps --all --no-trunc --format 'container {{.ID}} {{.Names}} {{.Image}}' &&
		docker network ls --no-trunc --format 'network {{.ID}} {{.Name}} {{.Driver}}' |
		sed -E 's/^network [0-9a-f]+ (bridge|host|none) /network \1 /' &&
		docker volume ls --format 'volume {{.Name}} {{.Driver}}' | sed '/^volume sandboxio-guest-/d'
}

# ours lists what wears our labels: docker joins two filters by "and".
ours() {
	local label
	for label in sandboxio.managed=true "sandboxio-test=$SANDBOXIO_TEST_RUN"; do
		docker ps --all --no-trunc --filter "label=$label" --format 'container {{.ID}} {{.Names}} {{.Image}}' &&
			docker network ls --no-trunc --filter "label=$label" --format 'network {{.ID}} {{.Name}} {{.Driver}}' &&
			docker volume ls --filter "label=$label" --format 'volume {{.Name}} {{.Driver}}' | sed '/^volume sandboxio-guest-/d' || return 1
	done
}

# list holds its answer back until every part of it was read: half a list
# would make a leak, or a clean slate, out of a daemon that stopped answering.
list() {
	local found
	found=$("$([ -n "${SANDBOXIO_TEST_RUN:-}" ] && echo ours || echo holds)") || die "the daemon's containers, networks and volumes cannot be listed" "docker info"
	{ echo "daemon ${DOCKER_HOST:-default}" && printf '%s\n' "$found"; } | sed '/^$/d' | sort
}

file=${2:?usage: leaks.sh snapshot|diff FILE}
case $1 in
snapshot) list >"$file" ;;
diff)
	[ -s "$file" ] || die "$file is missing or empty" "$0 snapshot $file"
	now=$(list)
	if ! change=$(diff --unchanged-line-format= --old-line-format='gone: %L' --new-line-format='left: %L' "$file" - <<<"$now"); then
		printf '%s\n' "$change"
		echo "leak check: FAILED, the daemon does not hold what it held before"
		exit 1
	fi
	echo "leak check: nothing left, nothing gone ($(($(wc -l <"$file") - 1)) objects before and after)"
	;;
*) die "usage: $0 snapshot|diff FILE" ;;
esac
