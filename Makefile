# `make demo`, `make test` and `make docs`: each makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test check docs venv browser axe slow clean

demo: venv
	$(BIN)/heatproof demo --out runs/demo

# Three workers on two cores: some tests wait for processes, browsers and locks.
test: venv browser axe check
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 3 -m "not slow"

slow: venv browser axe
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

# The documentation as a site, without a network: site/index.html. A broken link or a missing page is an error.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

check: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $(STAMP)

# The report is tested in a real browser.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || test -n "$$HEATPROOF_CHROMIUM" \
	|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	|| { echo "The report's tests need a browser: sudo apt-get install -y chromium (or set HEATPROOF_CHROMIUM)"; exit 1; }

# And for faults of accessibility; a tool of the tests, not a part of the package.
AXE := 4.14.0
axe: .venv/axe/$(AXE)

.venv/axe/$(AXE): | venv
	@command -v npm >/dev/null \
	|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq npm >/dev/null; } \
	|| { echo "The report's tests need npm for axe-core: sudo apt-get install -y npm"; exit 1; }
	npm install --silent --no-audit --no-fund --prefix .venv/axe axe-core@$(AXE)
	touch $@

clean:
	rm -rf .venv runs build site
