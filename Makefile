# What one does with this project. `make help` lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The site has an environment of its own: MkDocs shares libraries with the provider, whose tests run on the image's versions.
DOCS := .venv-docs
DOCS_STAMP := $(DOCS)/.installed
# What a check of an unchanged file found, by the file's hash; all checkouts share it.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/capo
MKDOCS := NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs

# Without tests that need more than this machine with Go (the real OpenStack services, a container engine, hours), and without
# those that only read source code and pages, which `make check` runs.
TESTS ?= not lab and not crash and not kind and not operator and not topology and not lint

# Integration tests mostly wait: several processes, each with a rig of its own. A file's tests stay in one process, since they
# share what they start, and so do all tests of some folders (tools/gate/plugin.py). For one process: WORKERS=
WORKERS ?= -n 4 $(TOGETHER)
UNIT_WORKERS = $(if $(WORKERS),-n 2 $(TOGETHER))
TOGETHER := --dist loadfile --no-loadscope-reorder --max-worker-restart 1

# Where the demo runs: simulator, lab (the services of `make openstack-up`), or an entry of your clouds.yaml.
CLOUD ?= simulator
# KEEP=1 leaves the demo's cluster up.
KEEP ?=

# The order of sets, the same in each run; `make search` has others.
export PYTHONHASHSEED ?= 0
# Some containers set it: each process compiles what it imports, and each pytest rewrites all tests, for 14 s.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv build unit test test-unit test-integration gate openstack-hold test-full check docs docs-serve format rig-up rig-down crash crash-sample topology upgrade upgrade-sample simulation openstack-up openstack-down contract servers takeover contract-record e2e-kind e2e-operator bench soak demo demo-end release changelog lock image image-verify image-multi-arch sbom quick code audit audit-report search

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | sort | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

$(STAMP): pyproject.toml image/simulator.txt
	test -x $(BIN)/python -a -e $@ || $(PYTHON) -m venv --clear $(VENV) # without the stamp it may be half made
	@rm -f $@
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	sed -n 's/^\([a-z0-9.-]*==[^ ]*\).*/\1/p' image/simulator.txt >$(VENV)/constraints.txt # the tests run on the image's versions
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[demo,operator]' --group dev \
	  --constraint $(VENV)/constraints.txt
	@touch $@

venv: $(STAMP) ## install the project and its tools into .venv

build: $(STAMP) ## build etcd, kube-apiserver, Cluster API's managers, kubectl and helm (about twelve minutes, once; WITHOUT=<programs>)
	$(BIN)/capo local build $(if $(WITHOUT),--without $(WITHOUT))

unit: $(STAMP) ## run the tests beside the code that need neither Go nor a rig (two minutes)
	$(BIN)/pytest -q -n 2 -m "$(TESTS) and not integration and not slow" api capo controllers

PARTS ?= build unit integration

test: $(STAMP) ## run the tests that need no rig beside those that run on rigs and the simulator (a quarter of an hour; build once: ten minutes)
	$(BIN)/python -m tools.gate $(PARTS)

gate: ## run what decides whether a change lands: check, tests, crashes, upgrades, real services, demos (25 minutes)
	.ci/run

test-unit: $(STAMP) ## run the tests that need no rig
	$(BIN)/pytest -q $(UNIT_WORKERS) -m "$(TESTS) and not integration"

test-integration: build ## run the tests that need a rig
	$(BIN)/pytest -q $(WORKERS) -m "$(TESTS) and integration"

test-full: export CONVERSION_OBJECTS = 10000
test-full: export MISOPERATION = all
test-full: test ## the same with every wrong value, and 10,000 random objects of each kind and version converted there and back

check: code docs audit-report ## what has to hold before a commit: format, lint, types, layers, generated files, the site, no secret; reports known vulnerabilities

quick: code unit ## what one runs at each commit: check without site and audit, and the tests of make unit (three minutes)

code: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --cache-dir $(CACHE)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry capo api controllers --extend-exclude '.*/tests/' # what ships imports what it declares, and declares what it imports
	$(BIN)/deptry . --ignore DEP002,DEP004 --exclude '\.venv|tools/openstack-lab' # so do tests and tools
	$(BIN)/capo crds --check
	$(BIN)/towncrier build --draft --version next >/dev/null
	$(BIN)/python -m tools.language
	$(BIN)/pytest -q -m lint $$(grep -RlF --include='test_*.py' pytest.mark.lint api capo controllers e2e tools)
	$(BIN)/python -m tools.image.lock --check

audit: $(STAMP) ## refuse a known vulnerability of an installed package and a secret in a file (ADVISORIES=required: and no answer)
	$(BIN)/python -m tools.audit

audit-report: $(STAMP)
	$(BIN)/python -m tools.audit --report

$(DOCS_STAMP): pyproject.toml
	test -x $(DOCS)/bin/python -a -e $@ || $(PYTHON) -m venv --clear $(DOCS)
	@rm -f $@
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	$(DOCS)/bin/python -m pip install -qq --disable-pip-version-check --group docs
	@touch $@

docs: $(DOCS_STAMP) ## build the site of the documentation into build/site; a broken link fails (DOCS_REPOSITORY=<its address>)
	$(MKDOCS) build --strict

docs-serve: $(DOCS_STAMP) ## serve the site on 127.0.0.1:8000, and build it again after each edit
	$(MKDOCS) serve --dev-addr 127.0.0.1:8000

format: $(STAMP) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

crash: build ## have every write and every route of servers, clusters and bastions go wrong in every way (half an hour)
	$(BIN)/pytest -m crash e2e/crash e2e/faults

