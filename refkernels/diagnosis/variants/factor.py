"""One factor on a whole output, for any op: found from the data, not from a list.

An answer g is f z where one f makes it ordinary by `judge`'s criteria, |g - f z| <= |f| (B + u |z|)
+ tiny in every element and sum w² (g - f z)² <= 16 f² sum w² max(plain error, half an ulp)², with B
the bound of z, u the format's unit, and w = 1, or 1 / ulp(z) for elementwise ops: a parabola about
the f of weighted least squares. f is accepted where both allow it, neither allows 1, and elements
of two sizes agree on it. Of a single number, f needs a name that it would rarely have by chance.

An optimizer's step may be that from a multiple of the gradient: a loss scale that was left in, a
sum over ranks or parts in place of their mean, a gradient that is clipped or divided by its norm;
by that of all tensors, as in apex's LAMB, one tensor shows a factor of many digits. The first
moment and the momentum buffer are linear in the gradient, a + f b from the gradient times f: every
element leaves an interval for f.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import few_digits, multiples
from refkernels.diagnosis.hypothesis import Variant, scaled
from refkernels.diagnosis.problem import Answer, Array, Arrays, Doubles, Problem
from refkernels.diagnosis.variants import names
from refkernels.diagnosis.variants.formulas import other_formulas
from refkernels.metrology import UNUSUAL
from refkernels.metrology.ulp_errors import ulp

_FLOAT64 = 2.0**-51  # relative: z is rounded to float64 here, and a few operations follow
_RARE = 2.0**-14  # relative: a factor of a single number, known so well, rarely has a name
_ROUNDING = 16.0  # units: errors as small are roundings, not a factor without a name
_NEAR = 2.0**-8  # of a format's unit: a factor this near to one of its numbers is no accident


@dataclass(frozen=True)
class Interval:
    """The factors that make an output ordinary: low <= best <= high, all of one sign. `shared`: by
    elements of two sizes."""

    low: float
    best: float
    high: float
    shared: bool

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        """Relative to the factor."""
        return (self.high - self.low) / abs(self.best)


def scale_factor(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """One factor on all of an output. -1 is a cause of its own: `sign_error`.

    `details`: the factor, the number of the problem that it is (`named`), and its interval;
    `fitted` where the number has no name, so that any cause without a fitted number goes before it.
    """
    for name, got in outputs.items():
        factors = interval(problem, name, got)
        if factors is None or 1.0 in factors:
            continue
        if -1.0 in factors:
            yield Variant("sign_error", {"factor": "-1"}, scaled(problem, name, -1.0))
            continue
        label = names.of(problem, factors.low, factors.high)
        if factors.shared:
            label = label or _narrow(factors, formats.of(got))
        elif label is None or factors.width > _RARE or _is_other_definition(problem, name, factors):
            continue
        off, exact = abs(factors.best - 1.0), np.asarray(problem.truth.reference[name])
        rounds = off <= _ROUNDING * formats.of(got).u  # truncated sums err all one way
        if label is None and (rounds or np.all(off * np.abs(exact) <= problem.truth.bound[name])):
            continue
        text, value, named = label or ("", factors.best, "")
        details: dict[str, object] = {
            "factor": text or few_digits.shortest(factors.best, factors.low, factors.high),
            "named": named,
            "interval": [factors.low, factors.high],
        }
        if label is None:
            details["fitted"] = True
        solved = int(not names.is_of_problem(problem, text))
        answer = scaled(problem, name, value)
        trials = names.count(problem)
        yield Variant("scale_factor", details, answer, trials=trials, parameters=solved)


def interval(problem: Problem, output: str, got: Array) -> Interval | None:
    """The factors that both conditions allow; None if there are none."""
    reference = problem.truth.reference[output]
    right, wide = np.asarray(reference), to_float64(got)
    plain, bound = to_float64(problem.truth.plain[output]), problem.truth.bound[output]
    if wide.shape != right.shape:
        return None
    usable = np.isfinite(right) & np.isfinite(wide) & np.isfinite(plain) & np.isfinite(bound)
    z, g, p = right[usable], wide[usable], plain[usable]
    with np.errstate(over="ignore"):  # elsewhere z may be infinite
        radius = np.ldexp(reference.radius, reference.scale)[usable]
    format = formats.of(got)
    margin = bound[usable] + radius + format.u * np.abs(z)
    size = np.max(np.abs(z), initial=0.0)
    if size == 0.0 or not np.any(g):
        return None
    tiny = format.u * format.min_normal
    ulps = ulp(z, format)
    unit = ulps if problem.op.elementwise else np.full(z.shape, size)  # 1 / w
    noise = max(_rms((p - z) / unit), _rms(ulps / unit / 2))
    with np.errstate(over="ignore"):
        weighted = g / unit
    largest = float(np.max(np.abs(weighted)))  # taken out, so that no square overflows
    if not 0.0 < largest < math.inf:
        return None
    largest = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # no rounding either
    best, half_width = _least_squares(z / unit, weighted / largest, noise)
    if best == 0.0 or not math.isfinite(best) or half_width is None:
        return None
    best, half_width = best * largest, half_width * largest
    sign = math.copysign(1.0, best)
    low, high = _allowed(z, sign * g, margin, tiny)
    low = max(low, abs(best) - half_width) * (1.0 - _FLOAT64)
    high = min(high, abs(best) + half_width) * (1.0 + _FLOAT64)
    if not 0.0 < low <= high:
        return None
    # An end of the interval is inside only up to rounding.
    best = abs(best) if low < abs(best) < high else (low + high) / 2.0
    shared = _several_sizes(z, margin)
    if sign > 0:
        return Interval(low, best, high, shared)
    return Interval(-high, -best, -low, shared)


def _is_other_definition(problem: Problem, output: str, factors: Interval) -> bool:
    """Whether another definition of the op is such a factor times the right one."""
    right = np.asarray(problem.truth.reference[output])
    answers = (variant.answer.reference.get(output) for variant in other_formulas(problem, {}))
    with np.errstate(all="ignore"):
        quotients = [np.asarray(answer) / right for answer in answers if answer is not None]
    return any(
        quotient.shape == right.shape
        and bool(np.all((quotient >= factors.low) & (quotient <= factors.high)))
        for quotient in quotients
    )


def _several_sizes(z: Doubles, margin: Doubles) -> bool:
    """Whether two right values, both far from zero, certainly differ in magnitude."""
    size = np.abs(z)
    clear = size > 2.0 * margin
    if not clear.any():
        return False
    return bool(np.max((size - margin)[clear]) > np.min((size + margin)[clear]))


def _least_squares(z: Doubles, g: Doubles, noise: float) -> tuple[float, float | None]:
    """The f with the least sum of (g - f z)^2, and the distance from it at which error / plain is
    4: None where it is larger for every f. noise: the usual RMS error."""
    squares = float(np.sum(z * z))
    best = float(np.sum(g * z)) / squares
    best += float(np.sum((g - best * z) * z)) / squares  # a float64 answer shows its last bit
    rest = float(np.sum(np.square(g - best * z)))
    slack = UNUSUAL**2 * best * best * noise * noise * z.size - rest
    return best, math.sqrt(slack / squares) if slack >= 0.0 else None


def _allowed(z: Doubles, g: Doubles, margin: Doubles, tiny: float) -> tuple[float, float]:
    """The f > 0 with |g - f z| <= f margin + tiny in every element: f (z - m) <= g + tiny and
    f (z + m) >= g - tiny, each a bound from below or from above by the sign of its factor."""
    flip = np.where(z < 0.0, -1.0, 1.0)
    z, g = z * flip, g * flip
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        high = np.where(z > margin, (g + tiny) / (z - margin), np.inf)
        low = np.where(z + margin > 0.0, (g - tiny) / (z + margin), 0.0)
        inner = np.where(z < margin, -(g + tiny) / (margin - z), 0.0)  # g < 0 where z is unsure
    return float(max(np.max(low), np.max(inner), 0.0)), float(np.min(high))


def _narrow(factors: Interval, output_format: formats.Format) -> tuple[str, float, str] | None:
    """A factor that a narrower format holds, in a wider one: 0.1 in float32."""
    for format in (formats.BFLOAT16, formats.BINARY16, formats.BINARY32):
        if format.p >= output_format.p or factors.width > _NEAR * format.u:
            continue
        value = formats.cast(np.asarray(factors.best), format)
        if float(value) in factors:
            return str(value), float(value), f"a number of {format.name}"
    return None


def _rms(values: Doubles) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


_LINEAR = ("m", "buf")  # the first of these that an op has
_MULTIPLIED, _CLIPPED = "gradient_multiplied", "gradient_clipped"
_DISQUALIFYING_BITS = 1e9  # bits
_ROUNDINGS = 4  # of a multiplied gradient, and of the output
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


def _is_of_question(problem: Problem, number: float) -> bool:
    params = {**problem.op.params, **problem.params}
    rates = [value for value in params.values() if isinstance(value, float) and 0.0 < value < 1.0]
    known = (n for r in rates for n in (r, 1.0 - r, 1.0 / r, 1.0 / (1.0 - r)))
    return any(math.isclose(number, n, rel_tol=2.0**-20) for n in known)


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
