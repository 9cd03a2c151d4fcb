"""A function that returns x itself, or a constant, beyond a threshold that is too near:
softplus(x) = x for x > 20, where log1p(e^-x) is 2e-9.

The wrong elements lie beyond, except for one in a hundred, where the function's library errs.
Backward, the value is the cotangent or 0. Any k of the m + k elements in which that value is wrong
lie beyond a threshold with the probability 1 / C(m + k, k): there is no claim unless this is below
2^-20, and no evidence unless it is below 2^-40.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import few_digits, units
from refkernels.diagnosis.hypothesis import Claim, Evidence, Prediction
from refkernels.diagnosis.problem import Array, Doubles, Problem
from refkernels.diagnosis.wrong import FEW, vanishes, wrong_elements

CAUSE = "beyond_threshold"
_BELOW = "x < -{}"
_REGIONS = {"x > {}": np.positive, _BELOW: np.negative, "|x| > {}": np.abs}
_CHANCE = 2.0**-4  # the largest probability that an interval has such a number by chance


def shortcut(problem: Problem, output: str, got: Array, wrong: Array) -> Claim | None:
    """The first value and region that account for the wrong elements."""
    if not problem.op.function:
        return None
    x, wide = to_float64(problem.inputs["x"]), to_float64(got)
    finite, tried = np.isfinite(x), 0
    for where, key in _REGIONS.items():
        distances: Doubles = key(x)
        for returned, values in _values(problem, wide, x, wrong & finite, distances):
            tried += 1
            different = finite & (wide != values)
            if not different.any():
                continue
            low = float(distances[different].max())
            beyond = finite & (distances > low)
            if np.count_nonzero(wrong & ~beyond) > FEW * np.count_nonzero(wrong):
                continue
            if _saturates(problem, output, wrong & beyond):
                continue
            high = float(distances[beyond].min())
            value_is_wrong = wrong_elements(problem, output, formats.cast(values, formats.of(got)))
            sides = np.unique(x[value_is_wrong & different]).size, np.unique(x[wrong & beyond]).size
            claim = _claim(output, wrong & beyond, returned, where, (low, high), sides, tried)
            limit = formats.of(got).min_normal  # an underflow has a threshold of its own
            if claim and vanishes(problem, output, got, wrong & beyond, limit, problem.inputs):
                return replace(claim, prediction=replace(claim.prediction, counted=False))
            return claim
    return None


def _saturates(problem: Problem, output: str, beyond: Array) -> bool:
    """Whether the exact result is one number on each side too: another constant there is an error
    of its own."""
    exact, x = np.asarray(problem.truth.reference[output]), to_float64(problem.inputs["x"])
    sides = (exact[beyond & (x < 0)], exact[beyond & (x >= 0)])
    return bool(beyond.any()) and all(np.unique(side).size <= 1 for side in sides)


def _values(
    problem: Problem, wide: Doubles, x: Doubles, wrong: Array, distances: Doubles
) -> Iterator[tuple[str, Doubles]]:
    """What the elements beyond a threshold may be, each with its name: x or the cotangent, 0, a
    constant on each side."""
    if not wrong.any():
        return
    if problem.direction == "backward":
        yield problem.op.cotangent, to_float64(problem.inputs[problem.op.cotangent])
        yield "0", np.zeros_like(wide)
        return
    yield "x", x
    last = np.where(wrong, distances, -math.inf)
    ends = [side & wrong for side in (x < 0, x >= 0) if np.any(side & wrong)]
    constants = [float(wide[np.unravel_index(np.argmax(np.where(end, last, -math.inf)), x.shape)])
                 for end in ends]  # fmt: skip
    yield (
        " / ".join(f"{constant:.9g}" for constant in constants),
        np.where(x < 0, constants[0], constants[-1]),
    )


def _claim(
    output: str,
    wrong: Array,
    returned: str,
    where: str,
    interval: tuple[float, float],
    sides: tuple[int, int],
    tried: int,
) -> Claim | None:
    """`sides`: the number of arguments before the threshold at which the value would be wrong, and
    of those beyond it at which it is."""
    before, beyond = sides
    bits = units.place_bits(before + beyond, beyond, beyond)
    if bits < Evidence.MATCHED:
        return None
    low, high = interval
    chosen = few_digits.chosen(low, high, _CHANCE)
    number = f"t ({low:.9g} <= t < {high:.9g})" if chosen is None else f"{chosen[0]:g}"
    if low < 0.0 and where == _BELOW:  # x < -t with a negative t
        where, number = "x < {}", f"t ({-high:.9g} < t <= {-low:.9g})"
    details = {
        "returns": returned, "where": where.format(number), "interval": list(interval),
        "wrong": int(np.count_nonzero(wrong)), "before": before,
        **({} if chosen is None else {"threshold": chosen[0]}),
    }  # fmt: skip
    prediction = Prediction(wrong=wrong, counted=bits >= Evidence.PROVEN)
    return Claim(CAUSE, output, prediction, details, trials=tried, price=math.log2(wrong.size))
