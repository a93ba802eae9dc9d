# Everything runs inside .venv, which is made on first use from requirements.lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# A test run and a demo start many processes. Where Python may keep the bytecode of modules, each of
# them saves up to three seconds of compiling.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo papers test quick coverage mutants fuzz lint format types bench lock clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tamis needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$$(sed -n 's/^uv==//p' requirements.lock)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## match stock quotes as a batch and as a stream; tamis-demo/report.html shows it
	@$(BIN)/tamis demo $(DEMO)

papers: $(READY) ## run the tables and figures of the papers again; tamis-papers/index.html shows them
	@$(BIN)/tamis papers $(PAPERS)

test: $(READY) ## run every test, on up to four cores
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup --no-loadscope-reorder

quick: $(READY) ## run the tests that need neither Spark nor the compiler, in about a minute
	NUMBA_DISABLE_JIT=1 TAMIS_HYPOTHESIS=quick $(BIN)/python -m pytest --quick --numprocesses auto --dist loadgroup

coverage: $(READY) ## run every test and say which lines and branches of the source ran
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup --no-loadscope-reorder \
	    --cov --cov-report=term:skip-covered

mutants: $(READY) ## make 150 small changes, one at a time, and count those that the tests notice
	$(BIN)/python benchmarks/mutants.py $(MUTANTS)

fuzz: $(READY) ## run the property tests with new random cases, many more of them
	TAMIS_HYPOTHESIS=fuzz $(BIN)/python -m pytest -m "not spark" tests

lint: $(READY) ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## mend style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY) ## check types, strictly
	$(BIN)/mypy

bench: $(READY) ## measure most of what docs/performance-*.md report
	$(BIN)/python benchmarks/parsing.py
	$(BIN)/python benchmarks/arrays.py
	$(BIN)/python benchmarks/matching.py
	$(BIN)/python benchmarks/field.py --suite full --json results.jsonl
	$(BIN)/python benchmarks/field_plot.py results.jsonl
	$(BIN)/python benchmarks/pipeline.py --json pipeline.jsonl
	$(BIN)/python benchmarks/growth_plot.py pipeline.jsonl
	$(BIN)/python benchmarks/broker.py

lock: $(READY) ## resolve the newest versions into requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --all-extras --group dev \
	    --no-annotate --no-header pyproject.toml requirements.in --output-file requirements.lock

clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
