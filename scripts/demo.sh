#!/usr/bin/env bash
# `make demo`: the whole idea on a real Docker Engine. Installs and starts what
# is missing when it may (as root), uses the daemon that answers otherwise.
# Without either, the demo says so and shows its Terraform half on memory://.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$(repository)"

go_fits
terraform_fits

docker=0
scripts/ensure-docker.sh || docker=$?
case $docker in
0 | 3) ;;
*) exit "$docker" ;;
esac

make --no-print-directory build
if [ "$docker" -eq 3 ]; then
	exec bin/sandboxio demo --memory
fi
image=$(scripts/base-image.sh)
bin/sandboxio setup docker
shown=0
bin/sandboxio demo --image "$image" || shown=$?
scripts/ensure-docker.sh tell
exit "$shown"
