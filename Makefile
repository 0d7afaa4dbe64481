# dpnb's commands.  `make` alone lists them; each sets itself up in $(VENV) and repeats nothing that is done.
# Needs GNU make and Python 3.11 or newer, nothing else: Node comes as a Python wheel.

VENV := .venv$(if $(OLDEST),-oldest)
BIN := $(VENV)/bin
PY := $(BIN)/python
# The environment's own node, jlpm and tools come before the machine's.
ENV := PATH="$(CURDIR)/$(BIN):$$PATH"
export OLDEST
# Where a machine keeps Python from storing bytecode, each of hundreds of processes would compile dpnb, and pytest all tests.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help lab serve docs test test-all checks lint layers types typescript pytest pytest-all attacks repeat durations soak coverage oldest bench format dist \
  clean

help:  ## list these targets
	@echo "dpnb: explore a sensitive table under differential privacy. Targets:"
	@sed -n 's/^\([a-z-]*\):[^#]*##/  \1 ##/p' Makefile | awk -F ' ## ' '{ printf "  %-12s %s\n", $$1, $$2 }'

lab: set-up-lab  ## set up, then open JupyterLab on the quickstart notebook (PORT=, LAB_FLAGS= pass through)
	@$(ENV) PORT="$(PORT)" LAB_FLAGS="$(LAB_FLAGS)" $(PY) .ci/lab.py

serve: set-up-serve  ## set up, then serve the RAND table to a notebook that never gets it, and print what to type there
	@$(ENV) $(PY) .ci/serve.py

docs: set-up-docs  ## set up, then build the documentation into build/docs/html and check its links
	@$(ENV) $(PY) .ci/docs.py

test: checks pytest  ## set up, then run the checks and the tests; five minutes

# AFTER_TEST=yes leaves out what `make test` has run, also where that chose 25 examples instead of 100, and in dpnb/ all.
# PART= names one part of the tests below, for machines that share them.
# All that it needs is set up first, so that one resolve and not two find it.
test-all: set-up-thorough $(if $(AFTER_TEST),,checks) pytest-all  ## every check and every test; 20 minutes (AFTER_TEST=, PART=)

# The longest first, the shortest last: so both cores have work until the end.
checks: set-up-test  ## lint, types, layers and the Lab extension's tests, two at a time
	@$(MAKE) --no-print-directory -j2 $(if $(filter output-sync,$(.FEATURES)),-O) types typescript lint layers

lint: set-up-test  ## format and lint rules of Python
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: set-up-test  ## mypy --strict
	$(PY) -m mypy --strict dpnb

layers: set-up-test  ## who may import whom
	$(ENV) $(BIN)/lint-imports --no-logo

typescript: set-up-test  ## lint and unit tests of the Lab extension
	cd labextension && $(ENV) jlpm lint:check && $(ENV) jlpm test

# PROCESSES= says how many there are; with more than cores, some may wait for a page or a cluster while others compute.
# A file is not divided among processes; tests/conftest.py says which begin, and tests/README.md what the marks mean.
PYTEST = $(ENV) $(PY) -m pytest --numprocesses=$(or $(PROCESSES),auto) --maxprocesses=4 --dist=loadfile --no-loadscope-reorder
QUICK := smoke or not (ui or spark or dask or notebook or statistical or slow)
LEFT_OUT := not ($(QUICK))
PART_browser := ui
PART_engines := not ui and (spark or dask or notebook)
PART_statistical := statistical and not (ui or spark or dask or notebook)
PART_rest := not (ui or spark or dask or notebook or statistical)
CHOSEN = $(if $(AFTER_TEST),($(LEFT_OUT)))$(if $(AFTER_TEST),$(if $(PART), and ))$(if $(PART),($(PART_$(PART))))

pytest: set-up-test  ## the Python and browser tests of `make test` (PYTEST_FLAGS= pass through)
	DPNB_TEST_LEVEL=quick $(PYTEST) -m "$(QUICK)" $(PYTEST_FLAGS)

# One more process than cores: a seventh of the time of two is spent waiting for pages, kernels, clusters and services.
pytest-all: PROCESSES = $(shell $(PY) -c 'import os; print((os.cpu_count() or 1) + 1)')
pytest-all: set-up-thorough  ## those of `make test-all` (AFTER_TEST=, PART=, PYTEST_FLAGS=)
	$(PYTEST) $(if $(CHOSEN),-m "$(CHOSEN)") $(if $(AFTER_TEST),-o testpaths=tests) $(PYTEST_FLAGS)

attacks: set-up-test  ## the published attacks, each with a control that it must catch; a minute (ATTACK=test_nan, PYTEST_FLAGS=)
	$(PYTEST) tests/attacks$(if $(ATTACK),/$(ATTACK).py) $(PYTEST_FLAGS)

repeat: set-up-thorough  ## the tests that wait for something, sixty times on busy cores (TIMES=, PYTEST_FLAGS=)
	cd tests && $(ENV) "$(CURDIR)/$(PY)" -m soak.repeat --times $(or $(TIMES),60) $(PYTEST_FLAGS)

durations:  ## where the minutes of the last `make test` and `make test-all` went, by kind and by file
	@$(PY) tests/durations.py

soak: set-up-thorough  ## properties with 100 examples; kill, load, fork, interrupt and attack; an hour (SOAK_FLAGS="--minutes 30")
	$(PYTEST) -m "hypothesis and ($(QUICK))"
	cd tests && $(ENV) "$(CURDIR)/$(PY)" -m soak $(SOAK_FLAGS)

coverage:  ## every test, and which lines of dpnb no test ran; twice as long
	$(MAKE) pytest-all PYTEST_FLAGS="--cov $(PYTEST_FLAGS)"

oldest:  ## every test on the oldest dependencies that pyproject.toml allows, in an environment of their own
	$(MAKE) OLDEST=yes pytest-all

bench: set-up-bench  ## how fast all of it is, beside pandas, engines and OpenDP; an hour (BENCH_FLAGS= pass through)
	$(PY) tests/bench/accounting.py
	$(PY) tests/bench/serving.py
	$(PY) tests/bench/persons.py
	$(PY) tests/bench/studies.py
	$(PY) tests/bench/hypotheses.py
	$(PY) tests/bench/survival.py 200
	$(ENV) $(PY) tests/bench/cockpit.py
	$(PY) tests/bench/speed.py --write --opendp $(VENV)/peers/bin/python $(BENCH_FLAGS)

format: set-up-test  ## put Python and TypeScript into the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cd labextension && $(ENV) jlpm lint

# tests/release.py says why it builds from a clean clone, and what it refuses.
dist: set-up-lab  ## build a release into dist/, from a clean clone of the last commit
	$(ENV) $(PY) tests/release.py dist

clean:  ## remove what the other targets made, but no ledger
	rm -rf .venv .venv-oldest .set-up dist build dpnb/labextension dpnb/notebook/static dpnb/service/static labextension/lib labextension/node_modules \
	  labextension/.yarn labextension/tsconfig.tsbuildinfo .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache .coverage .coverage.* htmlcov tests/ui/screenshots
	find .ci dpnb tests -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- set-up ----------------------------------------------------------------------------------------------------------

# The first Python that is new enough.  The environment's own is last: it serves where the one it was made from is gone.
PYTHONS := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python $(PY)

set-up-%:
	@for python in $(PYTHONS); do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    exec "$$python" .ci/setup.py $*; \
	  fi; \
	done; \
	echo "make: dpnb needs Python 3.11 or newer; python3 here is $$(python3 --version 2>/dev/null || echo missing)." >&2; \
	echo "make: install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1
