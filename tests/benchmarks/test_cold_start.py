"""The cost of a first answer, counted in kernels and imports, which no machine changes."""

from pathlib import Path

import cold_start
import pytest

COMPILER = "\nimport sys; print(sorted({'numba', 'llvmlite'} & set(sys.modules)))"


COMPILES = pytest.mark.xfail(
    reason="explain asks what other forms attain, and solves for numbers: both load Numba's kernels"
)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=COMPILES if n == "explain" else ()) for n in cold_start.FIRST_ANSWERS],
)
def test_a_first_answer_compiles_no_kernel_and_imports_no_compiler(
    name: str, tmp_path: Path
) -> None:
    program = cold_start.ARRAYS + cold_start.FIRST_ANSWERS[name] + COMPILER
    *_, printed = cold_start.run(program, tmp_path)
    assert printed == "[]\n"
