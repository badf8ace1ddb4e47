# Two commands, each enough on its own on a fresh machine with Python 3.11 or newer:
#   make demo   runs swarmtest on its example and shows what it finds
#   make test   runs every check and every test
# `make setup` is what both do first: a virtual environment in .venv with everything in it.

VENV ?= .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help setup compilers browser demo test lint unit benchmarks clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -5

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml tools/setup.sh
	@VENV=$(VENV) sh tools/setup.sh
	@touch $@

demo: setup
	@PATH="$(abspath $(BIN)):$$PATH" sh tools/demo.sh

test: lint unit

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

compilers:
	@sh tools/compilers.sh

browser:
	@sh tools/browser.sh

# Three workers on two cores: many tests wait for processes that they have started.
unit: setup compilers browser
	$(BIN)/python -m pytest -q -n 3 --dist worksteal

benchmarks: setup
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) .swarmtest
