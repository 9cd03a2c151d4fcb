"""The cost of a first answer, counted in kernels and imports, which no machine changes."""

from pathlib import Path

import cold_start
import pytest

COMPILER = "\nimport sys; print(sorted({'numba', 'llvmlite'} & set(sys.modules)))"


@pytest.mark.parametrize("name", ["layernorm_ref.forward", "assert_kernel"])
def test_a_first_answer_imports_no_compiler(name: str, tmp_path: Path) -> None:
    program = cold_start.ARRAYS + cold_start.FIRST_ANSWERS[name] + COMPILER
    *_, printed = cold_start.run(program, tmp_path)
    assert printed == "[]\n"
