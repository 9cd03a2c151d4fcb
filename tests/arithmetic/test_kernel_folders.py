"""Kernels are kept in a folder that is named after everything they are made of."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import refkernels
from refkernels.arithmetic import jit

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
    calls = [
        (room_of(kernel), room_of(callee)) for kernel in kernels() for callee in called(kernel)
    ]
    between = {(caller, callee) for caller, callee in calls if callee not in (caller, "arithmetic")}
    assert len(between) >= 3
    for caller, callee in sorted(between):
        assert {callee, *jit.called_by(callee)} <= {caller, *jit.called_by(caller)}, caller
