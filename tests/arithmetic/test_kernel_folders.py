"""Kernels are kept in a folder that is named after everything they are made of."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import refkernels
from refkernels.arithmetic import jit

ELSEWHERE = "refkernels.frameworks.remote"  # runs in a framework's interpreter


def room_of(kernel: Any) -> str:
    return jit.room_of(str(kernel.py_func.__module__))


def kernels() -> Iterator[Any]:
    for found in pkgutil.walk_packages(refkernels.__path__, "refkernels."):
        if not found.name.startswith((ELSEWHERE, "refkernels.__main__")):
            held = vars(importlib.import_module(found.name)).values()
            yield from (one for one in held if isinstance(one, jit.Kernel))


def called(kernel: Any) -> Iterator[Any]:
    """The kernels that a kernel names."""
    function = kernel.py_func
    for name in function.__code__.co_names:
        other = function.__globals__.get(name)
        if isinstance(other, jit.Kernel):
            yield other


def test_a_room_names_the_rooms_whose_kernels_its_own_call() -> None:
    calls = [(room_of(one), room_of(other)) for one in kernels() for other in called(one)]
    between = {(room, other) for room, other in calls if other not in (room, "arithmetic")}
    assert len(between) >= 3
    for room, other in sorted(between):
        assert {other, *jit.called_by(other)} <= {room, *jit.called_by(room)}, room
