# The targets a contributor needs; CONTRIBUTING.md says when to use which.
GO ?= go
SHELL := bash
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
export GOTOOLCHAIN ?= auto
# As what ships is built; and no step compiles again what another has. Only the race detector wants cgo.
export CGO_ENABLED ?= 0
# Nor what a clone in another place has compiled, and tested.
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath

.PHONY: build commands deploy-tools test test-all test-deps unit programs local warm writable process user user-rest docker docker-rest engines container cluster pods kubernetes chart vm clients python frameworks js console harness \
	docs fuzz lint types bench generate web cross wheels images agent-image cli-image cluster-up cluster-down

build: ## the command, into bin/: llmsandbox, and llmsandbox-kubernetes for clusters
	$(GO) build -o bin/ ./cmd/llmsandbox ./cmd/llmsandbox-kubernetes

docs: ## the documentation as a site, into dist/docs
	npm ci --prefix docs --ignore-scripts --no-audit --no-fund
	npm run --prefix docs build

export LLMSANDBOX_TEST_COMMANDS := $(CURDIR)/bin/test
SUM := $(LLMSANDBOX_TEST_COMMANDS)/gotestsum --hide-summary=skipped --format-hide-empty-pkg
commands: ## the command for all tests, and what counts them
	$(GO) build -o bin/test/ ./cmd/llmsandbox ./cmd/llmsandbox-kubernetes
	GOBIN=$(LLMSANDBOX_TEST_COMMANDS) $(GO) install gotest.tools/gotestsum@v1.13.0

# Three lanes, side by side: much of each is waiting. Pods are tried where a cluster has been built, which takes long.
ON_ENGINES := docker-rest engines container user-rest process
ON_CLUSTER := kubernetes chart harness clients console python frameworks js
PODS = $(if $(filter kubernetes,$(ALSO)),pods,$(shell test/cluster/build --built >/dev/null 2>&1 && echo pods))
TIME ?= some 15 minutes on two processors, 30 the first time
test: ## what every change must pass; ALSO="PART..." for more of it
	@echo "The tests: $(TIME). On Debian, root installs what is missing."
	@scripts/check "unit local $(filter-out $(ON_ENGINES) $(ON_CLUSTER),$(ALSO))" \
		"docker user $(filter $(ON_ENGINES),$(ALSO))" "$(PODS) programs $(filter $(ON_CLUSTER),$(ALSO))"

test-all: ## all there is: before a release
	@$(MAKE) --no-print-directory test ALSO="chart $(shell awk '!/^#/ { print $$1 }' .ci/parts)" TIME="some 45 minutes on two processors, 90 the first time"

test-deps: ## what the tests need: installed as root on Debian, else named
	scripts/test-deps

# What renders and installs deploy: its tests and chart need them, and building Helm takes minutes the first time.
deploy-tools: ## Helm and kustomize, for the tests of deploy
	GOBIN=$(LLMSANDBOX_TEST_COMMANDS) $(GO) install -ldflags="-s -w" helm.sh/helm/v4/cmd/helm@v4.3.1
	GOBIN=$(LLMSANDBOX_TEST_COMMANDS) $(GO) install -ldflags="-s -w" sigs.k8s.io/kustomize/kustomize/v5@v5.7.1

unit: commands deploy-tools ## the library with the race detector: no interpreter or compiler but the agent's
	CGO_ENABLED=1 $(SUM) --format pkgname-and-test-fails -- -race -timeout 20m $$($(GO) list ./... | grep -vE "$(PROGRAMS)|$(WHOLE)")

programs: commands ## beside the code too, with interpreters and compilers
	$(SUM) --format pkgname-and-test-fails -- -timeout 20m $$($(GO) list ./... | grep -E "$(PROGRAMS)")

PROGRAMS := /llmsandbox/(internal/language|security|images|bench|examples|scripts|test/docs|test/abuse|internal/seccomp)(/|$$)
WHOLE := /llmsandbox/(test/(chart|console|container|e2e|engine|kubernetes|mcp|server|vm)(/|$$)|internal/(cli|testengine|testcluster)$$)

SUITE := $(SUM) --format testname
CONTRACT := ^TestConformance$$/^Contract$$
local: commands ## whole sandboxes, as the user who calls this; limits on this machine as vm has them on others
	$(SUITE) -- -timeout 30m -skip '$(AGAIN)' ./test/e2e/... ./internal/cli ./test/vm/limits

AGAIN := ^Test(Warm|Writable|Root|Process)Conformance$$
warm: commands ## the suite once more, with programs that are forked from an interpreter with imports
	$(SUITE) -- -timeout 30m -run '^TestWarmConformance$$' ./test/e2e

writable: commands ## the suite once more, in sandboxes whose code may write everywhere, and is root or not
	$(SUITE) -- -timeout 30m -run '^Test(Writable|Root)Conformance$$/^(Contract|Agent)$$' ./test/e2e

process: commands ## the suite once more, in sandboxes without namespaces, as root and as that user
	$(SUITE) -- -timeout 30m -run '^TestProcessConformance$$' ./test/e2e
	$(SUITE) --raw-command -- scripts/e2e-as-user -test.run '^TestProcessConformance$$'

user: commands ## what a backend must do, as an ordinary user that root makes
	$(SUITE) --raw-command -- scripts/e2e-as-user -test.run '$(CONTRACT)'

