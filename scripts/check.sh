#!/usr/bin/env bash
# What CI runs, in its order; stops at the first thing that is wrong.
#
#   check.sh        everything, the tests last
#   check.sh fast   under five minutes and without Docker
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$(repository)"
export CHECKPOINT_DISABLE=1

# The advisories are a Go module too, so the check needs no other network.
vulndb=golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018

tool() { go tool -modfile=tools/go.mod "$@"; }

timings=()
step() { # name, command
	local started=$SECONDS
	say "$1"
	"${@:2}" || die "check failed: $1" "make check runs it again"
	timings+=("$(printf '%5d s  %s' $((SECONDS - started)) "$1")")
}

formatted() {
	local files
	files=$(git ls-files -z -co --exclude-standard '*.go' | xargs -0 gofmt -l)
	[ -z "$files" ] || { echo "not gofmt'ed: $files" >&2 && return 1; }
}

tidy() { go mod tidy -diff && go -C tools mod tidy -diff; }

vet() { go vet -tags dockertest,chaos ./... && go -C tools vet ./...; }

lint() { tool golangci-lint run && (cd tools && go tool golangci-lint run); }

# generated fails when `make generate` changes a byte of the tree, committed or
# not, so that it can be run before a commit.
generated() {
	local before after
	before=$(tree)
	make --no-print-directory generate
	after=$(tree)
	diff <(echo "$before") <(echo "$after") || { echo "generated files were out of date: see make generate" >&2 && return 1; }
}

tree() { git ls-files -z -co --exclude-standard | sort -z | xargs -0 sha256sum 2>/dev/null; }

crossbuild() {
	local os
	for os in darwin windows; do
		GOOS=$os CGO_ENABLED=0 go build ./... || return 1
	done
}

vulnerabilities() {
	local dir
	dir=$(cd / && go mod download -json "$vulndb" | sed -n 's/.*"Dir": "\(.*\)",\{0,1\}$/\1/p')
	[ -d "$dir/data/osv" ] || { echo "no advisories in $dir" >&2 && return 1; }
	tool govulncheck -db "file://$dir/data/osv" -tags dockertest,chaos -format json ./... | go run -C tools ./vulncount
}

unit() { go test -count=1 ./... && go test -C tools -count=1 ./...; }

go_fits
step "gofmt" formatted
if [ "${1:-}" = fast ]; then
	step "go vet" vet
	step "golangci-lint" lint
	step "architecture" go test -count=1 ./internal/archtest
	step "unit tests" unit
else
	step "go mod tidy" tidy
	step "go vet" vet
	step "golangci-lint" lint
	step "generated files" generated
	step "architecture" go test -count=1 ./internal/archtest
	step "build for darwin and windows" crossbuild
	step "known vulnerabilities" vulnerabilities
	step "build" make --no-print-directory build
	step "cost of an import" scripts/check-init.sh
fi
printf '%s\n' "${timings[@]}" "$(printf '%5d s  in all so far' $SECONDS)"
[ "${1:-}" = fast ] || exec make --no-print-directory test
