"""Names factors: a number of the problem (a batch size n, 1 / n, 1 / (n - 1), n / (n - 1),
1 / sqrt n, a norm that gradients are clipped to), another base of a logarithm, or a ratio of small
integers.

A factor is named where its interval contains only one such number, and is so narrow that this is no
accident.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from refkernels.diagnosis.edits.reductions import paddings
from refkernels.diagnosis.problem import Problem

# The factor as text ("": by its digits), its value, and the number of the problem that it is.
Name = tuple[str, float, str]
_CHANCE = 2.0**-4  # the largest probability that a meaningless factor has a name
_LARGEST = 4096  # the largest numerator or denominator of a plausible ratio
_SMALL = 8  # a smaller integer is more likely a world size than some n - 1
_FARTHEST = 2.0**64  # no loss scale is a power of two beyond
_DIGITS = 2  # of a norm's numerator: 1, 5, 0.25
_NUMBERS = 90  # numbers of two digits in a decade
_KINDS = 12  # norms, bases of logarithms, ratios, powers of two, numbers of narrower formats
_LOGARITHMS: tuple[Name, ...] = (
    ("1/ln(2)", 1.0 / math.log(2), "a logarithm to base 2"),
    ("ln(2)", math.log(2), "a logarithm to base 2"),
    ("1/ln(10)", 1.0 / math.log(10), "a logarithm to base 10"),
    ("ln(10)", math.log(10), "a logarithm to base 10"),
)
_DATA = ("dx",)  # gradients that no optimizer sees


def of(problem: Problem, low: float, high: float) -> Name | None:
    """The only name between low and high, None if there is none, or several."""
    sign = 1.0 if low > 0 else -1.0
    low, high = sorted((abs(low), abs(high)))
    for names in (
        _lengths(problem),
        _derived(problem),
        _norms(problem, low, high),
        _LOGARITHMS,
        _ratios(low, high),
    ):
        matching = [name for name in names if low <= name[1] <= high]
        if len({name[1] for name in matching}) == 1:
            text, value, named = matching[0]
            return ("-" + text if text and sign < 0 else text), sign * value, named
    return None


def count(problem: Problem) -> int:
    """The number of possible names: those of the problem, and the kinds of ratios."""
    return len([*_lengths(problem), *_derived(problem)]) + _KINDS


def is_of_problem(problem: Problem, text: str) -> bool:
    """Whether the name is a number of the problem itself, not one found in the output."""
    return text.removeprefix("-") in {n[0] for n in (*_lengths(problem), *_derived(problem))}


def _lengths(problem: Problem) -> Iterator[Name]:
    """n and 1 / n of every axis and every array."""
    for n, axis in _axes(problem).items():
        if n > 1:
            yield str(n), float(n), axis
            yield f"1/{n}", 1.0 / n, axis


def _derived(problem: Problem) -> Iterator[Name]:
    """n - 1, n / (n - 1), sqrt n, and their inverses, unless they are small; n / a padded n."""
    for n, axis in _axes(problem).items():
        root = math.isqrt(n)
        if n - 1 >= _SMALL:
            yield str(n - 1), float(n - 1), f"{axis} - 1"
            yield f"1/{n - 1}", 1.0 / (n - 1), f"{axis} - 1"
            yield f"{n}/{n - 1}", n / (n - 1), f"{axis} / ({axis} - 1)"
            yield f"{n - 1}/{n}", (n - 1) / n, f"({axis} - 1) / {axis}"
            for padded in (padded for padded in paddings(n) if padded % n):
                yield f"{n}/{padded}", n / padded, f"{axis} / {padded}, to which it is padded"
        if root**2 != n:
            yield f"sqrt({n})", math.sqrt(n), axis
            yield f"1/sqrt({n})", 1.0 / math.sqrt(n), axis
        elif root >= _SMALL:
            yield str(root), float(root), f"the root of {axis}"
            yield f"1/{root}", 1.0 / root, f"the root of {axis}"


def _axes(problem: Problem) -> dict[int, str]:
    lengths: dict[int, str] = {}
    for name, array in problem.inputs.items():
        for axis, length in enumerate(array.shape):
            lengths.setdefault(length, f"{name}.shape[{axis}]")
        lengths.setdefault(array.size, f"{name}.size")
    return lengths


def _norms(problem: Problem, low: float, high: float) -> Iterator[Name]:
    """A short number over the norm of one parameter's gradient, or of all together, as gradients
    are clipped to that length.

    The kernel computed that norm in its format: a sum of n squares errs by about sqrt(n) u
    (Higham, Mary 2019, doi:10.1137/18M1226312), the root halves that, and a few roundings follow.
    A factor within that error gets the name, and keeps its value.
    """
    if problem.direction == "forward":
        return
    truth = problem.truth.reference
    parameters = [name for name in problem.op.gradients if name in truth and name not in _DATA]
    squares = {name: float(np.sum(np.square(np.asarray(truth[name])))) for name in parameters}
    groups: list[tuple[str, ...]] = [(name,) for name in parameters]
    for group in [*groups, tuple(parameters)] if len(parameters) > 1 else groups:
        norm = math.sqrt(sum(squares[name] for name in group))
        if not 0.0 < norm < math.inf:
            continue
        n = sum(math.prod(truth[name].shape) for name in group)
        middle = (low + high) / 2.0
        tolerance = (4.0 + math.sqrt(n)) * problem.format.u + (high - low) / middle
        length = float(f"{norm * middle:.{_DIGITS}g}")
        deviation = abs(norm * middle / length - 1.0) if length else math.inf
        if deviation <= tolerance and 2.0 * tolerance * _NUMBERS <= _CHANCE:
            together = " and ".join(group) + (" together" if len(group) > 1 else "")
            yield "", middle, f"{length:g} / the norm of {together}"


def _ratios(low: float, high: float) -> Iterator[Name]:
    """p, 1 / p, p / 2 and 2^k, where the interval is small compared with the gaps between them."""
    middle = (low + high) / 2.0
    if not 1.0 / _FARTHEST < middle < _FARTHEST:
        return
    width = (high - low) / middle
    power = Fraction(2) ** round(math.log2(middle))
    for ratio in {
        Fraction(max(round(middle), 1)),
        Fraction(1, max(round(1 / middle), 1)),
        Fraction(max(round(2 * middle), 1), 2),
    }:
        largest = max(ratio.numerator, ratio.denominator)
        if largest <= _LARGEST and largest * width <= _CHANCE:
            yield str(ratio), float(ratio), ""
    if width <= _CHANCE:
        yield str(power), float(power), ""
