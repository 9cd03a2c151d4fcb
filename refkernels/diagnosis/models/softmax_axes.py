"""The gradients of softmax, y (dy - sum y dy), and log_softmax, dy - y sum dy, with their sum over
another axis of x than the forward pass, or over all: a backward pass that was written for the last
axis, or without `keepdims`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.hypothesis import Variant, moved
from refkernels.diagnosis.problem import Answer, Arrays, Doubles, Problem

_EXTRA = 2.0**-48  # relative to the terms: what a few operations of float64 may lose


def of_gradients(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Every other axis along which the sum is another one, and all axes together."""
    if problem.direction == "forward" or "dx" not in outputs:
        return
    x, dy = (to_float64(problem.inputs[name]) for name in ("x", problem.op.cotangent))
    if x.ndim < 2 or x.shape != dy.shape or not (np.isfinite(x) & np.isfinite(dy)).all():
        return
    own = problem.params["axis"] % x.ndim
    y = np.exp(x - x.max(axis=own, keepdims=True))
    y /= y.sum(axis=own, keepdims=True)
    others = [(k,) for k, length in enumerate(x.shape) if k != own and length > 1]
    for axes in (*others, tuple(range(x.ndim))):
        details = {"axes": list(axes)}
        yield Variant("gradient_over_other_axis", details, _answer(problem, y, dy, axes))


def _answer(problem: Problem, y: Doubles, dy: Doubles, axes: tuple[int, ...]) -> Answer:
    """The gradient with that sum; its bound and its plain algorithm have the sum's own errors."""
    format = problem.format_of("dx")
    working = formats.BINARY64 if format is formats.BINARY64 else formats.BINARY32
    softmax = problem.op.name == "softmax"
    terms = y * dy if softmax else dy
    total, size = (part.sum(axis=axes, keepdims=True) for part in (terms, np.abs(terms)))
    count = terms.size // max(total.size, 1)
    values = y * (dy - total) if softmax else dy - y * total
    spread = _EXTRA * y * (np.abs(dy) + size)
    shaped = moved(problem, "dx", values, spread)
    last = np.moveaxis(terms, axes, range(-len(axes), 0)).reshape(*_kept(terms, axes), -1)
    in_order = np.cumsum(last.astype(working.storage), axis=-1, dtype=working.storage)[..., -1]
    lost = y * (total - in_order.astype(np.float64).reshape(total.shape))
    return Answer(
        shaped.reference,
        {"dx": shaped.bound["dx"] + y * size * (count + 2) * working.u},
        {"dx": formats.cast(to_float64(shaped.plain["dx"]) + lost, format)},
        invariant=False,
    )


def _kept(terms: Doubles, axes: tuple[int, ...]) -> list[int]:
    return [length for k, length in enumerate(terms.shape) if k not in axes]
