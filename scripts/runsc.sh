#!/usr/bin/env bash
# gVisor's runsc, built from its Go module once and cached. Prints its path.
#
# Debian's own runsc (2022) does not start on current kernels. The build takes
# a minute or two on idle cores; the version is part of the cache's name.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

module=gvisor.dev/gvisor
version=v0.0.0-20260905035102-160fafc42237 # its branch "go": the only one that builds without Bazel
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/sandboxio
dir=$cache/runsc-$version
binary=$dir/runsc

# works tells whether what is there is a whole program: a killed build leaves
# none, since it is moved into place.
works() { [ -x "$binary" ] && "$binary" --version >/dev/null 2>&1; }

if works; then
	echo "$binary"
	exit
fi
go_fits
mkdir -p "$dir"
exec 9>"$dir.lock"
flock 9 # two checkouts share the cache
if ! works; then
	say "building runsc from $module (some minutes, once)"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	# Outside of this module: gVisor's requirements are not ours.
	(cd "$work" && GOFLAGS='' CGO_ENABLED=0 GOBIN=$work nice -n 15 go install -trimpath -ldflags '-s -w' "$module/runsc@$version") >&2 ||
		die "runsc does not build; the last words are above" "check that the Go module proxy is reachable: go env GOPROXY"
	mv "$work/runsc" "$binary.$$"
	mv "$binary.$$" "$binary"
fi
works || die "$binary does not run" "rm -r $dir"
echo "$binary"