crash-sample: export SAMPLE ?= gate
crash-sample: crash ## the part of it that the gate runs, the same each time: e2e/crash/gate.txt (five minutes)

upgrade: build $(if $(filter lab,$(CLOUD)),openstack-up) ## upgrade from the released version and downgrade to it at every write (an hour; CLOUD=lab: once)
	$(BIN)/pytest -m "$(if $(filter lab,$(CLOUD)),lab,crash)" e2e/upgrade

upgrade-sample: export SAMPLE ?= gate
upgrade-sample: upgrade ## the part of it that the gate runs, the same each time: e2e/upgrade/gate.txt (three minutes)

# How long make search lasts.
SECONDS ?= 900

search: build ## search with fresh seeds: simulated runs, redaction, failed routes, crashes, upgrades (SECONDS=900; SEED=<the first one>)
	$(BIN)/python -m tools.search --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

SEEDS ?= 100
FIRST ?= 1
PLAYED = $(if $(SEED),--seed $(SEED),$(if $(PLAN),--plan $(PLAN),--seeds $(SEEDS) --first $(FIRST)))

simulation: $(STAMP) ## search for broken invariants: SEEDS=<number> (FIRST=<number>), or SEED=<one>, or PLAN=<file>
	$(BIN)/python -m e2e.simulation $(PLAYED) --reduce $(SIMULATION_FLAGS)

# NODE=local: kind's node and all images are built here, as root on Debian, without an image registry (a quarter of an hour, once)
NODE ?= published

e2e-kind: $(STAMP) ## the image in kind: a cluster's life while its manager is replaced (docker or podman, Go, network; NODE=local: no registry)
	$(BIN)/$(if $(filter local,$(NODE)),python -m e2e.kind.local --,pytest -m kind e2e/kind) $(E2E_FLAGS)

e2e-operator: build ## install and upgrade by the real Cluster API Operator, from ConfigMaps and an OCI artifact (builds it once: 2 to 15 minutes)
	$(BIN)/pytest -m operator e2e/operator

topology: build ## the life of a ClusterClass cluster: edits, version, another class, health check, deletion (nine minutes)
	$(BIN)/pytest -m topology e2e/topology

demo: WITHOUT = helm kubectl
demo: build $(if $(filter lab,$(CLOUD)),openstack-up) ## a whole cluster up and down (CLOUD=lab, CLOUD=<name>, KEEP=1)
	$(BIN)/capo demo --cloud $(CLOUD) $(if $(KEEP),--keep) $(DEMO_FLAGS)

bench: build ## measure what 1, 10 and 100 machines cost, and write it into docs/benchmarks (a quarter of an hour)
	$(BIN)/python -m tools.bench $(BENCH_FLAGS)

soak: build ## ten minutes of churn at 300 machines, in which nothing may grow (SOAK_FLAGS="--minutes 240 --machines 1000": the long form)
	$(BIN)/python -m tools.soak $(if $(SOAK_FLAGS),$(SOAK_FLAGS),--minutes 10 --machines 300 --clusters 30 --hurry 2 --out build/soak)

demo-end: $(STAMP) ## delete the cluster that KEEP=1 left up
	$(BIN)/capo demo --cloud $(CLOUD) --end

# IMAGE=<registry>/<name>, BASE=slim, debian or distroless, ENGINE=docker, podman or buildah
IMAGE_FLAGS = $(if $(IMAGE),--name $(IMAGE)) $(if $(BASE),--base $(BASE)) $(if $(ENGINE),--engine $(ENGINE))

lock: $(STAMP) ## lock the image's dependencies with their hashes (LOCK_FLAGS=--upgrade: the newest versions)
	$(BIN)/python -m tools.image.lock $(LOCK_FLAGS)

# What others run has no known vulnerability, and no answer is no proof of that. Where none can be had: ADVISORIES=optional
image image-multi-arch release: export ADVISORIES ?= required

image: $(STAMP) audit sbom ## build the image, if make audit passes (IMAGE=<registry>/<name>, BASE=debian: without an image registry, ENGINE=podman)
	$(BIN)/python -m tools.image build $(IMAGE_FLAGS)

image-verify: $(STAMP) ## build the image twice, compare both, and show its size
	$(BIN)/python -m tools.image verify $(IMAGE_FLAGS)

image-multi-arch: $(STAMP) audit ## build for amd64 and arm64 with docker's buildx, and push, if make audit passes (IMAGE=<registry>/<name>)
	$(BIN)/python -m tools.image multi-arch $(IMAGE_FLAGS)

sbom: $(STAMP) ## list the image's Python packages in CycloneDX, in build/image
	$(BIN)/python -m tools.image sbom

release: $(STAMP) audit ## lay out a release for clusterctl and the Cluster API Operator, if make audit passes (IMAGE=<registry>/<name>, best by its digest)
	$(BIN)/capo release $(if $(IMAGE),--image $(IMAGE))
	$(BIN)/python -m tools.image wheel

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

contract-record: $(STAMP) openstack-up ## record again what the real services answer
	$(BIN)/pytest e2e/contract -m lab --record

openstack-up: ## start real OpenStack services on this machine
	tools/openstack-lab/up.sh

# For the gate: hold the services for one user, touch a file when they are up, and stop them when the input ends.
openstack-hold:
	tools/openstack-lab/hold.sh sh -c 'touch "$$GATE_UP" && exec cat'

openstack-down: ## stop them
	tools/openstack-lab/down.sh
