# make report   from nothing to a written report (report/report.html)
# make test     from nothing to passed tests
# make lint     style and types          make bench   accuracy and speed, results kept
# make notebooks   run notebooks/*.ipynb against the frameworks (make test does it too)
# make clean    remove what was built here; the frameworks' environments stay (refkernels env list)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FRAMEWORKS := torch paddle oneflow mindspore
REPORT ?= report

.PHONY: report test lint bench notebooks environments clean

report: environments
	$(BIN)/refkernels measure --out $(REPORT) --resume || [ $$? -eq 1 ]  # 1: the report tells of a fault

test: environments notebooks
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

notebooks: environments
	$(BIN)/python -m pytest --numprocesses 2 --nbmake --nbmake-timeout=120 notebooks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy refkernels
	$(BIN)/mypy --strict --follow-imports=silent tests/typing

bench: environments
	$(BIN)/python benchmarks/accuracy.py || [ $$? -eq 1 ]  # 1: the report tells of a fault
	$(BIN)/python benchmarks/speed.py || [ $$? -eq 1 ]  # 1: a bar is missed, which the table tells

environments: $(READY)
	$(BIN)/refkernels env create --keep-going $(FRAMEWORKS)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "refkernels needs Python >= 3.10, and $(PYTHON) is " + sys.version.split()[0] + ": say make PYTHON=/path/to/python3.12")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module with pip: install it (Debian: apt install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint]'
	@touch $@

clean:
	rm -rf $(VENV) $(REPORT) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
