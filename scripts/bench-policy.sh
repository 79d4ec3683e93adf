#!/usr/bin/env bash
# Compares sandboxio policy check with conftest on one plan and the same rules.
# conftest is built from the module proxy, outside of our go.mod, and kept in
# bin/.
set -euo pipefail
cd "$(dirname "$0")/.."
conftest=v0.71.1

export GOBIN=$PWD/bin/conftest-$conftest
[ -x "$GOBIN/conftest" ] || go install "github.com/open-policy-agent/conftest@$conftest"
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/sandboxio-bench ./cmd/sandboxio
CONFTEST=$GOBIN/conftest SANDBOXIO_CLI=$PWD/bin/sandboxio-bench \
	go test -count=1 -timeout 30m -run '^$' -bench '^BenchmarkConftest$' -benchtime "${1:-3x}" -v ./internal/review