user-rest: commands ## all else of local, as that user
	$(SUITE) --raw-command -- scripts/e2e-as-user -test.skip '$(CONTRACT)|$(AGAIN)'

docker: commands ## what a backend must do, on a Docker daemon that it starts and stops
	$(SUITE) -- -timeout 30m -run '^TestDockerConformance$$/^Contract$$' ./test/engine

docker-rest: commands ## all else of the suite there
	$(SUITE) -- -timeout 30m -run '^TestDockerConformance$$/^(Agent|Language)$$' ./test/engine

engines: commands ## images, settings and faults of engines; the suite on Podman, with root and without, and for code that is root on Docker
	$(SUITE) -- -timeout 75m -skip '^TestDockerConformance$$|^TestDockerRootConformance$$/^Language$$' ./test/engine

container: commands cluster ## the command and the suite in containers that others make, with Docker, Podman, Compose, a cluster, dev containers and act
	$(SUITE) -- -timeout 60m ./test/container

cluster: ## a real cluster for tests, which it builds
	test/cluster/build >/dev/null

pods: commands cluster ## what a backend must do, on that cluster
	$(SUITE) -- -timeout 45m -run '$(CONTRACT)' ./test/kubernetes

kubernetes: commands cluster ## all else of the suite there, with gVisor and faults
	$(SUITE) -- -timeout 75m -skip '$(CONTRACT)' ./test/kubernetes

chart: commands deploy-tools cluster ## the Helm chart of the servers: installed, upgraded and removed on that cluster
	$(SUITE) -- -count=1 -timeout 20m ./test/chart

vm: commands ## limits under cgroup v2, as root and as an ordinary user, in virtual machines
	LLMSANDBOX_VM=1 $(SUITE) -- -count=1 -timeout 30m ./test/vm ./test/vm/unit

clients: commands ## programs of others that speak with the MCP server and the HTTP server
	$(SUITE) -- -timeout 30m ./test/mcp ./test/server

VENV := python/.venv
$(VENV)/installed: python/requirements-dev.txt python/pyproject.toml python/dropin/pyproject.toml
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement python/requirements-dev.txt --editable python --editable python/dropin
	touch $@

PLUGIN_VENV := python/plugin/.venv# which has the released llm-sandbox, and cannot have the drop-in
$(PLUGIN_VENV)/installed: python/requirements-dev.txt python/pyproject.toml python/plugin/pyproject.toml
	python3 -m venv --clear $(PLUGIN_VENV)
	$(PLUGIN_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement python/requirements-dev.txt llm-sandbox==0.3.46 --editable python --editable python/plugin
	touch $@

python: commands $(VENV)/installed $(PLUGIN_VENV)/installed ## the Python packages: their tests, their types, and the wheel in a fresh environment
	cd python && .venv/bin/mypy && PYRIGHT_PYTHON_IGNORE_WARNINGS=1 .venv/bin/pyright --pythonpath .venv/bin/python
	cd python && .venv/bin/pytest
	cd python/dropin && ../.venv/bin/mypy && PYRIGHT_PYTHON_IGNORE_WARNINGS=1 ../.venv/bin/pyright --pythonpath ../.venv/bin/python
	cd python/dropin && ../.venv/bin/pytest
	cd python/plugin && .venv/bin/mypy && PYRIGHT_PYTHON_IGNORE_WARNINGS=1 .venv/bin/pyright --pythonpath .venv/bin/python
	cd python/plugin && .venv/bin/pytest

# No environment can have all: they want different versions of the same packages.
FRAMEWORKS := openai3 openai2 crewai
python/frameworks/%/.venv/installed: python/frameworks/%/requirements.txt python/pyproject.toml
	python3 -m venv --clear $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $< --editable python
	touch $@

frameworks: commands $(FRAMEWORKS:%=python/frameworks/%/.venv/installed) ## the tools of the Python package in agent frameworks, with scripted models
	cd python/frameworks && for f in $(FRAMEWORKS); do $$f/.venv/bin/mypy $$f conftest.py docs.py scripted.py && $$f/.venv/bin/pytest $$f || exit; done

js: commands ## the JavaScript package: its types, its tests in Node, Bun and Deno, and what bundlers make of it
	npm ci --prefix js --ignore-scripts --no-audit --no-fund
	npm test --prefix js --silent

console: commands ## the web console in Chromium; that its files are what its sources make
	npm ci --prefix web --ignore-scripts --no-audit --no-fund
	$(SUITE) -- -timeout 20m ./test/console

harness: commands cluster ## what starts and ends engines and the cluster
	$(SUITE) -- -timeout 45m ./internal/testengine ./internal/testcluster
	cd test/cluster && $(GO) vet ./... && $(GO) test ./netpol && cd gvisor && $(GO) vet ./...

fuzz: ## every fuzz target, for a minute each
	scripts/fuzz

lint: ## formatting, vet and staticcheck
	scripts/lint $(STATICCHECK)

bench: build ## ratios against the bare interpreter and other sandboxes
	$(GO) run ./bench

web: ## the embedded console; needs Node
	$(GO) generate ./web

generate: ## the embedded agent, system call filters and modules of Python
	$(GO) generate ./internal/agentbin ./internal/seccomp ./internal/language/python

types: ## everything for every platform, without compiling it
	$(GO) run ./scripts/typecheck {linux,darwin,windows}/{amd64,arm64}

cross: ## everything compiled for every system and every processor
	scripts/cross

wheels: ## the Python package with the command in it, for every system, into dist
	scripts/wheels

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
