"""One factor on a whole output, for any op: found from the data, not from a list.

A factor is solved for like a constant of a program (`edits.solved`). It is told where the interval
of those that fit does not hold 1 and elements of two sizes agree on it; of a single number, it
needs a name that it would rarely have by chance.

An optimizer's step may be that from a multiple of the gradient: a loss scale that was left in, a
sum over ranks or parts in place of their mean, a gradient that is clipped or divided by its norm;
by that of all tensors, as in apex's LAMB, one tensor shows a factor of many digits. The first
moment and the momentum buffer are linear in the gradient, a + f b from the gradient times f.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis import few_digits, multiples
from refkernels.diagnosis.edits.screen import Observation, usual_units
from refkernels.diagnosis.edits.solved import SolvedNumber, number_in
from refkernels.diagnosis.hypothesis import Variant, scaled
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem
from refkernels.diagnosis.variants import names
from refkernels.diagnosis.variants.formulas import other_formulas

_STARTS = 2.0, -1.0
_LEFT = 2.5  # bits of an element: errors of up to four usual ones
_RARE = 2.0**-14  # relative: a factor of a single number, known so well, rarely has a name
_ROUNDING = 16.0  # units: errors as small are roundings, not a factor without a name
_NEAR = 2.0**-8  # of a format's unit: a factor this near to one of its numbers is no accident


def scale_factor(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """One factor on all of an output. -1 is a cause of its own: `sign_error`.

    `details`: the factor, the number of the problem that it is (`named`), and its interval;
    `fitted` where the number has no name, so that any cause without a fitted number goes before it.
    """
    for name, got in outputs.items():
        factors = interval(problem, name, got)
        if factors is None or any(factors.low <= none <= factors.high for none in (0.0, 1.0)):
            continue
        low, best, high = factors.low, factors.value, factors.high
        if low <= -1.0 <= high:
            yield Variant("sign_error", {"factor": "-1"}, scaled(problem, name, -1.0))
            continue
        label, width = names.of(problem, low, high), (high - low) / abs(best)
        if _several_sizes(problem, name):
            label = label or _narrow(low, best, high, formats.of(got))
        elif label is None or width > _RARE or _is_other_definition(problem, name, low, high):
            continue
        off, exact = abs(best - 1.0), np.asarray(problem.truth.reference[name])
        rounds = off <= _ROUNDING * formats.of(got).u  # truncated sums err all one way
        if label is None and (rounds or np.all(off * np.abs(exact) <= problem.truth.bound[name])):
            continue
        text, value, named = label or ("", best, "")
        details: dict[str, object] = {
            "factor": text or few_digits.shortest(best, low, high),
            "named": named,
            "interval": [low, high],
        }
        if label is None:
            details["fitted"] = True
        solved = int(not names.is_of_problem(problem, text))
        answer = scaled(problem, name, value)
        trials = names.count(problem)
        yield Variant("scale_factor", details, answer, trials=trials, parameters=solved)


def interval(problem: Problem, output: str, got: Array) -> SolvedNumber | None:
    """The factors that leave of the output what rounding leaves; None if there are none."""
    right = np.asarray(problem.truth.reference[output])
    if got.shape != right.shape or not np.any(right):
        return None
    # Relative: a kernel rounds the factor that it holds, and what it multiplies.
    rounding = 2.0 * formats.working_format(formats.of(got)).u
    seen = _observed(problem, output, got)
    solution = number_in(seen, lambda factor: factor * right.reshape(-1), 1.0, _STARTS, rounding)
    near = solution is not None and solution.distance <= _LEFT * got.size
    return solution if near else None


def _observed(problem: Problem, output: str, got: Array) -> Observation:
    """All of an output."""
    units, format = usual_units(problem, output), problem.format_of(output)
    return Observation(to_float64(got).reshape(-1), format, units.reshape(-1))


def _is_other_definition(problem: Problem, output: str, low: float, high: float) -> bool:
    """Whether another definition of the op is such a factor times the right one."""
    right = np.asarray(problem.truth.reference[output])
    answers = (variant.answer.reference.get(output) for variant in other_formulas(problem, {}))
    with np.errstate(all="ignore"):
        quotients = [np.asarray(answer) / right for answer in answers if answer is not None]
    return any(
        quotient.shape == right.shape and bool(np.all((quotient >= low) & (quotient <= high)))
        for quotient in quotients
    )


def _several_sizes(problem: Problem, output: str) -> bool:
    """Whether two right values, both far from zero, certainly differ in magnitude."""
    size = np.abs(np.asarray(problem.truth.reference[output]))
    margin = problem.truth.bound[output]
    clear = np.isfinite(size) & (size > 2.0 * margin)
    return bool(np.any(clear)) and np.max((size - margin)[clear]) > np.min((size + margin)[clear])


def _narrow(low: float, best: float, high: float, output_format: Format) -> names.Name | None:
    """A factor that a narrower format holds, in a wider one: 0.1 in float32."""
    for format in (formats.BFLOAT16, formats.BINARY16, formats.BINARY32):
        value = formats.cast(np.asarray(best), format)
        alone = format.p < output_format.p and high - low <= abs(best) * _NEAR * format.u
        if alone and low <= float(value) <= high:
            return str(value), float(value), f"a number of {format.name}"
    return None


_LINEAR = ("m", "buf")  # the first of these that an op has
_MULTIPLIED, _CLIPPED = "gradient_multiplied", "gradient_clipped"
_DISQUALIFYING_BITS = 1e9  # bits
_MAX_NORMS = (1.0, 0.5, 0.25, 0.1, 2.0, 5.0, 10.0, 100.0)  # usual thresholds of clipping
_CHANCE = 2.0**-10  # the largest probability that a meaningless factor clips to one of these
_SHORT = 5  # a factor of fewer digits may be a rate, or 1 minus one
_NEAR_ONE = 2.0**-10  # of 1: a factor as near may be a rounded rate


def gradient_multiplied(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
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
    params = {**problem.op.params, **problem.params}
    rates = [value for value in params.values() if isinstance(value, float) and 0.0 < value < 1.0]
    known = (n for r in rates for n in (r, 1.0 - r, 1.0 / r, 1.0 / (1.0 - r)))
    of_question = any(math.isclose(number, n, rel_tol=2.0**-20) for n in known)
    price = _DISQUALIFYING_BITS if of_question else 0.0
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
        cause, details, tried = _CLIPPED, {"max_norm": max_norm}, len(_MAX_NORMS)
        factor = max_norm / norm
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
    least, most = low * (1 - room) * norm, high * (1 + room) * norm
    fitting = [max_norm for max_norm in _MAX_NORMS if least <= max_norm <= most]
    width = len(_MAX_NORMS) * (high / low - 1.0 + 2.0 * room)
    return fitting[0] if len(fitting) == 1 and width <= _CHANCE else None


def _is_short(low: float, high: float) -> bool:
    """Whether a factor, or its inverse, may have few digits or be 1."""
    near = low * (1.0 - _NEAR_ONE) < 1.0 < high * (1.0 + _NEAR_ONE)
    ends = ((low, high), (1.0 / high, 1.0 / low))
    short = (float(f"{(a + b) / 2.0:.{_SHORT - 1}g}") for a, b in ends)
    return near or any(a <= number <= b for (a, b), number in zip(ends, short, strict=True))


def _within(answer: Answer, output: str, got: Array) -> bool:
    """Whether an output is the answer's, up to rounding."""
    right, wide = np.asarray(answer.reference[output]), to_float64(got)
    with np.errstate(invalid="ignore"):
        beyond = np.abs(wide - right) > answer.bound[output]
    return not np.any(beyond & np.isfinite(right) & np.isfinite(wide))


def _factors(problem: Problem, name: str, got: Array, grad: Array) -> tuple[float, float]:
    """The least and the largest factor of the gradient that explain an output."""
    right = np.asarray(problem.truth.reference[name])
    if got.shape != right.shape or not np.isfinite(to_float64(grad)).all():
        return math.nan, math.nan
    constant = np.asarray(problem.ask({"grad": np.zeros_like(grad)}).reference[name])
    slope = right - constant
    seen = _observed(problem, name, got)
    solution = number_in(seen, lambda f: (constant + f * slope).reshape(-1), 1.0, _STARTS)
    return (math.nan, math.nan) if solution is None else (solution.low, solution.high)
