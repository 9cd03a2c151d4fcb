"""A kernel is an object that stands for a function until Numba is needed."""

import os
import pickle
import subprocess
import sys

from refkernels.arithmetic import formats


def test_a_kernel_is_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(formats._round_array)) is formats._round_array


def test_without_compilation_a_small_answer_comes_and_a_large_one_says_why_not() -> None:
    program = """
import numpy as np
from refkernels import layernorm_ref
for rows in (3, 3000):
    layernorm_ref.forward(np.random.default_rng(0).standard_normal((rows, 300), np.float32))
    print(rows)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.stdout.split() == ["3"]
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: NUMBA_DISABLE_JIT is set")
