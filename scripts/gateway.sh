#!/usr/bin/env bash
# Builds the gateway, as guest.sh builds the guest.
#
#   gateway.sh FILE [GOARCH]
set -euo pipefail
cd "$(dirname "$0")/.."
CGO_ENABLED=0 GOOS=linux GOARCH=${2:-$(go env GOARCH)} GOFLAGS='' \
	go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$1" ./cmd/sandboxio-gateway
