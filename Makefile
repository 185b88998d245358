# Each target does its own set-up: Python 3.11 or later, make and a package registry are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

help:            ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 12

demo: $(VENV)/.demo-ready   ## cluster the shipped sample, show it, write a report
	$(BIN)/shoal demo --out demo

test: $(VENV)/.test-ready browser lint   ## everything that must hold
	$(BIN)/pytest -n auto --dist loadfile

lint: $(VENV)/.test-ready   ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.bench-ready   ## speed, memory and quality beside rivals: JSON lines, docs/results.md, README's table
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/results_page.py

MINUTES ?= 10
fuzz: $(VENV)/.test-ready   ## odd model files, tables and options for MINUTES=10 each, with bounds checks in the kernels
	NUMBA_BOUNDSCHECK=1 $(BIN)/python tools/fuzz.py model-files --minutes $(MINUTES) --seed $$(date +%s) --keep fuzz-failures
	NUMBA_BOUNDSCHECK=1 $(BIN)/python tools/fuzz.py files --minutes $(MINUTES) --seed $$(date +%s) --keep fuzz-failures
	NUMBA_BOUNDSCHECK=1 $(BIN)/python tools/fuzz.py estimators --minutes $(MINUTES) --seed $$(date +%s)

bounds: $(VENV)/.test-ready   ## the contract of all models with bounds checks in every kernel; half an hour of compiling
	NUMBA_BOUNDSCHECK=1 $(BIN)/pytest -q tests/contract

dist: $(VENV)/.test-ready   ## sdist, and a wheel that brings its kernels compiled for this platform; some 4 minutes
	$(BIN)/python -m hatchling build -t sdist -d dist
	SHOAL_BUILD_LEVELS=x86-64-v3 $(BIN)/python -m hatchling build -t wheel -d dist
	$(BIN)/twine check --strict dist/*

serve: $(VENV)/.service-ready demo   ## explore the demo's model and teach it, at http://127.0.0.1:8000
	$(BIN)/shoal serve demo/debian.shoal

docs: $(VENV)/.docs-ready   ## guides, API and commands as pages in docs/_build; a warning fails
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build
	@echo "open docs/_build/index.html"

browser: .browser-ready

# The report is tested in a real browser: Debian's chromium, or a Chrome that is already there.
.browser-ready:
	@sh tests/install_browser.sh && touch .browser-ready

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo-ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[report]'
	@touch $@

$(VENV)/.service-ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[report,service]'
	@touch $@ $(VENV)/.demo-ready

$(VENV)/.test-ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[test]'
	@touch $@ $(VENV)/.demo-ready $(VENV)/.service-ready

$(VENV)/.bench-ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@ $(VENV)/.test-ready $(VENV)/.demo-ready

$(VENV)/.docs-ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	@touch $@ $(VENV)/.demo-ready

clean:           ## remove what the targets made
	rm -rf $(VENV) .browser-ready dist demo fuzz-failures docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help demo test lint bench dist fuzz bounds serve docs browser clean
