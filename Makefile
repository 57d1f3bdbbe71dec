# Two commands do it all on a machine with Python alone:
#   make demo    train the spiral and print where its report is
#   make test    lint, type-check, run the tests
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test lint types unit clean

demo: $(READY)
	$(BIN)/trueloop train spiral --run runs/demo-$$(date +%Y%m%d-%H%M%S)

test: lint types unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/python -m pytest -n 2

# constraints.txt pins the CPU build of torch, so that a fresh clone does not pull gigabytes of CUDA.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info
