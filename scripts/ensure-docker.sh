#!/usr/bin/env bash
# Makes sure that a Docker daemon answers. One that does is used as it is and
# nothing is installed; otherwise, as root, docker.io is installed and dockerd
# started. Prints nothing on stdout.
#
#   ensure-docker.sh       make sure
#   ensure-docker.sh tell  say of the daemon that it started, as long as that
#                          runs, where it is and how to stop it
#
# Exit codes: 0 a daemon answers · 1 it could not be made to · 3 no daemon
# answers and we are not root, which callers handle in their own way.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

logs=/var/log/sandboxio
log=$logs/dockerd.log
run=${SANDBOXIO_RUN:-/var/run}
pidfile=$run/sandboxio-dockerd.pid
service=$run/sandboxio-docker.stop # what stops the service, if that was started

# ours tells whether a pid is the dockerd that was started here: pids are reused.
ours() { cat "/proc/$1/cmdline" 2>/dev/null | tr '\0' '\n' | grep -qxF -- "--pidfile=$pidfile"; }

# served remembers that the service was started for us.
served() {
	if [ -d /run/systemd/system ]; then
		echo "systemctl stop docker docker.socket" >"$service"
	else
		echo "service docker stop" >"$service"
	fi
}

tell() {
	local pid stop
	if pid=$(cat "$pidfile" 2>/dev/null) && ours "$pid"; then
		stop="kill $pid    # its pid file is $pidfile, its log $log"
	elif [ -s "$service" ] && docker_answers; then
		stop=$(cat "$service")
	else
		return 0 # nobody's, or somebody else's
	fi
	cat <<-EOT

		The Docker daemon that was started for this keeps running, with the images that
		were made: unix:///var/run/docker.sock, which docker:// and docker find by themselves.
		Stop it with:
		  $stop
	EOT
}

case ${1:-} in
'') ;;
tell)
	tell
	exit
	;;
*) die "usage: $0 [tell]" ;;
esac

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
			served
			tell >&2
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
	served
else
	setsid dockerd --pidfile="$pidfile" >"$log" 2>&1 </dev/null 9>&- &
	launched=$!
fi
deadline=$((SECONDS + 180))
until docker_answers; do
	if [ $SECONDS -ge $deadline ] || { [ -n "${launched:-}" ] && ! kill -0 "$launched" 2>/dev/null; }; then
		tail -n 20 "$log" >&2 || true
		die "dockerd ended, or did not answer within 180 s" "see $log"
	fi
	sleep 0.5
done
tell >&2
