#!/usr/bin/env bash
# Makes sure that a Docker daemon answers. One that does is used as it is and
# nothing is installed; otherwise, as root, docker.io is installed and dockerd
# started. Prints nothing on stdout.
#
# Exit codes: 0 a daemon answers · 1 it could not be made to · 3 no daemon
# answers and we are not root, which callers handle in their own way.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

logs=/var/log/sandboxio
log=$logs/dockerd.log
pidfile=/var/run/sandboxio-dockerd.pid
service="service docker stop"
if [ -d /run/systemd/system ]; then service="systemctl stop docker docker.socket"; fi

# stays says that what was started here goes on, and the command that stops it.
stays() { say "dockerd answers, and keeps running when this is done; to stop it: $1"; }

if docker_answers; then exit 0; fi
if [ -n "${DOCKER_HOST:-}" ]; then
	die "the daemon named by DOCKER_HOST ($DOCKER_HOST) does not answer" "start it, or: unset DOCKER_HOST"
fi
if [ -n "${DOCKER_CONTEXT:-}" ]; then
	die "the daemon of DOCKER_CONTEXT ($DOCKER_CONTEXT) does not answer" "start it, or: unset DOCKER_CONTEXT"
fi
if ! is_root; then
	say "no Docker daemon answers, and starting one needs root"
	exit 3
fi
if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null; then
	install_docker
	# The package may have started its own service, or be about to.
	for _ in 1 2 3 4 5; do
		if docker_answers; then
			stays "$service"
			exit 0
		fi
		sleep 1
	done
fi

mkdir -p "$logs"
exec 9>"$logs/ensure-docker.lock"
flock -w 120 9 || die "another ensure-docker.sh is under way"
if docker_answers; then exit 0; fi # it was, and did the work
say "starting dockerd (log: $log)"
if [ -d /run/systemd/system ] && systemctl start docker >/dev/null 2>&1; then
	stop=$service
else
	setsid dockerd --pidfile="$pidfile" >"$log" 2>&1 </dev/null 9>&- &
	stop="kill \$(cat $pidfile)"
fi
deadline=$((SECONDS + 60))
until docker_answers; do
	if [ $SECONDS -ge $deadline ]; then
		tail -n 20 "$log" >&2 || true
		die "dockerd did not answer within 60 s" "see $log"
	fi
	sleep 0.5
done
stays "$stop"
