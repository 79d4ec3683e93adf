#!/usr/bin/env bash
# The guests, gateways and probes of a release: one for each architecture that a
# sandbox's host may have, and its digest for the programs that will place it.
set -euo pipefail
cd "$(dirname "$0")/.."
for arch in amd64 arm64; do
	dir=bin/guest/linux_$arch
	mkdir -p "$dir"
	scripts/guest.sh "$dir/sandboxio-guest" "$arch"
	scripts/digest.sh "$dir/sandboxio-guest" >"$dir/sha256"
	scripts/gateway.sh "$dir/sandboxio-gateway" "$arch"
	scripts/digest.sh "$dir/sandboxio-gateway" >"$dir/gateway.sha256"
	scripts/probe.sh "$dir/sandboxio-probe" "$arch"
	scripts/digest.sh "$dir/sandboxio-probe" >"$dir/probe.sha256"
done
