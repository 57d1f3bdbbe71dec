# Two commands do it all on a machine with Python alone:
#   make demo    train the spiral and print where its report is
#   make test    lint, type-check, run the tests
# The tests with all rounds of what is tried again and again (kills, crafted files, seeds):
#   make test-all
# One measures (docs/speed.md):
#   make bench [ARGS="spiral gpt --rounds 7"]    other loops and trainers beside ours
#   make comparison                              the same programs in other libraries, by lines
# One builds the site of the documents, which opens without a network:
#   make docs                                    docs/_build/index.html
# And opens all its pages in Chromium, with axe-core (Node.js and the network are needed once):
#   make docs-check
# And the reports of short runs of every kind likewise:
#   make reports-check
# And one makes the pictures of the README again (with Chromium):
#   make pictures                                docs/pictures
# One runs the trackers' tests with W&B and MLflow, which `make test` skips:
#   make test-trackers
# One builds dist/ and tries what it has built in every Python there is:
#   make dist
# And one for each version of torch that is to be tried, in an environment of its own:
#   make test-torch TORCH=2.6.0 [PATHS="tests/step tests/feed"] [JOBS=1]
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test test-all lint types unit bench bench-gpu docs pictures test-trackers test-torch dist docs-check reports-check clean

demo: $(READY)
	$(BIN)/trueloop train spiral --run runs/demo-$$(date +%Y%m%d-%H%M%S)
	@echo 'to use trueloop in this shell: . $(BIN)/activate'

# mypy has one process: the tests begin beside it.
test: lint
	@$(MAKE) --no-print-directory -j 2 types unit

test-all: export TRUELOOP_ALL_TRIALS = 1
test-all: test

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# A fresh clone has no cache to read, and to write one costs a sixth of the time.
types: $(READY)
	$(BIN)/mypy $(if $(TRUELOOP_ALL_TRIALS),--no-incremental)

# worksteal: each worker begins with a part of the files (tests/order.py), so that what tests of one
# file share (a trained run, a warm process) is made once.
# Where Python is told to write no byte code, each process that a test starts would compile src and
# the file of the test again, and each worker rewrite all asserts.
WORKERS ?= 4
# Their files are in memory where it has room: otherwise they wait for the disk, fsync after fsync.
TEMPORARY := $(shell [ "$$(df --output=avail -B1G /dev/shm 2>/dev/null | tail -1)" -ge 8 ] && \
	echo --basetemp=/dev/shm/pytest-of-make-$$$$)

# In a fresh clone the files are as young as git's index, so that each run of a test would wait for git
# to read them all again, 35 ms each time, until `git status` has written the index anew.
unit: $(READY)
	@git status -uno > $(VENV)/status.txt 2>&1 || true
	$(BIN)/python -m compileall -q src tests -x '/(corpus|documents)/'
	$(BIN)/python tests/warm/rewritten.py tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TEMPORARY); \
	status=$$?; rm -rf $(patsubst --basetemp=%,%,$(TEMPORARY)); exit $$status

# The trainers that are measured beside ours come into the environment once. No torchvision.
PEERS_READY := $(VENV)/.peers-ready
ARGS        ?=

bench: $(PEERS_READY)
	PYTHONPATH=benchmarks $(BIN)/python -m side_by_side $(ARGS)

.PHONY: comparison
comparison: $(PEERS_READY)
	PYTHONPATH=benchmarks $(BIN)/python -m five_programs $(ARGS)

# On a machine with a GPU: make bench-gpu ARGS=spiral (gpt, resnet50, no_waits, parity, watch).
bench-gpu: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m gpu $(ARGS)

