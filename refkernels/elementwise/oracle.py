"""The certified values of an elementwise op: the function's kernels, then its formula.

Forward: float64 for inputs of 32 bits and fewer, double-doubles, and the formula for the elements
that are still open. Backward: the formula of dy f'(x), but where f' saturates.
"""

from typing import Any

import numpy as np

from refkernels.arithmetic import formats, tiers
from refkernels.arithmetic.arrays import as_float_array, to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.exact import intersection
from refkernels.arithmetic.ladder import Draft, Open, climb
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify, Question
from refkernels.elementwise.function import End, Function
from refkernels.kernels import answers
from refkernels.kernels.elementary.results import VANISHING
from refkernels.kernels.real_function import Array

_CHUNK = 1 << 22  # elements tested at a time, to save memory
_BESIDE = 2.0**-1000


@with_default_fenv
def forward(function: Function, x: Any, certify: Certify = "enclosure") -> Enclosure:
    """f(x), element by element, as sharp as the question asks: each exact value lies inside its
    element of the Enclosure, shaped like x.

    x: any shape, float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`).
    Raises TypeError for other dtypes and ValueError for an unknown question.
    """

    def later(left: Array, question: Question) -> Enclosure:
        answer = Draft.of(answers.double_doubles(function.values, left))

        def by_formula(still_open: Open) -> dict[str, Enclosure]:
            at = still_open["y"]
            with tiers.counted():  # as exact, in any tier of the formula
                sharper = function.formulas.evaluate("forward", {"x": left[at]}, {}, question)
            return {"y": intersection(answer.at(at), sharper["y"])}

        still_open, steps = {"y": _undecided(answer, question)}, [("exact", by_formula)]
        climb({"y": answer}, still_open, "double_double", steps, question.undecided)
        return answer.enclosure()

    return answers.screened(function.fast, x, certify, later)


@with_default_fenv
def backward(function: Function, dy: Any, x: Any, certify: Certify = "enclosure") -> Enclosure:
    """dx = dy f'(x), element by element, as sharp as the question asks; dy and x have one shape.

    dy, x       float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    certify     the question (`refkernels.Enclosure`)

    Special values are those of one IEEE product dy · f'(x). The bound of kernels is
    `backward_bound`, proven for the named forms. Raises TypeError for other dtypes, ValueError for
    shapes that differ and for an unknown function or question.
    """
    dy, x = pair_of(dy, x)
    flat_dy, flat_x = dy.reshape(-1), x.reshape(-1)
    wide, (low, high) = to_float64(flat_x), function.domain
    outside = (wide < low) | (wide > high)
    known = {
        end: wide > end.start if end.start > 0.0 else wide < end.start for end in function.ends
    }
    inside = np.where(
        np.logical_or.reduce([outside, *known.values()]), flat_x.dtype.type(0.5), flat_x
    )
    answer = _by_formula(function, flat_dy, inside, certify)
    at = np.flatnonzero(np.isinf(flat_dy) | answer.exact_zero)
    if at.size:
        product = _product(function, to_float64(flat_dy[at]), to_float64(inside[at]))
        answer = answer.replace(at, Enclosure(product))
    draft = Draft.of(answer)
    for end, far in known.items():
        if far.any():
            draft.put(far, _saturated(end, to_float64(flat_dy[far]), flat_x[far]))
    if outside.any():
        draft.put(outside, Enclosure(np.full(np.count_nonzero(outside), np.nan)))
    return draft.enclosure().reshape(x.shape)


def _by_formula(function: Function, dy: Array, x: Array, certify: Certify) -> Enclosure:
    return function.formulas.evaluate("backward", {"dy": dy, "x": x}, {}, certify)["dx"]


def _product(function: Function, dy: Array, x: Array) -> Array:
    """dy f'(x) in IEEE arithmetic, for its zeros, infinities and NaN. The first form knows which
    zero a slope is."""
    ones = np.ones(x.size)
    with tiers.counted():
        slope = _by_formula(function, ones, x, "enclosure").hi
    inputs = {"dy": ones, "x": x}
    plain = function.formulas.plain("backward", inputs, {}, formats.BINARY64)["dx"]
    with np.errstate(invalid="ignore"):
        return dy * np.where(slope == 0.0, np.copysign(0.0, plain), slope)


def _saturated(end: End, dy: Any, x: Array) -> Enclosure:
    """dy f'(x) where f' is beside its limit, or at infinity has it."""
    m, exponent = np.frexp(dy)
    with np.errstate(invalid="ignore"):
        exact = ~np.isfinite(dy) | (dy == 0.0) | np.isinf(x)
        special = dy * np.copysign(np.where(np.isinf(x), end.limit, 1.0), end.limit or end.side)
    if end.limit:
        hi, lo, scale = m, end.side * m * _BESIDE, exponent
        radius = np.abs(lo)
    else:
        hi, lo, scale = np.copysign(0.5, m * end.side), 0.0, exponent + VANISHING
        radius = 0.5
    return Enclosure(
        np.where(exact, special, hi),
        np.where(exact, 0.0, lo),
        np.where(exact, 0.0, radius),
        np.where(exact, 0, scale),
    )


def values(function: Function, x: Array) -> Enclosure:
    """f(x) by the double-double tier alone, shaped like x."""
    return answers.values(function, to_float64(x))


def slopes(function: Function, x: Array, certify: Certify = "enclosure") -> Enclosure:
    """f'(x), shaped like x."""
    return backward(function, np.ones(x.shape), x, certify)


def pair_of(dy: Any, x: Any) -> tuple[Array, Array]:
    """dy and x as arrays. Raises TypeError for other dtypes, ValueError where shapes differ."""
    dy, x = as_float_array(dy, "dy"), as_float_array(x, "x")
    if dy.shape != x.shape:
        raise ValueError(
            f"dy has shape {dy.shape} and x {x.shape}: an elementwise op's cotangent has the "
            "shape of its input."
        )
    return dy, x


def _undecided(answer: Draft, question: Question) -> Any:
    """Indices of the elements that the question leaves open, tested chunk by chunk."""
    if question.kind == "enclosure":
        return np.empty(0, np.intp)
    starts = range(0, answer.size, _CHUNK)
    parts = (question.undecided(answer.at(slice(at, at + _CHUNK))) for at in starts)
    places = [at + np.flatnonzero(part) for at, part in zip(starts, parts, strict=True)]
    return np.concatenate([*places, np.empty(0, np.intp)])
