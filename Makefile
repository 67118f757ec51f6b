# Every command sets up what it needs from nothing but python3; the first two to run: `make demo`, `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Coverage takes a third longer; CI sets it to: --cov --cov-report=term
COVERAGE ?=
# Compiled modules are kept, whatever the shell says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE =

.PHONY: setup demo lint house test test-slow test-all hard-test bench release lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "armnesia needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	$(PYTHON) -m venv --clear .venv
	@# The lock names everything: nothing is resolved, so a newer release elsewhere changes nothing.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip check
	touch $(READY)

demo: setup
	$(BIN)/armnesia demo --out demo-output
	@echo "Now the paper, reproduced on a coarse grid:"
	$(BIN)/armnesia research reproduce --quick --out demo-output/paper
	@echo "To forget somebody on a page, in a vault of the same flights: $(BIN)/armnesia serve --demo --open"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy --num-workers 2

# The quick tests: with lint, less than four minutes on two cores.
test: lint
	$(BIN)/pytest -m "not slow" $(COVERAGE)

# The slow rest.
test-slow: setup
	$(BIN)/pytest -m slow

test-all: test test-slow

# The vault for half an hour: hundreds of kills, thousands of concurrent operations, hundreds of random histories;
# and every row of the tables of the documentation. On a disk, where the other tests are in memory if they can.
hard-test: setup
	ARMNESIA_HARD_TEST=1 TMPDIR=$${TMPDIR:-/tmp} $(BIN)/pytest -n0 -v -s tests/simulation/test_insurance_tables.py \
		tests/paper/test_reproduce.py \
		tests/vault/test_crash.py tests/vault/test_concurrency.py tests/vault/test_stateful.py \
		tests/vault/test_benchmark.py tests/paper/test_claims.py

# One report of the benchmarks, with the machine: all of them, which takes hours, or BENCHMARKS="lakes tilt".
bench: setup
	$(BIN)/python -m benchmarks.report $(BENCHMARKS)

# What the main commands call: functions, files, transactions.
house: setup
	$(BIN)/python -m scripts.trace_walk

# The wheel, the source, and a bill of materials (CycloneDX) of everything that the lock names, in dist/.
release: setup
	$(BIN)/python -m hatchling build
	$(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible -o dist/bom.cdx.json

# Pins versions and hashes only; needs uv.
lock:
	uv pip compile pyproject.toml --extra dev --generate-hashes --universal --python-version 3.11 \
		--no-emit-index-url --no-emit-find-links --no-header -o requirements.lock

clean:
	rm -rf .venv demo-output .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
