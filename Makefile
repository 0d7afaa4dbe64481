# dpnb's commands.  `make` alone lists them; each makes its own set-up in $(VENV) and repeats nothing that is done.
# Needs GNU make and Python 3.11 or newer, nothing else: Node comes as a Python wheel, Chromium only matters to `make test`.

VENV := .venv$(if $(OLDEST),-oldest)
BIN := $(VENV)/bin
PY := $(BIN)/python
# The environment's own node, jlpm and tools come before the machine's.
ENV := PATH="$(CURDIR)/$(BIN):$$PATH"

# What the browser bundle is made of.  Folders are listed too, so that a deleted file counts as a change.
BUNDLE_SOURCES := $(wildcard labextension/*.json labextension/*.mjs labextension/*.js labextension/yarn.lock \
	labextension/.yarnrc.yml) $(shell find labextension/src labextension/style labextension/schema labextension/scripts \
	-name __tests__ -prune -o -print 2>/dev/null)

# An environment remembers the folder it was made in: in a moved or copied clone it would run the other clone's code.
ifneq ($(wildcard $(VENV)/.made),)
ifneq ($(shell cat $(VENV)/.made) $(shell $(PY) -c 'print("runs")' 2>/dev/null),$(CURDIR) runs)
MADE_ELSEWHERE := --clear
$(VENV)/.made: anew
endif
endif

.DEFAULT_GOAL := help
.PHONY: help lab test lint layers types typescript pytest coverage oldest bench format dist clean chromium java anew

help:  ## list these targets
	@echo "dpnb: explore a sensitive table under differential privacy. Targets:"
	@sed -n 's/^\([a-z]*\):[^#]*##/  \1 ##/p' Makefile | awk -F ' ## ' '{ printf "  %-12s %s\n", $$1, $$2 }'

lab: $(VENV)/.lab  ## set up, then open JupyterLab on the quickstart notebook (PORT=, LAB_FLAGS= pass through)
	@mkdir -p "$(LAB_SETTINGS)" && echo '{"fetchNews": "false"}' > "$(LAB_SETTINGS)/notification.jupyterlab-settings"
	$(ENV) $(LAB_ENV) $(PY) -m jupyterlab examples/01-quickstart.ipynb \
	  --notebook-dir=. $(if $(PORT),--port=$(PORT)) $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_FLAGS)

# JupyterLab's own state stays inside the clone: no settings, workspaces or half-open tabs from elsewhere, none left behind.
LAB_HOME := $(abspath $(VENV))/jupyter
LAB_ENV := JUPYTER_CONFIG_DIR="$(LAB_HOME)/config" JUPYTER_DATA_DIR="$(LAB_HOME)/data" \
	JUPYTER_RUNTIME_DIR="$(LAB_HOME)/runtime" IPYTHONDIR="$(LAB_HOME)/ipython"
LAB_SETTINGS := $(LAB_HOME)/config/lab/user-settings/@jupyterlab/apputils-extension

test: lint types layers typescript pytest  ## set up, then run every check and every test

lint: $(VENV)/.test  ## format and lint rules of Python
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.test  ## mypy --strict
	$(PY) -m mypy --strict dpnb

layers: $(VENV)/.test  ## who may import whom
	$(BIN)/lint-imports --no-logo

typescript: $(VENV)/.test  ## lint and unit tests of the Lab extension
	cd labextension && $(ENV) jlpm install --immutable && $(ENV) jlpm lint:check && $(ENV) jlpm test

pytest: $(VENV)/.test chromium java  ## the Python and browser tests, on all cores (PYTEST_FLAGS= pass through)
	$(ENV) $(PY) -m pytest $(IN_PARALLEL) $(PYTEST_FLAGS)

# tests/conftest.py says which tests stay together, and that the browser comes first.
IN_PARALLEL := --numprocesses=auto --maxprocesses=4 --dist=loadscope --no-loadscope-reorder

coverage:  ## the same, and which lines of dpnb no test ran; twice as long
	$(MAKE) pytest PYTEST_FLAGS="--cov $(PYTEST_FLAGS)"

oldest: chromium java  ## the tests on the oldest dependencies that pyproject.toml allows, in an environment of their own
	$(MAKE) OLDEST=yes pytest

bench: $(VENV)/.bench chromium  ## how fast all of it is, beside pandas, polars and OpenDP; an hour (BENCH_FLAGS= pass through)
	$(PY) tests/bench/accounting.py
	$(PY) tests/bench/individual.py
	$(ENV) $(PY) tests/bench/cockpit.py
	$(PY) tests/bench/speed.py --write --opendp $(VENV)/peer/bin/python $(BENCH_FLAGS)

format: $(VENV)/.test  ## put Python and TypeScript into the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cd labextension && $(ENV) jlpm install --immutable && $(ENV) jlpm lint

# The clone is outside this folder: below an ignored folder such as $(VENV), hatchling gives up .gitignore altogether and
# packs node_modules too.
dist: $(VENV)/.made  ## build a release into dist/, from a clean clone of the last commit
	$(PY) -m pip install --quiet --upgrade build
	rm -rf dist
	@set -e; clone=$$(mktemp -d); trap 'rm -rf "$$clone"' EXIT; \
	git clone --quiet . "$$clone"; \
	$(PY) -m build --outdir dist "$$clone"; \
	names=$$($(PY) -m zipfile --list dist/*.whl; $(PY) -m tarfile --list dist/*.tar.gz); \
	case $$names in *build_log*|*.js.map*|*node_modules*) \
	  echo 'make: dist/ holds a development bundle or its tools: not a release' >&2; exit 1;; esac; \
	case $$names in *.data/data/share/jupyter/labextensions/dpnb/package.json*) ;; *) \
	  echo 'make: the wheel in dist/ holds no Lab extension: not a release' >&2; exit 1;; esac
	@ls -l dist

clean:  ## remove what the other targets made, but no ledger
	rm -rf .venv .venv-oldest dist build dpnb/labextension dpnb/notebook/static labextension/lib labextension/node_modules \
	  labextension/.yarn labextension/tsconfig.tsbuildinfo .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache .coverage .coverage.* htmlcov tests/ui/screenshots
	find dpnb tests -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- set-up ----------------------------------------------------------------------------------------------------------

AS_ROOT_ON_DEBIAN := test "$$(id -u)" = 0 && grep -qs '^ID=debian' /etc/os-release && command -v apt-get >/dev/null
APT_INSTALL := apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300

$(VENV)/.made:
	@set -e; found=; \
	for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "make: dpnb needs Python 3.11 or newer; python3 here is $$(python3 --version 2>/dev/null || echo missing)." >&2; \
	  echo "make: install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; \
	fi; \
	if ! "$$found" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	  package=$$("$$found" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	  if $(AS_ROOT_ON_DEBIAN); then echo "make: installing $$package"; $(APT_INSTALL) "$$package" >/dev/null; \
	  else \
	    echo "make: $$found has no venv or ensurepip module. Remedy on Debian and Ubuntu: sudo apt-get install $$package" >&2; \
	    exit 1; \
	  fi; \
	fi; \
	echo "make: environment in $(VENV) from $$("$$found" --version)"; \
	"$$found" -m venv $(MADE_ELSEWHERE) $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	@echo "$(CURDIR)" > $@

# Every lower bound as an exact version; what these bring along is as new as they allow.
CONSTRAIN := $(if $(OLDEST),--constraint $(VENV)/oldest.txt)
$(VENV)/oldest.txt: pyproject.toml $(VENV)/.made
	@$(PY) -c 'import re, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; e = p["optional-dependencies"]; \
	  print(*(re.sub(">=([^,;]+).*", r"==\1", d) for d in p["dependencies"] + e["lab"] + e["examples"]), sep="\n")' > $@

# The build leaves an existing bundle alone, however old: remove it, so that changed sources always arrive in the browser.
# The stamp's time is the beginning: a file saved while the build runs is newer than it.
$(VENV)/.lab: $(VENV)/.made pyproject.toml $(BUNDLE_SOURCES) $(if $(OLDEST),$(VENV)/oldest.txt)
	@echo "make: installing dpnb with JupyterLab and building its Lab extension (a minute the first time)"
	@touch $@.begun
	@rm -rf dpnb/labextension dpnb/notebook/static
	$(PY) -m pip install --quiet --editable ".[lab,examples]" $(CONSTRAIN)
	@mv $@.begun $@

# The `test` extra alone: dpnb itself is there already, and asking pip for it again would build it again.
$(VENV)/.test: $(VENV)/.lab
	@echo "make: installing the tools of the test command"
	@$(PY) -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*p["optional-dependencies"]["test"], sep="\n")' > $(VENV)/test.txt
	$(PY) -m pip install --quiet --requirement $(VENV)/test.txt $(CONSTRAIN)
	@touch $@

# OpenDP needs one exact release of polars, so it has an environment of its own; the benchmark goes on without it.
$(VENV)/.bench: $(VENV)/.test
	@echo "make: installing what the benchmark is measured beside"
	@$(PY) -c 'import tomllib; e = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	  print(*(need for name in ("polars", "duckdb", "pyarrow") for need in e.get(name, [name])), sep="\n"); \
	  print(*e["bench"], sep="\n", file=open("$(VENV)/peer.txt", "w"))' > $(VENV)/bench.txt
	$(PY) -m pip install --quiet --requirement $(VENV)/bench.txt
	$(PY) -m venv $(VENV)/peer
	$(VENV)/peer/bin/python -m pip install --quiet --requirement $(VENV)/peer.txt || \
	  echo "make: no OpenDP here: its column will be empty"
	@touch $@

# Never fails: without a browser or Java the tests themselves say loudly what they left out, and under CI they fail.
chromium:
	@for name in "$$DPNB_CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable; do \
	  if [ -n "$$name" ] && command -v "$$name" >/dev/null 2>&1; then exit 0; fi; \
	done; \
	if $(AS_ROOT_ON_DEBIAN); then \
	  echo "make: installing Chromium for the browser tests"; $(APT_INSTALL) chromium >/dev/null || true; \
	fi
java:
	@if [ -z "$$JAVA_HOME" ] && ! command -v java >/dev/null 2>&1 && $(AS_ROOT_ON_DEBIAN); then \
	  echo "make: installing Java for the tests of Spark"; $(APT_INSTALL) default-jre-headless >/dev/null || true; \
	fi
