# Two commands, each enough on its own on a fresh machine with Python 3.11 or newer:
#   make demo   runs swarmtest on its example and shows what it finds
#   make test   runs every check and every test
# What they need is installed into .venv first: for the demo only what swarmtest itself needs.
# `make setup` installs everything; PYTHON=/path/to/python chooses the interpreter.
#   make docs   builds the documentation site in build/site
#   make release-check   builds a release, and tries it in clean environments
#   make fresh  runs `make test` on a bare Debian: see COMMAND=--help

VENV ?= .venv
BIN := $(VENV)/bin
# Without bytecode every process that is started compiles again what it imports.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup compilers browser demo test lint unit docs picture release-check fresh benchmarks clean

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

setup: $(VENV)/.ready

$(VENV)/.installed: pyproject.toml tools/setup.sh
	@VENV=$(VENV) sh tools/setup.sh
	@touch $@

$(VENV)/.ready: $(VENV)/.installed
	@VENV=$(VENV) sh tools/setup.sh dev
	@touch $@

demo: $(VENV)/.installed
	@PATH="$(abspath $(BIN)):$$PATH" sh tools/demo.sh

test: lint unit

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

compilers: setup
	@VENV=$(VENV) sh tools/compilers.sh

browser:
	@sh tools/browser.sh

unit: setup compilers browser
	$(BIN)/python tools/run_tests.py

docs: setup
	@$(BIN)/python tools/site.py

picture: setup
	@$(BIN)/python tools/terminal_picture.py

# CHECKS=... runs only some of them; `tools/release_check.py --list` names them.
release-check: setup
	@$(BIN)/python tools/release_check.py $(CHECKS)

# Variables that are given to make are in the script's environment.
fresh:
	@bash tools/fresh-machine.sh $(COMMAND)

benchmarks: setup
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) .swarmtest build
