#!/usr/bin/env bash
# A dockerd of the tests' own: own data, socket, cgroup, mount and network
# namespace, so that nobody's containers, bridges or packet filters are touched
# and nothing in it can reach a network.
#
#   private-docker.sh start   start it (cleans what a crashed run left); prints the socket URL
#   private-docker.sh env     print `export DOCKER_HOST=…`
#   private-docker.sh stop    stop it and remove all of it
#
# SANDBOXIO_STATE   where its files live (default /var/lib/sandboxio-test)
# SANDBOXIO_DAEMON  which daemon of this checkout (default "test")
set -euo pipefail
. "$(dirname "$0")/lib.sh"

state=${SANDBOXIO_STATE:-/var/lib/sandboxio-test}
checkout=$(repository | sha256sum | cut -c1-8)
name=${SANDBOXIO_DAEMON:-test}-$checkout
dir=$state/$name
lock=$state/$name.lock
netns=sandboxio-$name
cgroup=sandboxio-$name
url=unix://$dir/docker.sock

# ours tells whether a pid is the dockerd of this very directory: pids are
# reused, and a stale pidfile must never kill a stranger.
ours() { tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null | grep -qxF -- "--data-root=$dir/data"; }

daemon_pid() {
	local pid
	pid=$(cat "$dir/docker.pid" 2>/dev/null) && ours "$pid" && echo "$pid"
}

# workloads are the processes in our cgroup.
workloads() { find /sys/fs/cgroup -path "*/$cgroup*" -name cgroup.procs -exec cat {} + 2>/dev/null || true; }

# thaw lets paused workloads go on: a frozen process does not die (cgroup v1).
thaw() {
	local at
	find /sys/fs/cgroup -path "*/$cgroup*" -name freezer.state 2>/dev/null | while read -r at; do
		echo THAWED >"$at" 2>/dev/null || true
	done
}

# strays are what outlives a dead daemon: its containerd and shims live in our
# network namespace.
strays() {
	ip netns pids "$netns" 2>/dev/null || true
	workloads
}

# exclusively holds the daemon's lock until this script ends. stop removes the
# file, so that who waited may have got the lock of one that is gone, and asks
# for that of the one that is there now.
exclusively() {
	local deadline=$((SECONDS + 120))
	while [ $SECONDS -lt $deadline ]; do
		exec 9>"$lock"
		flock -w $((deadline - SECONDS)) 9 || break
		[ "$lock" -ef /proc/self/fd/9 ] && return
	done
	die "another start or stop of $name is under way"
}

gone_within() { # seconds, command: true once the command prints nothing
	local deadline=$((SECONDS + $1))
	shift
	while [ -n "$("$@")" ]; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.1
	done
}

sweep() {
	local pid
	thaw
	# shellcheck disable=SC2046 # a list of pids
	kill -KILL $(workloads) 2>/dev/null || true # dockerd would wait for each
	if pid=$(daemon_pid); then
		kill -TERM "$pid" || true # it may have ended by now
		gone_within 20 daemon_pid || kill -KILL "$pid" || true
	fi
	local deadline=$((SECONDS + 60))
	while pid=$(strays | sort -u) && [ -n "$pid" ]; do
		[ $SECONDS -lt $deadline ] || die "processes of $name do not end: ${pid//$'\n'/ }"
		thaw
		# shellcheck disable=SC2086 # a list of pids
		kill -KILL $pid 2>/dev/null || true
		sleep 0.1
	done
	find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
	if [ -e "/run/netns/$netns" ]; then ip netns del "$netns"; fi
	# The daemon's mounts were in its own mount namespace and went with it.
	rm -rf --one-file-system "${dir:?}"/{data,exec,bin,docker.sock,docker.pid}
}

# choose_iptables puts a packet filter that works on this kernel first in PATH.
choose_iptables() {
	local flavour
	for flavour in iptables iptables-nft iptables-legacy; do
		command -v "$flavour" >/dev/null || continue
		nsenter --net="/run/netns/$netns" "$flavour" -w -t nat -S >/dev/null 2>&1 || continue
		mkdir -p "$dir/bin"
		ln -sf "$(command -v "$flavour")" "$dir/bin/iptables"
		ln -sf "$(command -v "${flavour/iptables/ip6tables}")" "$dir/bin/ip6tables"
		return
	done
	die "no iptables flavour works in a network namespace of this kernel" "apt-get install iptables; modprobe nf_tables"
}

start() {
	if daemon_pid >/dev/null && DOCKER_HOST=$url docker_answers; then
		say "private Docker $name already answers"
		return
	fi
	sweep
	local runsc
	runsc=$("$(dirname "$0")/runsc.sh")
	mkdir -p "$dir" /run/containerd
	# The machine's own daemon.json must not apply. runsc is gVisor: systrap is
	# the platform that works everywhere, and without --oci-seccomp it would not
	# apply a sandbox's own filter.
	echo '{"runtimes":{"runsc":{"path":"'"$runsc"'","runtimeArgs":["--platform=systrap","--oci-seccomp"]}}}' >"$dir/daemon.json"
	ip netns add "$netns"
	nsenter --net="/run/netns/$netns" ip link set lo up
	# As most distributions have it; mode transparent needs it.
	nsenter --net="/run/netns/$netns" sh -c 'echo 2 >/proc/sys/net/ipv4/conf/all/rp_filter'
	choose_iptables
	say "starting private Docker $name"
	# nsenter, not `ip netns exec`: the latter hides /sys/fs/cgroup. The tmpfs
	# over /run/containerd hides a containerd of the machine's, whose "moby"
	# namespace would otherwise be shared.
	PATH=$dir/bin:$PATH setsid nsenter --net="/run/netns/$netns" \
		unshare --mount --propagation slave \
		sh -c 'mount -t tmpfs -o mode=711 sandboxio /run/containerd && exec "$@"' sh \
		dockerd --config-file="$dir/daemon.json" --host="$url" \
		--data-root="$dir/data" --exec-root="$dir/exec" --pidfile="$dir/docker.pid" \
		--exec-opt=native.cgroupdriver=cgroupfs --cgroup-parent="/$cgroup" \
		--shutdown-timeout=3 >"$dir/docker.log" 2>&1 </dev/null 9>&- &
	local launcher=$! deadline=$((SECONDS + 180))
	until DOCKER_HOST=$url docker_answers; do
		if ! kill -0 "$launcher" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
			tail -n 20 "$dir/docker.log" >&2
			sweep
			die "private Docker did not come up; its last words are above"
		fi
		sleep 0.2
	done
}

is_root || die "a private Docker needs root" "run as root, or let the tests use a daemon that answers"
mkdir -p "$state"
case ${1:-} in
start)
	exclusively
	if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null || ! command -v ip >/dev/null; then
		install_docker
	fi
	start
	echo "$url"
	;;
stop)
	exclusively
	sweep
	rm -rf --one-file-system "${dir:?}"
	rm -f "$lock" # last, and while it is held
	;;
env) echo "export DOCKER_HOST=$url" ;;
*) die "usage: $0 start|stop|env" ;;
esac
