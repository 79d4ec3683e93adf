# shellcheck shell=bash
# Shared words of the scripts beside this file. Sourced, never run.

# say prints progress on stderr: stdout belongs to what a script answers.
say() { printf '==> %s\n' "$*" >&2; }

# die prints the problem and, as a second argument, the fix.
die() {
	printf 'error: %s\n' "$1" >&2
	if [ $# -gt 1 ]; then printf '  fix: %s\n' "$2" >&2; fi
	exit 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

# docker_answers tells whether the daemon of $DOCKER_HOST (or the default one)
# answers. A socket file without a listener must not hang us.
docker_answers() {
	command -v docker >/dev/null && timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

# apt_install installs packages that are missing, with `apt-get update` when the
# lists on the machine are not enough. A machine that has just started updates
# itself, and holds apt's locks for minutes: the lists' lock is not waited for
# by any option, so that it is tried again.
apt_install() {
	command -v apt-get >/dev/null || die "$* missing, and there is no apt-get" "install $* with your package manager"
	say "installing $*"
	export DEBIAN_FRONTEND=noninteractive LC_ALL=C
	local deadline=$((SECONDS + 300)) last
	local install=(apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 install -y --no-install-recommends)
	until "${install[@]}" "$@" >/dev/null 2>&1; do
		last=$(apt-get -o Acquire::Retries=3 update 2>&1 && "${install[@]}" "$@" 2>&1) && return
		if [[ $last != *"Could not get lock"* ]] || [ $SECONDS -ge $deadline ]; then
			echo "$last" >&2
			die "$* cannot be installed; apt's last words are above" "apt-get update; apt-get install $*"
		fi
		say "another apt-get is at work; trying again"
		sleep 5
	done
}

# install_docker installs the engine and its client, where they are one package
# or two, and AppArmor's parser where the kernel has it on: without the parser
# such an engine starts no container.
install_docker() {
	local wanted=(docker.io iproute2)
	if [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" = Y ]; then wanted+=(apparmor); fi
	apt_install "${wanted[@]}"
	command -v docker >/dev/null || apt_install docker-cli
}

# repository is the root of the checkout these scripts belong to.
repository() { cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P; }

# terraform_fits stops with the fix when Terraform is missing or too old for
# write-only arguments.
terraform_fits() {
	local version
	command -v terraform >/dev/null ||
		die "terraform is not in PATH" "install Terraform 1.11 or newer: https://developer.hashicorp.com/terraform/install"
	version=$(CHECKPOINT_DISABLE=1 terraform version 2>/dev/null | sed -n 's/^Terraform v//p')
	if [ "$(printf '1.11.0\n%s\n' "${version%%-*}" | sort -V | head -n 1)" != 1.11.0 ]; then
		die "terraform ${version:-of unknown version} is too old: write-only arguments need 1.11" \
			"install Terraform 1.11 or newer: https://developer.hashicorp.com/terraform/install"
	fi
}

# go_fits stops with the fix when there is no Go to build with.
go_fits() {
	command -v go >/dev/null || die "go is not in PATH" "install Go 1.26 or newer: https://go.dev/doc/install"
}
