# These do all their own set-up: `make demo` shows what Foretest does, `make quick` checks most of it in two minutes,
# `make test` checks everything, `make docs` builds the site.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# pytest keeps its rewritten tests, which all workers would else compile anew in each run
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder

.PHONY: demo quick test tests checked lint kernels compiled lowest data browser java docs dist bench fuzz shape clean

demo: $(VENV)/.ready
	$(BIN)/foretest demo

# without what is slow, and needs neither a browser nor Java nor the data of the gallery
quick: checked
	$(PYTEST) -m "not slow and not spark and not browser"

# what is fetched comes side by side; mypy, which uses one core, takes what the tests leave while they wait for browsers,
# servers and Spark
test: $(VENV)/.ready-dev
	@$(MAKE) --no-print-directory --jobs 3 kernels $(VENV)/lowest/.ready data browser java
	@$(MAKE) --no-print-directory --jobs 2 lint tests

tests: $(VENV)/.ready-dev
	$(PYTEST) -rs

# mypy uses one core; meanwhile the other compiles what every worker of the tests would else compile for itself
checked: $(VENV)/.ready-dev
	@$(MAKE) --no-print-directory --jobs 2 lint kernels

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

kernels: $(VENV)/.ready-dev
	@$(BIN)/python -c "from foretest.cli.compile_kernels import compile_kernels; compile_kernels()"

# the machine code that comes with the package: to be made again when a kernel has changed (a test says so)
compiled: $(VENV)/.ready
	rm -rf build/warm src/foretest/kernels/compiled
	$(BIN)/foretest warm build/warm
	mv build/warm/kernels src/foretest/kernels/compiled

# the oldest versions that pyproject.toml allows, on every supported Python that is here: a demo, a run, a service's log
lowest: $(VENV)/lowest/.ready
	$(BIN)/python -m pytest tests/test_lowest.py

# sample data of other packages, 3.4 MB, which the gallery's pages read; without them the tests of these pages fail in CI
# and for root, and are shown as skipped elsewhere
data: $(VENV)/.ready-pip
	@$(MAKE) --silent $(VENV)/.ready-data || { \
		echo "The gallery's pages read two packages that could not be fetched (docs/gallery/packages.txt)." >&2; \
		[ -z "$$CI" ] && [ "$$(id -u)" != 0 ] && echo "Their tests are skipped." >&2; \
	}

# the pages are tested in Chromium; without it their tests fail in CI and for root, and are shown as skipped elsewhere
browser:
	@if command -v chromedriver > /dev/null && { command -v chromium || command -v chromium-browser || command -v google-chrome; } > /dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver; \
	else \
		echo "The pages are tested in Chromium, which is missing: install chromium and chromium-driver" >&2; \
		echo "(Debian: sudo apt-get install chromium chromium-driver). Their tests are skipped." >&2; \
		[ -z "$$CI" ] || exit 1; \
	fi

# Spark, which the tests start, runs on Java 17; after the browser, for only one apt-get can run at a time
java: browser
	@if command -v java > /dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless; \
	else \
		echo "The tests start Spark, which needs Java 17: install a JRE (Debian: sudo apt-get install" >&2; \
		echo "default-jre-headless)." >&2; \
		exit 1; \
	fi

# the site, in build/site; then every page is opened in Chromium with the network off
docs: $(VENV)/.ready-docs browser
	$(BIN)/python docs/_site/generate.py
	$(BIN)/python -m sphinx -q -W -n --keep-going -c docs/_site -d build/doctrees . build/site
	$(BIN)/python docs/_site/check.py build/site
	@echo "Written: build/site/index.html"

# wheel and source archive, in dist; then the wheel is installed into an empty environment and runs
dist: $(VENV)/.ready-docs
	rm -rf dist build/empty
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet dist/foretest-*.whl
	cd build && empty/bin/foretest --version && empty/bin/foretest demo --rows 3000 -o empty/demo > /dev/null
	@echo "Written: dist"

# the long studies, whose tables are in docs/
bench: $(VENV)/.ready-dev data
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/start_up.py --demo --spark
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/trust_cost.py
	$(BIN)/python benchmarks/cliffs.py
	$(BIN)/python benchmarks/history_time.py
	$(BIN)/python benchmarks/history_agreement.py
	$(BIN)/python benchmarks/online_coverage.py
	$(BIN)/python benchmarks/sequential.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/interval_coverage.py
	$(BIN)/python benchmarks/small_samples.py
	$(BIN)/python benchmarks/short_logs.py
	$(BIN)/python benchmarks/thinned.py
	$(BIN)/python benchmarks/fitted_control.py --write
	$(BIN)/python benchmarks/lower_bounds.py
	$(BIN)/python benchmarks/band_coverage.py
	$(BIN)/python benchmarks/null_verdicts.py
	$(BIN)/python benchmarks/audit_power.py
	$(BIN)/python benchmarks/leaks.py
	$(BIN)/python benchmarks/loggers.py
	$(BIN)/python benchmarks/slot_estimators.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/history_from_results.py
	$(BIN)/python benchmarks/dr_point.py
	$(BIN)/python benchmarks/worlds.py
	FORETEST_DATA=$(abspath $(VENV))/data $(BIN)/python benchmarks/gallery.py

# damaged input for as many seconds: every input must end in success, or in one sentence and exit code 2
SECONDS ?= 60
fuzz: $(VENV)/.ready-dev
	$(BIN)/python -X faulthandler benchmarks/fuzz.py --seconds $(SECONDS)

# how far one reason to change reaches in the source; make shape VERBOSE=1 lists the lines
shape: $(VENV)/.ready
	@$(BIN)/python benchmarks/shape.py $(if $(VERBOSE),--verbose)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Python compiles what is imported when it is: to compile all of every package here would take longer than the demo
$(VENV)/.ready: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	touch $@

# a pip that knows dependency groups; it is not replaced while it installs
$(VENV)/.ready-pip: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready $(VENV)/.ready-pip pyproject.toml
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

# their kernels are compiled here, which takes a third of a minute each; a change of a kernel does it again
$(VENV)/lowest/.ready: $(VENV)/.ready-dev pyproject.toml tests/lowest.py $(wildcard src/foretest/kernels/*.py)
	@$(BIN)/python -m tests.lowest $(VENV)/lowest
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready $(VENV)/.ready-pip pyproject.toml
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

$(VENV)/.ready-data: docs/gallery/packages.txt
	$(BIN)/python -m pip download --quiet --no-deps --ignore-requires-python --no-binary obp \
		--requirement docs/gallery/packages.txt --dest $(VENV)/data
	touch $@

clean:
	rm -rf $(VENV) foretest-demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
