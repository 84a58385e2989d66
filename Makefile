# Every target creates what it needs: a virtual environment in this folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
# Tests start some dozens of processes, and each would compile the package's modules again.
unexport PYTHONDONTWRITEBYTECODE
# Modules are compiled when they are first imported, most never are: pip would spend more time on them than on all else.
export PIP_COMPILE := 0
SOURCES := $(shell find cpp -name '*.?pp') CMakeLists.txt pyproject.toml

.PHONY: demo test quick docs lint format bench accuracy sanitize soak fuzz hunt stub wheel clean

# The main job on bundled data; leaves demo/report.html to open.
demo: $(VENV)/.core
	$(BIN)/certifit demo --out demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

# The inner loop: all but the tests marked slow (pyproject.toml says which those are). Nothing is built or installed.
quick:
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $$(find cpp -name '*.?pp')

format: $(VENV)/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $$(find cpp -name '*.?pp')

# The site, readable from its folder: build/docs/site/index.html. Runs every chapter of the course, draws its pictures, checks links
# and, where Chromium is installed, looks at every page at two widths and searches.
docs: $(VENV)/.docs
	$(BIN)/python -m docs.site.build

# certifit and its peers on the same data in the same run; see benchmarks/README.md.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run --out benchmarks/results/latest.jsonl $(ARGS)
	$(BIN)/python -m benchmarks.table benchmarks/results/latest.jsonl
	$(BIN)/python -m benchmarks.tables categories
	$(BIN)/python -m benchmarks.tables parquet
	$(BIN)/python -m benchmarks.selection
	$(BIN)/python -m benchmarks.ranking
	$(BIN)/python -m benchmarks.information
	$(BIN)/python -m benchmarks.sparse
	$(BIN)/python -m benchmarks.text

accuracy: $(VENV)/.bench
	$(BIN)/python -m benchmarks.accuracy

# AddressSanitizer and UndefinedBehaviorSanitizer over the tests that reach the compiled core, hostile inputs and calls with
# damaged arguments among them. Hours; a line per file of tests as it ends. ARGS="tests/core tests/models/test_hostile.py" runs a part.
sanitize: $(VENV)/.test
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DCERTIFIT_SANITIZE=ON -DPython_EXECUTABLE=$(abspath $(BIN))/python
	$(BIN)/cmake --build build/sanitize
	rm -rf build/sanitize/package && mkdir -p build/sanitize/package
	cp -r src/certifit build/sanitize/package/ && cp build/sanitize/_core_*.so build/sanitize/package/certifit/
	$(BIN)/python tests/sanitized.py build/sanitize/package $(ARGS)

# Long: many seeds, file mutants, calls of the core with damaged arguments, Ctrl-C and little memory in every fit. Not part of CI.
soak: $(VENV)/.test
	CERTIFIT_TEST_SEED=all $(BIN)/python -m pytest -n 2 --dist worksteal
	PYTHONPATH=tests $(BIN)/python tests/modelfile/fuzz.py --mutants 100000
	$(BIN)/python tests/core/fuzz_bindings.py --calls 1000000
	$(BIN)/python tests/interrupts.py
	$(BIN)/python tests/little_memory.py

# Coverage-guided fuzzing of what reads strangers' bytes: make fuzz ARGS="-max_total_time=3600", for each of three targets. Resumes.
fuzz: $(VENV)/.fuzz
	for target in model_file csv bindings; do $(BIN)/python -m tests.guided $$target -max_total_time=300 $(ARGS) || exit 1; done

# Every claim of nasty fits against exact and 300-bit references: make hunt ARGS="--cases 100000 --seed 1". Resumes.
hunt: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.hunt $(ARGS)

# What type checkers read of the public names, and the page of all models.
stub: $(VENV)/.test
	$(BIN)/python -m tests.stub
	$(BIN)/python -m tests.models_page

wheel: $(VENV)/.build
	$(BIN)/python -m pip wheel --no-deps --no-build-isolation -w dist .

clean:
	rm -rf build dist demo $(VENV)

$(VENV)/.venv:
	@echo "Setting up a virtual environment in $(VENV): half a minute, and what there is to download."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	touch $@

$(VENV)/.build: $(VENV)/.venv pyproject.toml
	$(BIN)/python -m pip install -q --group build
	touch $@

# Every tenth file of the compiler's count is shown; all it says is in build/core.log.
BUILD = $(BIN)/python -m pip install -v --no-build-isolation -Cbuild-dir=build/dev -Ccmake.define.CERTIFIT_THIS_PROCESSOR=$(1) -e . 2>&1 \
  | tee build/core.log | sed -u -n 's/^ *\(\[[0-9]*0\/[0-9]*\]\) .*/\1/p' || { tail -n 40 build/core.log; exit 1; }

# What is looked at first is built for this processor alone; tests and benchmarks need the core for any processor too.
$(VENV)/.core: $(VENV)/.build $(SOURCES)
	@mkdir -p build
	@echo "Building the compiled core: some two minutes the first time. Files compiled:"
	@$(call BUILD,ON)
	touch $@

$(VENV)/.cores: $(VENV)/.core
	@echo "Building the core for any processor. Files compiled:"
	@$(call BUILD,OFF)
	touch $@

$(VENV)/.test: $(VENV)/.cores
	$(BIN)/python -m pip install -q --group test
	touch $@

$(VENV)/.fuzz: $(VENV)/.test
	$(BIN)/python -m pip install -q --group fuzz
	touch $@

$(VENV)/.lint: $(VENV)/.core
	$(BIN)/python -m pip install -q --group lint
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(BIN)/python -m pip install -q --group docs
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install -q --group bench
	touch $@
