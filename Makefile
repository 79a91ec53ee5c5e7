# The targets a contributor needs; CONTRIBUTING.md says when to use which.
GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
export GOTOOLCHAIN ?= auto
# As what ships is built; and no step compiles again what another has. Only the race detector wants cgo.
export CGO_ENABLED ?= 0

.PHONY: build test test-deps unit e2e engines cluster pods kubernetes vm fuzz lint bench generate cross images agent-image cli-image cluster-up cluster-down

build: ## the command, into bin/: llmsandbox, and llmsandbox-kubernetes for clusters
	$(GO) build -trimpath -o bin/ ./cmd/llmsandbox ./cmd/llmsandbox-kubernetes

# Engines and pods are mostly waited for, so their tests run side by side. The cluster's images come from an engine,
# and engines take turns: that is done before.
test: test-deps unit e2e cluster ## everything a change must pass
	$(MAKE) --jobs=2 --output-sync=target engines pods

test-deps: ## what the tests need: installed as root on Debian, else named
	scripts/test-deps

unit: ## tests beside the code, with the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 20m $$($(GO) list ./... | grep -vE "/test/e2e|/test/engine|/test/kubernetes|/internal/testcluster|/internal/cli$$")

e2e: ## whole sandboxes, as the user who calls this
	$(GO) test -timeout 30m ./test/e2e/... ./internal/cli

engines: ## whole sandboxes on real Docker and Podman, which it starts and stops
	$(GO) test -timeout 75m ./test/engine

cluster: ## a real cluster for tests, which it builds and gives its images
	test/cluster/build >/dev/null
	$(GO) test -timeout 45m ./internal/testcluster

pods: ## whole sandboxes on that cluster, which it starts and stops
	$(GO) test -timeout 75m ./test/kubernetes

kubernetes: cluster pods ## both

vm: ## limits under cgroup v2, as root and as an ordinary user, in virtual machines
	LLMSANDBOX_VM=1 $(GO) test -count=1 -timeout 30m ./test/vm

fuzz: ## every fuzz target, for a minute each
	scripts/fuzz

lint: ## formatting, vet and staticcheck
	scripts/lint $(STATICCHECK)

bench: build ## ratios against the bare interpreter and other sandboxes
	$(GO) run ./bench

generate: ## the embedded agent
	$(GO) generate ./internal/agentbin

cross: ## everything for every platform that must build
	scripts/cross

images: ## the default images, with ENGINE=docker or podman; BASE= for another base
	scripts/images

agent-image: ## the guest agent's image; ENGINE=docker, podman or none for a file; ARCH=amd64 or arm64
	scripts/agent-image $(ARCH)

cli-image: ## the command's image, for pods that make sandboxes; ENGINE and ARCH as above
	scripts/cli-image $(ARCH)

cluster-up: ## a real Kubernetes cluster on this machine, as root; says how to use it
	@test/cluster/up

cluster-down: ## ends it; what was built and its images stay in the cache
	@test/cluster/down
