#!/usr/bin/env bash
# Builds the guest. The same source and Go make the same bytes wherever it runs,
# since everything else carries the guest's digest.
#
#   guest.sh FILE [GOARCH]
set -euo pipefail
cd "$(dirname "$0")/.."
CGO_ENABLED=0 GOOS=linux GOARCH=${2:-$(go env GOARCH)} GOFLAGS='' \
	go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$1" ./cmd/sandboxio-guest
