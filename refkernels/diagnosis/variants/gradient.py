"""An optimizer's step from a multiple of the gradient: a loss scale that was left in, a sum over
ranks or parts in place of their mean, a gradient that is clipped or divided by its norm; by that of
all tensors, as in apex's LAMB, one tensor shows a factor of many digits.

The first moment and the momentum buffer are linear in the gradient, a + f b from the gradient times
f: every element leaves an interval for f.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import multiples
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem

_LINEAR = ("m", "buf")  # the first of these that an op has
_MULTIPLIED, _CLIPPED = "gradient_multiplied", "gradient_clipped"
_DISQUALIFYING_BITS = 1e9  # bits
_ROUNDINGS = 4  # of a multiplied gradient, and of the output
_MAX_NORMS = (1.0, 0.5, 0.25, 0.1, 2.0, 5.0, 10.0, 100.0)  # usual thresholds of clipping
_CHANCE = 2.0**-10  # the largest probability that a meaningless factor clips to one of these
_SHORT = 5  # a factor of fewer digits may be a rate, or 1 minus one
_NEAR = 2.0**-10  # of 1: a factor as near may be a rounded rate


def multiplied(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The gradient times a number with many reasons, where all outputs fit. A rate of the question,
    1 minus a rate, or an inverse of these proves nothing: a momentum that averages, or that
    includes lr, multiplies by it too."""
    grad = problem.inputs.get("grad")
    name = next((name for name in _LINEAR if name in problem.op.outputs), "")
    if problem.op.formulas is None or grad is None or name not in outputs:
        return
    low, high = _factors(problem, name, outputs[name], grad)
    number = multiples.common(low, high)
    if number is None:
        yield from _by_norm(problem, outputs, grad, low, high)
    if number is None or number == 1.0:
        return
    price = _DISQUALIFYING_BITS if _is_of_question(problem, number) else 0.0
    details = {"factor": str(Fraction(number).limit_denominator(1 << 20))}
    for held in dict.fromkeys((number, float(np.float32(number)))):
        with np.errstate(over="ignore"):
            scaled_gradient = (to_float64(grad) * held).astype(grad.dtype)
        answer = problem.ask({"grad": scaled_gradient})
        if all(_within(answer, output, got) for output, got in outputs.items()):
            yield Variant(_MULTIPLIED, details, answer, trials=2, parameters=1, price=price)


def _by_norm(
    problem: Problem, outputs: Arrays, grad: Array, low: float, high: float
) -> Iterator[Variant]:
    """The gradient clipped to a norm, divided by its norm, or multiplied by a factor of many
    digits, where all outputs fit."""
    gradient = to_float64(grad)
    norm = float(np.linalg.norm(gradient))
    room = math.sqrt(grad.size) * formats.of(grad).u  # of the kernel's norm
    if not 0.0 < low <= high < math.inf or not 0.0 < norm < math.inf:
        return
    details: dict[str, Any]
    max_norm = _clipped_to(norm, room, low, high)
    if max_norm is not None:
        cause, details, factor, tried = (
            _CLIPPED,
            {"max_norm": max_norm},
            max_norm / norm,
            len(_MAX_NORMS),
        )
    elif norm < 1.0 and low * (1.0 - room) <= 1.0 / norm <= high * (1.0 + room):
        cause, details, factor, tried = "gradient_normalised", {}, 1.0 / norm, 1
    elif len(outputs) > 1 and not _is_short(low, high):
        factor = (low + high) / 2.0
        cause, details, tried = _MULTIPLIED, {"factor": f"{factor:.6g}", "fitted": True}, 1
    else:
        return
    answer = problem.ask({"grad": (gradient * factor).astype(grad.dtype)})
    if all(_within(answer, output, got) for output, got in outputs.items()):
        fitted = int(cause == _MULTIPLIED)
        yield Variant(cause, details, answer, trials=tried, parameters=fitted)


def _clipped_to(norm: float, room: float, low: float, high: float) -> float | None:
    """The usual threshold to which a factor below 1 clips the gradient's norm, if there is one.
    LAMB, as apex has it, clips before its step."""
    if high >= 1.0:
        return None
    fitting = [
        max_norm
        for max_norm in _MAX_NORMS
        if low * (1 - room) <= max_norm / norm <= high * (1 + room)
    ]
    width = len(_MAX_NORMS) * (high / low - 1.0 + 2.0 * room)
    return fitting[0] if len(fitting) == 1 and width <= _CHANCE else None


def _is_short(low: float, high: float) -> bool:
    """Whether a factor, or its inverse, may have few digits or be 1."""
    near = low * (1.0 - _NEAR) < 1.0 < high * (1.0 + _NEAR)
    ends = ((low, high), (1.0 / high, 1.0 / low))
    short = (float(f"{(a + b) / 2.0:.{_SHORT - 1}g}") for a, b in ends)
    return near or any(a <= number <= b for (a, b), number in zip(ends, short, strict=True))


def _is_of_question(problem: Problem, number: float) -> bool:
    params = {**problem.op.params, **problem.params}
    rates = [value for value in params.values() if isinstance(value, float) and 0.0 < value < 1.0]
    known = [number for rate in rates for number in (rate, 1.0 - rate) if number > 0.0]
    return any(
        math.isclose(number, rate, rel_tol=2.0**-20)
        for base in known
        for rate in (base, 1.0 / base)
    )


def _within(answer: Answer, output: str, got: Array) -> bool:
    """Whether an output is the answer's, up to rounding."""
    right, wide = np.asarray(answer.reference[output]), to_float64(got)
    with np.errstate(invalid="ignore"):
        beyond = np.abs(wide - right) > answer.bound[output]
    return not np.any(beyond & np.isfinite(right) & np.isfinite(wide))


def _factors(problem: Problem, name: str, got: Array, grad: Array) -> tuple[float, float]:
    """The least and the largest factor that all elements allow."""
    right = np.asarray(problem.truth.reference[name])
    if got.shape != right.shape or not np.isfinite(to_float64(grad)).all():
        return math.nan, math.nan
    constant = np.asarray(problem.ask({"grad": np.zeros_like(grad)}).reference[name])
    wide, slope = to_float64(got), right - constant
    with np.errstate(all="ignore"):
        size = np.abs(wide) + np.abs(constant)
        spread = _ROUNDINGS * formats.of(got).u * size
        ends = np.sort(
            np.stack([(wide - constant + side) / slope for side in (-spread, spread)]), 0
        )
        room = formats.BINARY64.u * (np.abs(right) + np.abs(constant)) / np.abs(slope)
        ends = ends + np.stack([-room, room]) * np.abs(ends)  # both are rounded
    usable = np.isfinite(ends).all(axis=0) & (slope != 0.0)
    if not usable.any():
        return math.nan, math.nan
    return float(np.max(ends[0][usable])), float(np.min(ends[1][usable]))
