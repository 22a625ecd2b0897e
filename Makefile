PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check
RUFF   := $(PY) -m ruff
JS     := $(PY) -m lmbook.javascript
PORT   ?= 8000
UV     := 0.13.9
# What a build leaves; finished runs of studies are not among it.
BUILT  := html .doctrees jupyter_execute executed stage play npm fingerprint.json
SITE   := $(or $(LMBOOK_BUILD),_build)/html

# Nothing here is fetched from a model hub, and no tool should try.
export HF_HUB_DISABLE_TELEMETRY := 1
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help install lock html new-chapter notebooks student grade pdf test serve lab references studies bench mutants fuzz steady colab lint clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements.lock requirements.txt pyproject.toml src/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-deps --require-hashes -r requirements.lock
	grep '^torch' requirements.txt | $(PIP) -r /dev/stdin  # with what its build for this system needs
	$(PIP) --no-deps --no-build-isolation -e . -e src
	mkdir -p $(VENV)/share/jupyter/lab/settings
	cp src/lmbook/lab-overrides.json $(VENV)/share/jupyter/lab/settings/overrides.json
	touch $@

install: $(STAMP)  ## create .venv with everything pinned in requirements.txt

# Without torch: which of its builds is right, with CUDA or without, is for the machine to say.
lock:  ## write requirements.lock anew, with hashes, after a change of requirements.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade --target _build/uv uv==$(UV)
	_build/uv/bin/uv pip compile requirements.txt --quiet --no-deps --universal --generate-hashes \
		--python-version 3.11 --no-header --no-annotate --no-emit-package torch --output-file requirements.lock

html: $(STAMP)  ## execute the chapters and build the site into _build/html (PAGE=attention: that one; FORCE=1: from cold; LMCOURSE_BERT=...: of another BERT)
	$(if $(FORCE),rm -rf $(addprefix $(or $(LMBOOK_BUILD),_build)/,$(BUILT)))
	$(PY) -m lmbook.build $(if $(PAGE),--page $(PAGE))

new-chapter: $(STAMP)  ## begin a chapter: a page that builds, its task and its proofs (NAME=my-chapter)
	$(if $(NAME),,$(error Say how it is called: make new-chapter NAME=my-chapter))
	@$(PY) -m lmbook.new_chapter "$(NAME)"

notebooks: html  ## write the chapters as notebooks into _build/html/notebooks

student: html  ## write the chapters as notebooks without solutions into _build/html/notebooks/student
	@echo "To hand out: $(SITE)/notebooks/student"

grade: $(STAMP)  ## run and judge the notebooks of a folder (SUBMISSIONS=...; ARGS="--cell 1200 --memory 2")
	$(if $(SUBMISSIONS),,$(error Say where they are: make grade SUBMISSIONS=folder))
	@OMP_NUM_THREADS=1 $(PY) -m lmbook.grade "$(SUBMISSIONS)" $(ARGS)

pdf: html  ## print the book into _build/inside-language-models.pdf (ARGS="--way work --folded open")
	@$(PY) -m lmbook.browser
	$(PY) -m lmbook.publish.paper $(dir $(SITE))inside-language-models.pdf $(ARGS)

PLACED  = $(filter tests/%,$(ARGS))
WORKERS = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)# one of them often waits for a browser
test: html  ## run the tests: units, notebooks against references, a real browser (make steady has more)
	$(RUFF) format --check src tests
	$(RUFF) check src tests
	$(JS)
	-@$(PY) -m lmbook.browser  # without one all other tests run
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --no-loadscope-reorder \
		-m "not steady" $(ARGS) $(if $(PLACED),,tests/unit tests/pages tests/site)

serve: html  ## show the site on http://127.0.0.1:8000 (PORT=... for another)
	@echo "The book is at http://127.0.0.1:$(PORT)/ (stop with Ctrl-C)"
	@$(PY) -m http.server $(PORT) --bind 127.0.0.1 --directory $(SITE)

lab: html  ## open the chapters as notebooks in JupyterLab, in work/, which no build overwrites
	@$(PY) -m lmbook.work
	$(PY) -m jupyterlab --ip 127.0.0.1 work

references: html  ## rewrite the executed references that `make test` compares with (PAGE=attention: that one)
	$(PY) tests/references.py $(PAGE)

studies: $(STAMP)  ## run all studies, and make the small models and the stored runs of data/ anew, some 18 hours on one core
	$(PY) -m studies --write

bench: html  ## run every benchmark
	$(PY) -m lmbook.bench

fuzz: $(STAMP)  ## load 2,000 damaged files of each kind: clean errors or correct loads
	OMP_NUM_THREADS=1 $(PY) tests/machinery/fuzz.py $(ARGS)

mutants: $(STAMP)  ## break the mechanisms in small ways and see the tests notice
	$(PY) tests/machinery/mutants.py $(ARGS)

steady: html  ## what `make test` leaves out, some hours (ARGS="-k mini-gpt": one page; ARGS="--only fuzz")
	-@$(PY) -m lmbook.browser  # without one all other tests run
	$(PY) tests/machinery/steady.py $(ARGS)

colab: html  ## run the published notebooks with Colab's versions (ARGS="--python python3.13")
	$(PY) tests/machinery/colab_shape.py $(ARGS)

lint: $(STAMP)  ## format and check the code
	$(RUFF) format src tests
	$(RUFF) check --fix src tests
	$(JS) --write

clean:  ## remove everything that was built; keeps .venv
	rm -rf $(addprefix _build/,$(BUILT)) dist build src/*.egg-info .pytest_cache .ruff_cache .hypothesis
