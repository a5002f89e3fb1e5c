# What one does with this project. `make help` lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Tests that need more than this machine with Go: the real OpenStack services, a container engine, or hours.
TESTS ?= not lab and not crash and not kind

# Where the demo runs: simulator, lab (the services of `make openstack-up`), or an entry of your clouds.yaml.
CLOUD ?= simulator
# KEEP=1 leaves the demo's cluster up.
KEEP ?=

.DEFAULT_GOAL := help
.PHONY: help venv build test test-full check format rig-up rig-down crash crash-sample upgrade upgrade-sample simulation openstack-up openstack-down contract servers takeover contract-record e2e-kind bench demo demo-end release changelog

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | sort | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable . --group dev
	@touch $@

venv: $(STAMP) ## install the project and its tools into .venv

build: $(STAMP) ## have etcd, kube-apiserver and Cluster API's managers (about ten minutes, once)
	$(BIN)/capo local build

test: build ## run unit tests, then integration tests on a rig and the simulator
	$(BIN)/pytest -m "$(TESTS)"

test-full: export CONVERSION_OBJECTS = 10000
test-full: export MISOPERATION = all
test-full: test ## the same with every wrong value, and 10,000 random objects of each kind and version converted there and back

check: $(STAMP) ## what has to hold before a commit: format, lint, types, layers, generated files, no known vulnerability, no secret
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p capo
	$(BIN)/lint-imports
	$(BIN)/capo crds --check
	$(BIN)/towncrier build --draft --version next >/dev/null
	$(BIN)/python -m e2e.audit

format: $(STAMP) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

crash: build ## have every write and every route of servers, clusters and bastions go wrong in every way (half an hour)
	$(BIN)/pytest -m crash e2e/crash e2e/faults

crash-sample: export CRASH_SECONDS ?= 150
crash-sample: crash ## as much of it as a few minutes allow, other parts for each commit

upgrade: build $(if $(filter lab,$(CLOUD)),openstack-up) ## upgrade from the released version and downgrade to it at every write (an hour; CLOUD=lab: once)
	$(BIN)/pytest -m "$(if $(filter lab,$(CLOUD)),lab,crash)" e2e/upgrade

upgrade-sample: export CRASH_SECONDS ?= 75
upgrade-sample: upgrade ## as much of it as two minutes allow, other parts for each commit

SEEDS ?= 100
FIRST ?= 1
PLAYED = $(if $(SEED),--seed $(SEED),$(if $(PLAN),--plan $(PLAN),--seeds $(SEEDS) --first $(FIRST)))

simulation: $(STAMP) ## search for broken invariants: SEEDS=<number> (FIRST=<number>), or SEED=<one>, or PLAN=<file>
	$(BIN)/python -m e2e.simulation $(PLAYED) --reduce $(SIMULATION_FLAGS)

e2e-kind: $(STAMP) ## the image as the Deployment runs it, and the demo's scenario in kind (needs docker or podman, Go, network)
	$(BIN)/pytest -m kind e2e/kind

demo: build $(if $(filter lab,$(CLOUD)),openstack-up) ## a whole cluster up and down (CLOUD=lab, CLOUD=<name>, KEEP=1)
	$(BIN)/capo demo --cloud $(CLOUD) $(if $(KEEP),--keep) $(DEMO_FLAGS)

bench: build ## measure what 1, 10 and 100 machines cost, and write it into docs/benchmarks (a quarter of an hour)
	$(BIN)/python -m e2e.bench $(BENCH_FLAGS)

demo-end: $(STAMP) ## delete the cluster that KEEP=1 left up
	$(BIN)/capo demo --cloud $(CLOUD) --end

release: $(STAMP) ## lay out a provider repository for clusterctl (IMAGE=<registry>/<name>)
	$(BIN)/capo release $(if $(IMAGE),--image $(IMAGE))

changelog: $(STAMP) ## show what is new since the last release
	@$(BIN)/towncrier build --draft --version next 2>/dev/null

rig-up: $(STAMP) ## start a management cluster on this machine
	$(BIN)/capo local up

rig-down: $(STAMP) ## stop it
	$(BIN)/capo local down

contract: $(STAMP) $(if $(filter lab,$(CLOUD)),$(if $(OS_CLIENT_CONFIG_FILE),,openstack-up)) ## what the provider asks of OpenStack, tested (CLOUD=lab: on the real services)
	$(BIN)/pytest e2e/contract -m "$(if $(filter lab,$(CLOUD)),lab,not lab)"

servers: build $(if $(filter lab,$(CLOUD)),openstack-up) ## every field of a server, and what others do to one (CLOUD=lab: on the real services)
	$(BIN)/pytest e2e/servers -m "$(if $(filter lab,$(CLOUD)),lab,not lab)"

takeover: build $(if $(filter lab,$(CLOUD)),openstack-up) ## take a cluster over from the Go provider, move one there and back (CLOUD=lab: on the real services)
	$(BIN)/pytest e2e/takeover -m "$(if $(filter lab,$(CLOUD)),lab,not lab)"

contract-record: $(STAMP) openstack-up ## write down anew what the real services answer
	$(BIN)/pytest e2e/contract -m lab --record

openstack-up: ## start real OpenStack services on this machine
	e2e/openstack-lab/up.sh

openstack-down: ## stop them
	e2e/openstack-lab/down.sh
