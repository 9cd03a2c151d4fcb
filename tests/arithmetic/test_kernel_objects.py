"""Kernels are objects that stand for functions until Numba is needed, kept in named folders."""

import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import refkernels
from refkernels.arithmetic import formats, jit


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


# What runs in a framework's interpreter.
ELSEWHERE = "refkernels.frameworks.remote", "refkernels.profiling.in_torch"


def room_of(kernel: Any) -> str:
    return jit.room_of(str(kernel.py_func.__module__))


def kernels() -> Iterator[Any]:
    for module in pkgutil.walk_packages(refkernels.__path__, "refkernels."):
        if not module.name.startswith((*ELSEWHERE, "refkernels.__main__")):
            members = vars(importlib.import_module(module.name)).values()
            yield from (member for member in members if isinstance(member, jit.Kernel))


def called(kernel: Any) -> Iterator[Any]:
    """The kernels that a kernel names."""
    function = kernel.py_func
    for name in function.__code__.co_names:
        callee = function.__globals__.get(name)
        if isinstance(callee, jit.Kernel):
            yield callee


def test_a_room_names_the_rooms_whose_kernels_its_own_call() -> None:
    calls = [(room_of(kernel), room_of(other)) for kernel in kernels() for other in called(kernel)]
    between = {(caller, callee) for caller, callee in calls if callee not in (caller, "arithmetic")}
    assert len(between) >= 3
    for caller, callee in sorted(between):
        assert {callee, *jit.called_by(callee)} <= {caller, *jit.called_by(caller)}, caller
