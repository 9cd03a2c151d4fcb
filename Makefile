# make report   from nothing to a written report (report/report.html)
# make test     from nothing to passed tests; of long tables (tests/sampled.txt), a part
# make all-tests   the same, and all rows of those tables
# make check    style, types and the quick tests, without frameworks: for every edit, in a minute
# make hunt     the tests on all examples and ten times the random ones, new ones, and all tests of
#               operators that ONNX and PyTorch have; HUNT=100
# make lint     style and types          make bench   accuracy and speed, results kept
# make gpu      torch on a GPU: all ops, TF32 off and on, orders, sweeps; TORCH=/path/to/its/python;
#               SWEEPS=1: orders and sweeps; it may be stopped at any moment, and goes on when asked again
# make docs     the site, from docs/ and the code, into site/; its links are checked
# make table    docs/table.md and the other tables, from the kept records
# make notebooks   run notebooks/*.ipynb against the frameworks (make test does it too)
# make clean    remove what was built here; the frameworks' environments stay (refkernels env list)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
FRAMEWORKS := torch paddle oneflow mindspore
REPORT ?= report
EXTRAS ?= test,lint
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
HUNT ?= 10
# Processes of the tests: one a core, and no more than four, each of which starts the frameworks.
PROCESSES ?= $(shell { nproc || getconf _NPROCESSORS_ONLN; } 2>/dev/null | awk '{ print ($$1 > 4 ? 4 : $$1 < 2 ? 2 : $$1) }')
PYTEST = $(BIN)/python -m pytest --numprocesses $(or $(PROCESSES),2)
QUICK := tests/arithmetic tests/contexts/test_contexts.py tests/metrology tests/schedule_ref \
	tests/matmul_ref/test_matmul_shapes.py tests/layernorm_ref/test_layernorm_oracle.py \
	tests/elementary_ref/test_elementary_op.py \
	tests/trig_ref/test_trig_enclosures.py tests/records/test_parameters.py \
	tests/test_architecture.py tests/cli/test_array_options.py tests/cli/test_compare_command.py \
	tests/cli/test_cli.py::test_every_module_of_the_command_line_is_a_command \
	tests/cli/test_cli.py::test_help_needs_no_numerical_library \
	tests/cli/test_cli.py::test_numbers_however_wrong_are_data_and_end_with_0 \
	--ignore=tests/arithmetic/test_mode.py --ignore=tests/arithmetic/test_waiting.py \
	--ignore=tests/arithmetic/test_no_arithmetic.py --ignore=tests/metrology/test_judgement.py \
	--ignore=tests/metrology/test_wider_inputs.py --ignore=tests/metrology/test_outputs.py \
	--ignore=tests/metrology/test_avoidable.py --ignore=tests/arithmetic/test_fast_math.py
NOTEBOOKS := --nbmake --nbmake-timeout=120 notebooks

unexport PYTHONDONTWRITEBYTECODE  # pip compiles nothing ahead: what is imported is compiled once

.PHONY: report test all-tests hunt check quick lint bench gpu docs table notebooks environments clean

report: environments
	$(BIN)/refkernels measure --out $(REPORT) --resume || [ $$? -eq 1 ]  # 1: the report shows a fault

# A thread without work sleeps soon: one that spins takes a core from the other processes.
test: export OPENBLAS_THREAD_TIMEOUT = 4
test: environments
	$(PYTEST) --dist worksteal --durations=30 $(NOTEBOOKS) tests

all-tests: export REFKERNELS_HUNT = 1
all-tests: test

hunt: export REFKERNELS_HUNT = $(HUNT)
hunt: export REFKERNELS_FUZZ_SEED = new
hunt: $(READY)
	@$(if $(findstring peers,$(EXTRAS)),,$(PIP) --editable '.[peers]')
	$(PYTEST) -q --dist worksteal -m "not framework" tests
	$(PYTEST) -q --dist worksteal -m framework tests/programs  # all of PyTorch's samples

check: $(READY)
	$(MAKE) --jobs 2 --output-sync=target lint quick

quick: $(READY)
	$(PYTEST) -q --hypothesis-profile=quick -m "not framework" $(QUICK)

notebooks: environments
	$(PYTEST) $(NOTEBOOKS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy refkernels tests/typing

bench: environments
	$(BIN)/python benchmarks/accuracy.py || [ $$? -eq 1 ]  # 1: the report shows a fault
	$(BIN)/python benchmarks/speed.py || [ $$? -eq 1 ]  # 1: a bar is missed, as the table shows

docs: $(DOCS_READY)
	PYTHONPATH=. $(BIN)/mkdocs build --quiet --strict

gpu: $(READY)
	$(BIN)/python benchmarks/gpu.py $(if $(TORCH),--python "$(TORCH)") $(if $(SWEEPS),--sweeps)

table: $(READY)
	$(BIN)/python tools/write_readme.py

environments: $(READY)
	$(BIN)/refkernels env create --keep-going $(FRAMEWORKS)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "refkernels needs Python >= 3.10, and $(PYTHON) is " + sys.version.split()[0] + ": say make PYTHON=/path/to/python3.12")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module with pip: install it (Debian: apt install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip  # Python 3.11's takes three times as long to resolve
	$(PIP) --editable '.[$(EXTRAS)]'
	@touch $@

$(DOCS_READY): $(READY)
	@$(if $(findstring docs,$(EXTRAS)),,$(PIP) --editable '.[docs]')
	@touch $@

clean:
	rm -rf $(VENV) $(REPORT) site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
