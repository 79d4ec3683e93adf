#!/usr/bin/env bash
# `make fuzz`: every fuzzer for a while, one after the other, on one core. What
# one of them finds is kept by go below testdata/fuzz, to be committed with its
# fix.
#
#   fuzz.sh [NAME…]   all of them, or those whose package or name contains one
#                     of the words
#
# FUZZTIME    how long each runs (default 5m)
# FUZZCORPUS  how many of the inputs that reach something new are copied to
#             testdata/fuzz afterwards, smallest first (default 0)
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$(repository)"
go_fits

module=$(go list -m)
cache=$(go env GOCACHE)/fuzz

# fuzzers lists package directory and name of each.
fuzzers() {
	git ls-files -co --exclude-standard '*_test.go' | xargs grep -H '^func Fuzz[A-Za-z0-9_]*(' |
		sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*)\(.*|./\1 \2|' | sort
}

wanted() { # directory, name
	[ ${#words[@]} -gt 0 ] || return 0
	local word
	for word in "${words[@]}"; do
		case "$1 $2" in *"$word"*) return 0 ;; esac
	done
	return 1
}

# keep copies inputs that go found worth keeping, the smallest first.
keep() { # directory, name
	local from=$cache/$module/${1#./}/$2 to=$1/testdata/fuzz/$2
	[ "${FUZZCORPUS:-0}" -gt 0 ] && [ -d "$from" ] || return 0
	mkdir -p "$to"
	find "$from" -type f -size -4k -printf '%s %p\n' | sort -n | head -n "$FUZZCORPUS" | cut -d' ' -f2- | xargs -r cp -t "$to"
	say "$(find "$to" -type f | wc -l) inputs in $to"
}

words=("$@")
ran=0
while read -r dir name; do
	wanted "$dir" "$name" || continue
	say "$name in $dir, ${FUZZTIME:-5m}"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-5m}" -parallel 1 "$dir" </dev/null
	keep "$dir" "$name"
	ran=$((ran + 1))
done < <(fuzzers)
[ $ran -gt 0 ] || die "no fuzzer is called like that" "grep -rh '^func Fuzz' --include='*_test.go' ."
say "$ran fuzzers found nothing"
