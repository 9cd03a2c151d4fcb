"""A long wait for the compilation of kernels is announced once."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from refkernels.arithmetic import waiting
waiting.NOTICE_AFTER_S = {patience}
from refkernels.arithmetic.eft import two_prod, two_sum
for _ in range(2):
    assert two_sum(1.0, 2.0) == (3.0, 0.0)
    assert two_prod(1.0, 2.0) == (2.0, 0.0)
print(waiting.watch.compiled)
"""


def _run(patience: float, cache: Path) -> tuple[int, list[str]]:
    """How many kernels were compiled, and what was said on standard error."""
    program = PROGRAM.format(patience=patience)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout), done.stderr.splitlines()


def test_a_long_wait_is_announced_once_with_the_number_of_kernels_and_the_command_that_avoids_it(
    tmp_path,
):
    compiled, lines = _run(0.0, tmp_path)
    assert compiled >= 2
    (line,) = lines
    assert line.startswith("refkernels: compiling kernels for this processor, 0 of at most ")
    assert "this happens once for a version" in line
    assert "refkernels warm" in line


def test_cached_and_quickly_compiled_kernels_are_not_announced(tmp_path):
    compiled, lines = _run(600.0, tmp_path)
    assert compiled >= 2
    assert lines == []
    assert _run(0.0, tmp_path) == (0, [])


def test_a_cache_that_cannot_be_written_is_reported_once_with_the_cure():
    compiled, lines = _run(600.0, Path(os.devnull) / "below")
    assert compiled >= 2
    (line,) = lines
    assert "compiled kernels are not kept" in line
    assert f"{Path(os.devnull) / 'below'}" in line
    assert "set REFKERNELS_HOME to a folder that can" in line
