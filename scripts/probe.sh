#!/usr/bin/env bash
# Builds the probe of sandboxio egress prove, as guest.sh builds the guest.
#
#   probe.sh FILE [GOARCH]
set -euo pipefail
cd "$(dirname "$0")/.."
CGO_ENABLED=0 GOOS=linux GOARCH=${2:-$(go env GOARCH)} GOFLAGS='' \
	go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$1" ./cmd/sandboxio-probe
