#!/usr/bin/env bash
# The local base image: Debian with a shell and Python, made from the machine's
# own apt mirror, since no registry may be reachable. Prints the image id.
#
# The file system is cached as a tarball keyed by this script's own text.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

suite=bookworm
packages=python3-minimal,libpython3-stdlib
tag=sandboxio-base:local
key=$(sha256sum "$0" | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/sandboxio
tarball=$cache/base-$key.tar

# answer prints the id of the image made from this very recipe, if it is there.
# The recipe is in an OCI label: sandboxio's own labels on an image are refused.
answer() {
	local id recipe
	id=$(docker image inspect --format '{{.Id}}' "$tag" 2>/dev/null) || return 1
	recipe=$(docker image inspect --format '{{index .Config.Labels "org.opencontainers.image.revision"}}' "$tag")
	[ "$recipe" = "$key" ] && echo "$id"
}

# mirror is where this machine gets Debian from; Debian's own otherwise.
mirror() {
	local uri
	# shellcheck disable=SC2016 # apt's placeholders
	uri=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
		awk '$2 == "Debian" && $3 == "main" && $1 !~ /security/ && $1 ~ /^https?:/ { print $1; exit }') || true
	echo "${uri:-http://deb.debian.org/debian}"
}

# proxy is the one apt uses; debootstrap's wget does not read apt's settings.
proxy() { (eval "$(apt-config shell value Acquire::http::Proxy 2>/dev/null)" && echo "${value:-${http_proxy:-}}"); }

bootstrap() {
	is_root || die "the base image is made with debootstrap, which needs root" "sudo $0"
	if ! command -v debootstrap >/dev/null || [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
		apt_install debootstrap debian-archive-keyring
	fi
	work=$(mktemp -d)
	trap 'rm -rf --one-file-system "$work"' EXIT
	say "debootstrap $suite (about a minute, once)"
	if ! http_proxy=$(proxy) debootstrap --variant=minbase --include="$packages" "$suite" "$work/root" "$(mirror)" >"$work/log" 2>&1; then
		tail -n 20 "$work/log" >&2
		die "debootstrap failed; its last words are above" "check that $(mirror) is reachable: apt-get update"
	fi
	local root=$work/root
	rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/debootstrap \
		"$root"/usr/share/{doc,man,info,locale,zoneinfo}/* "$root"/tmp/* \
		"$root"/etc/{resolv.conf,hostname,machine-id} "$root"/etc/apt/sources.list
	mkdir -p "$cache"
	tar -C "$root" --numeric-owner --one-file-system --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -cf "$tarball.$$" .
	mv "$tarball.$$" "$tarball"
}

docker_answers || die "no Docker daemon answers" "scripts/ensure-docker.sh"
if answer; then exit; fi
mkdir -p "$cache"
exec 9>"$cache/base.lock"
flock 9 # two checkouts share the cache
[ -s "$tarball" ] || bootstrap
say "importing $tag"
docker import --change 'CMD ["/bin/sh"]' --change "LABEL org.opencontainers.image.revision=$key" "$tarball" "$tag" >/dev/null
answer