$(PEERS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[peers]'
	touch $@

# The trackers with the libraries that are too heavy for each CI run (160 MB).
test-trackers: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[wandb,mlflow]'
	$(BIN)/python -m pytest tests/trackers

DOCS_READY := $(VENV)/.docs-ready

docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -W --keep-going -q -E -b html docs docs/_build
	@echo docs/_build/index.html

BROWSE := $(VENV)/browse

docs-check: docs $(BROWSE)/node_modules
	cd $(BROWSE) && node $(CURDIR)/docs/_site/browse.mjs $(CURDIR)/docs/_build

# The pages of short runs; their screenshots are in the folder too.
REPORTS := $(VENV)/reports

reports-check: $(READY) $(BROWSE)/node_modules
	rm -rf $(REPORTS)
	$(BIN)/python docs/_site/reports.py $(REPORTS)
	cd $(BROWSE) && SCREENSHOTS=$(abspath $(REPORTS))/screenshots \
		node $(CURDIR)/docs/_site/browse.mjs $(abspath $(REPORTS))

$(BROWSE)/node_modules:
	mkdir -p $(BROWSE)
	npm install --prefix $(BROWSE) --no-audit --no-fund --silent axe-core@4 puppeteer-core@24

pictures: $(READY)
	$(BIN)/python docs/_site/pictures.py

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

TORCH      ?=
TORCH_VENV ?= .venv-torch-$(TORCH)
PATHS      ?= tests
JOBS       ?= 2

test-torch:
	@test -n "$(TORCH)" || { echo 'TORCH is missing: write make test-torch TORCH=2.6.0' >&2; exit 2; }
	@$(MAKE) --no-print-directory $(TORCH_VENV)/.ready
	$(TORCH_VENV)/bin/python -c 'import torch; print("torch", torch.__version__)'
	$(TORCH_VENV)/bin/python -m pytest -n $(JOBS) --dist worksteal $(PATHS)

# Everything of constraints.txt but its torch.
$(TORCH_VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TORCH_VENV)
	grep -v '^torch==' constraints.txt > $(TORCH_VENV)/constraints.txt
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		-c $(TORCH_VENV)/constraints.txt 'torch==$(TORCH)' -e '.[dev]'
	touch $@

# constraints.txt pins the CPU build of torch, so that a fresh clone does not pull gigabytes of CUDA.
# The pip that comes with Python 3.11 takes twice as long as a new one, which that of $(PYTHON) installs
# where it has one. Either would write the byte code at its end, and of much that nothing imports here:
# the second core writes it beside, until pip has ended and both cores write the rest. Some packages
# have files for other Pythons, and of a file that is half written Python makes the byte code again.
NOT_COMPILED := /tests?/|/transformers/models/(?!auto|gpt2|llama)[a-z]|/plotly/graph_objs/
NOT_COMPILED := $(NOT_COMPILED)|/(pip|setuptools|mypyc?)/|/sympy/(physics|stats)/
NOT_COMPILED := $(NOT_COMPILED)|/(jedi|prompt_toolkit|pydantic|wcwidth|werkzeug)/|/numpy/distutils/
NOT_COMPILED := $(NOT_COMPILED)|/fontTools/[a-z]+[LP]ib/|/onnxruntime/(quantization|tools|transformers)/
NOT_COMPILED := $(NOT_COMPILED)|/torch/testing/_internal/(?!logging)|/(sqlalchemy/testing|tensorboard/_vendor)/
NOT_COMPILED := $(NOT_COMPILED)|/huggingface_hub/(cli|inference)/
COMPILED := $(BIN)/python -m compileall -q -x '$(NOT_COMPILED)' $(VENV)/lib > $(VENV)/compileall.txt

$(READY): pyproject.toml constraints.txt
	@echo 'installing PyTorch and the tools of the tests into $(VENV): some minutes, once'
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check pip || \
		{ $(BIN)/python -m ensurepip && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-c constraints.txt -e '.[dev]' & install=$$!; exec 2> $(VENV)/kill.txt; \
	while kill -0 $$install; do \
		$(COMPILED) & compile=$$!; \
		while kill -0 $$install && kill -0 $$compile; do sleep 0.3; done; \
		kill $$compile; wait $$compile; sleep 0.3; \
	done; wait $$install
	@$(COMPILED) -j 2 || true
	touch $@

# Both distributions, tried in an empty environment of every Python there is: gigabytes of torch.
dist: $(READY)
	$(BIN)/python packaging/build_and_try.py

clean:
	rm -rf $(VENV) .venv-torch-* build dist docs/_build docs/api docs/rules docs/lab src/*.egg-info
