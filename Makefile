# make demo   on a fresh machine: builds .venv, runs 480 rollouts without a key, prints the summary
# make test   builds .venv with the developer's tools, then lint, types, floors, tests
# make bench  every benchmark, with a report in benchmarks/report/

.DEFAULT_GOAL := demo
.PHONY: demo test bench setup setup-dev lint
SHELL := /bin/bash

# Start-up is measured in milliseconds here: without compiled bytecode every number doubles.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
# The first Python from 3.11 on that can make a venv.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$python; break; }; done)
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode -e ".[math,otel,parquet,reload]"

demo: setup
	@$(BIN)/osmosis-run validate configs/arithmetic
	@$(BIN)/osmosis-run eval -w configs/arithmetic --fresh

lint: setup-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n auto $(PYTEST)

BENCHMARKS := startup eval_rate in_flight rows transports chat_models servers serve_rate serve_accepts
bench: setup-dev
	@failed=; for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || failed="$$failed $$name"; done; \
		test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

setup: $(VENV)/.installed
setup-dev: $(VENV)/.installed-dev

$(BIN)/uv:
	@test -n "$(PYTHON)" || { echo "error: no Python from 3.11 on with its venv module was found"; echo; \
		echo "hint: on Debian and Ubuntu, \`sudo apt-get install python3 python3-venv\`"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.installed: pyproject.toml | $(BIN)/uv
	$(INSTALL)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/uv
	$(INSTALL) --group dev
	@touch $@ $(VENV)/.installed
