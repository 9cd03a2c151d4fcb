"""Runs a summation tree on any data, in the working precision: the same roundings, bit for bit."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.fma import fma
from refkernels.arithmetic.jit import njit
from refkernels.diagnosis.summation.tree import SummationTree

_LEAF, _ADD, _FUSE = 0, 1, 2


def replay(
    tree: SummationTree, a: npt.NDArray[Any], b: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """fl(sum_k a[m, k] b[k, n]) in the tree's order: (M, K) and (K, N) -> (M, N); without b, the
    sum over the last axis of a: (M, K) -> (M,).

    float32 and float64; every product and every addition rounds once, except that a fused product
    is fma(a, b, sum). Raises ValueError for other shapes or dtypes, and for a tree whose nodes add
    more than two values at once, because hardware rounds these in ways of its own.
    """
    a = as_float_array(a, "a")
    b = None if b is None else as_float_array(b, "b")
    if a.dtype not in (np.float32, np.float64) or (b is not None and b.dtype != a.dtype):
        raise ValueError("replay runs in float32 or float64, both factors in the same one.")
    fits = a.ndim == 2 and a.shape[1] == tree.leaves
    if not fits or (b is not None and (b.ndim != 2 or len(b) != tree.leaves)):
        raise ValueError(
            f"This tree adds {tree.leaves} products: a is (M, {tree.leaves}), b ({tree.leaves}, N)."
        )
    if tree.widest > 2:
        raise ValueError(
            f"This tree adds {tree.widest} values at once somewhere: only additions of two can be "
            "replayed."
        )
    left = np.ascontiguousarray(a)
    right = np.ones((1, tree.leaves), a.dtype) if b is None else np.ascontiguousarray(b.T)
    out = np.empty((len(left), len(right)), a.dtype)
    program, registers = compiled(tree)
    _run(program, left, right, np.zeros(registers, a.dtype), out)
    return out[:, 0] if b is None else out


@functools.lru_cache(maxsize=128)
def compiled(tree: SummationTree) -> tuple[npt.NDArray[np.int64], int]:
    """(steps, number of registers). A step is (kind, target, source): it sets the target to a
    leaf's product, adds another register to it, or adds a leaf's product by an FMA."""
    steps: list[tuple[int, int, int]] = []
    register: dict[int, int] = {}
    free: list[int] = []
    used = 0
    for k, children in enumerate(tree.nodes):
        fused = tree.fused[k]
        terms = [child for child in children if child != fused]
        for leaf in (child for child in terms if child < tree.leaves):
            register[leaf] = free.pop() if free else used
            used = max(used, register[leaf] + 1)
            steps.append((_LEAF, register[leaf], leaf))
        target = register[terms[0]]
        if fused >= 0:
            steps.append((_FUSE, target, fused))
        else:
            steps.append((_ADD, target, register[terms[1]]))
            free.append(register[terms[1]])
        register[tree.leaves + k] = target
    if not tree.nodes:
        steps, used = [(_LEAF, 0, 0)], 1
    program = np.array(steps, np.int64)
    program.flags.writeable = False  # the cache keeps it
    return program, used


@njit
def _run(program: Any, left: Any, right: Any, registers: Any, out: Any) -> None:
    for m in range(left.shape[0]):
        a = left[m]
        for n in range(right.shape[0]):
            b = right[n]
            for step in range(program.shape[0]):
                target, source = program[step, 1], program[step, 2]
                if program[step, 0] == _LEAF:
                    registers[target] = a[source] * b[source]
                elif program[step, 0] == _FUSE:
                    registers[target] = fma(a[source], b[source], registers[target])
                else:
                    registers[target] = registers[target] + registers[source]
            out[m, n] = registers[program[-1, 1]]
