SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-builtin-rules
.ONESHELL:

MODULE  := github.com/sandboxio/terraform-provider-sandboxio
VERSION ?= $(patsubst v%,%,$(shell git describe --tags --exact-match 2>/dev/null || echo 0.1.0-dev))
GOOS    := $(shell go env GOOS)
GOARCH  := $(shell go env GOARCH)
MIRROR  := $(HOME)/.terraform.d/plugins/registry.terraform.io/sandboxio/sandboxio/$(VERSION)/$(GOOS)_$(GOARCH)

# The guest, the gateway and the probe come first: the other two carry their
# digests, so that a sandbox runs this build's or none. Same source, same bytes, wherever it
# is built.
LDFLAGS := -s -w -X main.version=$(VERSION)
GUEST   := -X $(MODULE)/internal/guest.ReleaseDigest=sha256
GATEWAY := -X $(MODULE)/internal/egress/gateway/boot.ReleaseDigest=sha256
PROBE   := -X $(MODULE)/internal/egress/prove.ReleaseDigest=sha256
BUILD   := CGO_ENABLED=0 go build -trimpath

.PHONY: help build guest gateway probe demo test bench bench-policy fuzz check check-fast generate install clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

guest:
	@mkdir -p bin
	scripts/guest.sh bin/sandboxio-guest

gateway:
	@mkdir -p bin
	scripts/gateway.sh bin/sandboxio-gateway

probe:
	@mkdir -p bin
	scripts/probe.sh bin/sandboxio-probe

build: guest gateway probe ## bin/sandboxio, the provider and what runs on the engine
	@guest=$$(scripts/digest.sh bin/sandboxio-guest)
	gateway=$$(scripts/digest.sh bin/sandboxio-gateway)
	probe=$$(scripts/digest.sh bin/sandboxio-probe)
	flags="$(LDFLAGS) $(GUEST):$$guest $(GATEWAY):$$gateway $(PROBE):$$probe"
	$(BUILD) -ldflags "$$flags" -o bin/sandboxio ./cmd/sandboxio
	$(BUILD) -ldflags "$$flags" -o bin/terraform-provider-sandboxio .
	for binary in bin/sandboxio bin/terraform-provider-sandboxio; do
		for digest in "$$guest" "$$gateway"; do
			grep -qF "$$digest" "$$binary" || { echo "$$binary does not carry the digests of guest and gateway"; exit 1; }
		done
	done
	grep -qF "$$probe" bin/sandboxio || { echo "bin/sandboxio does not carry the digest of the probe"; exit 1; }

demo: ## plan, deny, apply, run, destroy on a real Docker Engine
	@scripts/demo.sh

test: ## every test, on a Docker daemon of its own when root; none may skip
	@scripts/test.sh

bench: ## the benchmarks, on the same daemon
	@scripts/test.sh bench

fuzz: ## every fuzzer for FUZZTIME (5m); FUZZ="words" narrows it
	@scripts/fuzz.sh $(FUZZ)

bench-policy: ## policy check against conftest, on the same plan and rules
	@scripts/bench-policy.sh

check: ## what CI runs, in its order
	@scripts/check.sh

check-fast: ## the checks that take under five minutes; needs no Docker
	@scripts/check.sh fast

generate: ## docs, schemas and tables that are made from code
	go generate ./...

install: build ## the provider into Terraform's filesystem mirror
	@mkdir -p "$(MIRROR)"
	install -m 0755 bin/terraform-provider-sandboxio "$(MIRROR)/terraform-provider-sandboxio_v$(VERSION)"
	@echo 'it is in:    $(MIRROR)'
	echo 'use it with: required_providers { sandboxio = { source = "sandboxio/sandboxio", version = "$(VERSION)" } }'
	echo 'remove it:   rm -r "$(MIRROR)"'

clean: ## what the build made
	rm -rf bin dist
