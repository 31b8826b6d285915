# Everything below sets up what it needs: `make demo` and `make test` work in a fresh clone with Python >= 3.11.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
PYTEST  = $(BIN)/python -m pytest

.PHONY: demo test test-hosts bench lint mutants clean
.DELETE_ON_ERROR:

# One stamp for each set of packages; a change of pyproject.toml sets up again.
$(VENV)/pip: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	touch $@

$(VENV)/demo: $(VENV)/pip
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	touch $@

$(VENV)/test: $(VENV)/demo
	$(BIN)/python -m pip install --quiet --group test
	touch $@

$(VENV)/lint: $(VENV)/test
	$(BIN)/python -m pip install --quiet --group lint
	touch $@

$(VENV)/bench: $(VENV)/demo
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

$(VENV)/hosts: $(VENV)/test
	$(BIN)/python -m pip install --quiet --group hosts
	touch $@

demo: $(VENV)/demo
	$(BIN)/python -m calcore.demo

test: $(VENV)/test
	$(PYTEST)

test-hosts: $(VENV)/hosts
	CALCORE_HOSTS=1 $(PYTEST) tests/hosts

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

mutants: $(VENV)/test
	$(BIN)/python tests/mutants.py

bench: $(VENV)/bench
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
