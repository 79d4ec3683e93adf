#!/usr/bin/env bash
# `make test`: every test with the race detector, the Docker suites against a
# real daemon and Terraform for real. A skipped test fails the run, and so does
# a container, network or volume that is left behind.
#
#   test.sh         the tests
#   test.sh bench   the benchmarks, on a daemon made in the same way
#
# As root the daemon is a private one, started and removed here; otherwise the
# one that answers is used.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$(repository)"

state=${SANDBOXIO_STATE:-/var/lib/sandboxio-test}
work=$(mktemp -d)
finish=()

# shellcheck disable=SC2317 # called by the trap; runs on every way out
cleanup() {
	local code=$? command
	for command in "${finish[@]}"; do $command || code=1; done
	rm -rf "$work"
	exit "$code"
}
trap cleanup EXIT
# A second signal, as from a terminal or timeout(1), must not end the clean-up.
trap 'trap "" INT TERM HUP; exit 130' INT
trap 'trap "" INT TERM HUP; exit 143' TERM HUP

go_fits
terraform_fits
if ! command -v gcc >/dev/null; then
	is_root || die "the race detector needs a C compiler" "sudo apt-get install gcc libc6-dev"
	apt_install gcc libc6-dev
fi

if is_root; then
	mkdir -p "$state"
	exec 8>"$state/test-$(repository | sha256sum | cut -c1-8).run"
	flock -n 8 || die "another make test of this checkout is running" "wait for it, or use a clone"
	export SANDBOXIO_DAEMON=test
	finish+=(scripts/private-docker.sh\ stop)
	scripts/private-docker.sh stop 8>&- # what a killed run left
	DOCKER_HOST=$(scripts/private-docker.sh start 8>&-)
else
	scripts/ensure-docker.sh || die "the Docker suites need a daemon" "start Docker, or: sudo make test"
	DOCKER_HOST=${DOCKER_HOST:-$(docker context inspect --format '{{.Endpoints.docker.Host}}')}
	# Others use this daemon: what the run makes wears its label.
	export SANDBOXIO_TEST_RUN=run-$$-$RANDOM
fi
export DOCKER_HOST
unset DOCKER_CONTEXT
docker info --format '{{json .Runtimes}}' | grep -qF '"runsc"' ||
	die "the daemon has no runtime runsc, and gVisor is tested too" "register the one that scripts/runsc.sh builds, as private-docker.sh does; or: sudo make test"

# The guest's digest is pinned for the user who runs `setup`: the tests' user
# has a configuration of its own, and Go keeps the one it had.
GOENV=$(go env GOENV)
export GOENV XDG_CONFIG_HOME=$work/config

make --no-print-directory build
image=$(scripts/base-image.sh)
bin/sandboxio setup docker
go build -C tools -o "$work/testcount" ./testcount

export SANDBOXIO_TEST_DOCKER=$DOCKER_HOST SANDBOXIO_TEST_IMAGE=$image SANDBOXIO_GUEST=$PWD/bin/sandboxio-guest SANDBOXIO_GATEWAY=$PWD/bin/sandboxio-gateway SANDBOXIO_CLI=$PWD/bin/sandboxio
export TF_ACC=1 CHECKPOINT_DISABLE=1
TF_ACC_TERRAFORM_PATH=$(command -v terraform)
export TF_ACC_TERRAFORM_PATH

tested=0
scripts/leaks.sh snapshot "$work/before"
if [ "${1:-}" = bench ]; then
	go test -count=1 -tags dockertest -timeout 45m -run '^$' -bench . -benchmem ./... 8>&- || tested=$?
else
	# pipefail joins go test's own exit code to the count: a crash of go must not
	# pass because the tests it got to did.
	{
		go test -C tools -race -count=1 -json ./... 2>&1
		ours=$?
		# One package at a time: suites that load the engine would disturb each
		# other's clocks.
		go test -race -count=1 -json -tags dockertest -p 1 -timeout 80m ./... 2>&1
		ours=$((ours | $?))
		# It counts everything on the engine, and so has it for itself.
		go test -race -count=1 -json -tags dockertest,chaos -run Chaos -timeout 45m ./drivers/docker 2>&1
		exit $((ours | $?))
	} 8>&- | "$work/testcount" || tested=$?
fi
scripts/leaks.sh diff "$work/before" || tested=1
exit "$tested"
