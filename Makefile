# Two commands: `make demo` and `make test`. Each makes .venv and installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test check venv browser slow clean

demo: venv
	$(BIN)/heatproof demo --out runs/demo

test: venv browser check
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "not slow"

slow: venv browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

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

clean:
	rm -rf .venv runs build
