#!/usr/bin/env bash
# Prints the SHA-256 of a file in hex, on Linux and macOS alike.
set -euo pipefail
if command -v sha256sum >/dev/null; then
	sha256sum "$1" | cut -d ' ' -f 1
else
	shasum -a 256 "$1" | cut -d ' ' -f 1
fi
