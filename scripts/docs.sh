#!/usr/bin/env bash
# The provider's pages under docs/, from its schema, templates/ and examples/.
# What tfplugindocs does not own there is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

schema=$(mktemp)
trap 'rm -f "$schema"' EXIT
go run ./internal/schemadump >"$schema"
go tool -modfile=tools/go.mod tfplugindocs generate --provider-name sandboxio --rendered-provider-name sandboxio \
	--providers-schema "$schema" >/dev/null
