#!/usr/bin/env bash
# What an import costs: the package initialisation of each binary must stay
# under 200 ms, and under 1 ms for a program that imports only sandbox. Neither
# may make a socket. They run without a network: an init that waits for one, and
# then hides that it failed, shows in its time, and its attempt in the trace.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$(repository)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

offline=()
if unshare --net true 2>/dev/null; then
	offline=(unshare --net)
elif unshare --user --net true 2>/dev/null; then
	offline=(unshare --user --net)
else
	die "no network namespace can be made here" "run as root"
fi

command -v strace >/dev/null || { is_root && apt_install strace; } ||
	die "strace is missing" "sudo apt-get install strace"

# no_sockets fails when a program makes a socket or connects one on its way.
no_sockets() { # name, command
	local calls
	timeout 60 "${offline[@]}" strace -f -qq -e trace=socket,connect,execve -o "$work/trace" "${@:2}" >/dev/null 2>&1 </dev/null || true
	grep -q 'execve(' "$work/trace" || die "strace saw nothing of $1" "strace -f $2"
	calls=$(grep -E '(socket|connect)\(' "$work/trace" || true)
	[ -z "$calls" ] || die "importing what is in $1 touches the network: $calls"
}

# init_time prints the milliseconds of all inits, the least of five runs: the
# first one pays for reading the file.
init_time() {
	local trace ms least=
	for _ in 1 2 3 4 5; do
		# The exit code is the program's own business (a provider refuses to run by hand).
		trace=$(GODEBUG=inittrace=1 timeout 20 "${offline[@]}" "$@" 2>&1 >/dev/null </dev/null) || true
		ms=$(awk '$1 == "init" && $5 ~ /^[0-9.]+$/ { sum += $5; n++ } END { if (!n) exit 1; printf "%.3f", sum }' <<<"$trace") ||
			die "$1 printed no init trace: $trace"
		if [ -z "$least" ] || awk "BEGIN { exit !($ms < $least) }"; then least=$ms; fi
	done
	echo "$least"
}

within() { # name, milliseconds, limit
	printf '%-28s init %8s ms (limit %s)\n' "$@"
	awk "BEGIN { exit !($2 < $3) }" || die "init of $1 takes $2 ms; the limit is $3 ms" "GODEBUG=inittrace=1 shows which package"
}

cat >"$work/main.go" <<'GO'
package main

import "github.com/sandboxio/terraform-provider-sandboxio/sandbox"

var _ = sandbox.New

func main() {}
GO
go build -o "$work/sandbox-only" "$work/main.go"

for binary in sandboxio terraform-provider-sandboxio sandboxio-guest sandboxio-gateway; do
	[ -x "bin/$binary" ] || die "bin/$binary is not built" "make build"
	ms=$(init_time "bin/$binary" version)
	within "$binary" "$ms" 200
	no_sockets "$binary" "bin/$binary" version
done
ms=$(init_time "$work/sandbox-only")
within "a program with sandbox only" "$ms" 1
no_sockets "a program with sandbox only" "$work/sandbox-only"
