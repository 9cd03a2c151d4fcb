"""Variants of ops along an axis: the same op along another one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem


def other_axis(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Every other axis of x that gives outputs of the same shapes. Along an axis of length 1 an op
    gives a constant or x itself, for which there are other reasons."""
    axis, x = {**problem.op.params, **problem.params}.get("axis"), problem.inputs.get("x")
    if problem.op.formulas is None or x is None or not isinstance(axis, int | np.integer):
        return
    names = problem.op.names("forward") if problem.direction == "forward" else ("dy",)
    arrays = outputs if problem.direction == "forward" else problem.inputs
    keeps = all(arrays[name].shape == x.shape for name in names if name in arrays)
    for alternative, length in enumerate(x.shape):
        if alternative != axis % x.ndim and length > 1 and (keeps or length == x.shape[axis]):
            yield Variant(
                "wrong_axes", {"axes": [alternative]}, problem.ask(params={"axis": alternative})
            )
