# Two commands do all their own set-up: `make demo` shows what Foretest does, `make test` checks everything.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint bench clean

demo: $(VENV)/.ready
	$(BIN)/foretest demo

test: $(VENV)/.ready-dev lint
	$(BIN)/python -m pytest

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# the long studies, whose tables are in docs/benchmarks.md, docs/coverage.md and docs/audit.md
bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/interval_coverage.py
	$(BIN)/python benchmarks/audit_power.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready pyproject.toml
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf $(VENV) foretest-demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
