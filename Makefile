# `make demo` and `make test` are all a newcomer types; each does its own set-up. Needs git and Python 3.11-3.13.
SHELL := /bin/bash
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/agent-home-reconciler
BIN := .venv/bin
HERMES := 0.19.0
HERMES_OLD := 0.18.2 0.16.0
ORCHESTRATOR := 0.1.2
OPENCLAW := 2026.9.6
OPENCLAW_OLD := 2026.7.1-2

.PHONY: demo demo-whole demo-hermes demo-openclaw test unit lint bench docs hermes openclaw clean help
help:
	@echo "make demo   plan and apply on a throw-away home of our own; make demo-whole, demo-hermes, demo-openclaw"
	@echo "make test   every test, the real-harness ones included"
	@echo "make unit   the tests that need no harness   make lint   ruff, mypy, import-linter"
	@echo "make bench  measure, beside the floor        make docs   regenerate the generated pages"

# The environment is made again when pyproject.toml changes.
.venv/.made: pyproject.toml
	@python=$$(bash tools/python.sh) && { test -x $(BIN)/python || "$$python" -m venv .venv; }
	@echo "installing the project and its test tools …"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]'
	@touch .venv/.made

hermes: .venv/.made
	@$(BIN)/python tools/harness.py hermes $(HERMES)

demo: .venv/.made
	@bash examples/00-native/demo.sh

demo-whole: .venv/.made
	@bash examples/03-whole-home/demo.sh

demo-hermes: hermes
	@bash examples/01-quickstart/demo.sh

openclaw: .venv/.made
	@$(BIN)/python tools/harness.py openclaw $(OPENCLAW)

demo-openclaw: openclaw
	@bash examples/02-openclaw/demo.sh

test: lint hermes openclaw
	@$(BIN)/python tools/harness.py hermes $(HERMES_OLD)
	@$(BIN)/python tools/harness.py orchestrator $(ORCHESTRATOR)
	@$(BIN)/python tools/harness.py openclaw $(OPENCLAW_OLD)
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

unit: .venv/.made
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "not hermes and not orchestrator and not openclaw"

lint: .venv/.made
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

bench: hermes openclaw
	@$(BIN)/python tools/harness.py orchestrator $(ORCHESTRATOR)
	@$(BIN)/python tools/bench.py

docs: .venv/.made
	@$(BIN)/python tools/docs.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
