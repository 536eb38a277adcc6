# A user needs Python >= 3.11, make and git; everything else is installed into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: quickstart test quick lint types clean

quickstart: $(VENV)/.installed
	$(BIN)/lol-data quickstart

test: lint types
	$(BIN)/python -m pytest

quick: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m "not slow"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy has to see the repository root under the name of the package.
types: $(VENV)/.installed-dev
	mkdir -p build/types && ln -sfn "$(CURDIR)" build/types/lol_data
	$(BIN)/mypy

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "lol-data needs Python 3.11 or newer; set PYTHON="'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
