"""sin, cos and tan: inaccurate argument reduction.

A reduction with p in place of pi / 2 gives f at x + k (pi / 2 - p), which is the answer to another
question: it either explains the output as rounding or does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim, Variant, moved
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.wrong import pattern, wrong_elements

_CIRCULAR: dict[str, Callable[..., Array]] = {"sin": np.sin, "cos": np.cos, "tan": np.tan}
_PERIODS = {"pi/2": (0.5, 4), "pi": (1.0, 2), "2 pi": (2.0, 1)}  # of pi; how many make a full turn
_BITS = (8, 11, 12, 16)  # of each of Cody and Waite's constants
_REDUCED = 8.0  # units of |x f'(x)| that a reduction in the working precision may lose
_EXTRA = 2.0**-48  # relative: what long double and a few operations of it may lose


def reductions(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """sin, cos and tan of arguments reduced with few constants in the working precision."""
    function = _CIRCULAR[problem.op.name]
    if problem.direction == "backward" or problem.format.name == "float64":
        return
    x = problem.inputs["x"].astype(np.float32)
    if not np.any(np.abs(x) > np.pi / 4):
        return
    for name, (part, turn) in _PERIODS.items():
        period = part * math.pi
        for description, constants, fused in _constants(period):
            with np.errstate(all="ignore"):
                if description == "one, fmod":
                    k = np.trunc(x.astype(np.float64) / float(constants[0]))
                else:
                    k = np.rint(x * np.float32(1.0 / period)).astype(np.float64)
                reduced = x
                for constant in constants:
                    # Fused: one rounding. float64 holds the product of two float32.
                    factor: Array = k if fused else k.astype(np.float32)
                    reduced = (reduced - factor * constant).astype(np.float32)
                angle = np.fmod(k, turn) * np.longdouble(period)
                values = function(reduced.astype(np.longdouble) + angle).astype(np.float64)
            usable = np.isfinite(values) & np.isfinite(x)
            values = np.where(usable, values, np.asarray(problem.truth.reference["y"]))
            details = {"period": name, "constants": description, "fma": fused}
            spread = np.abs(values) * _EXTRA + np.abs(angle).astype(np.float64) * 2.0**-52
            yield Variant("argument_reduction", details, moved(problem, "y", values, spread))


def _constants(period: float) -> Iterator[tuple[str, list[np.float32], bool]]:
    """The period as one float32, or as two: the first has few bits, so that its product with a
    small k is exact."""
    single = np.float32(period)
    yield "one", [single], False
    yield "one", [single], True
    yield "one, fmod", [single], True
    for bits in _BITS:
        scale = 2.0 ** (bits - 1 - math.floor(math.log2(period)))
        first = np.float32(math.floor(period * scale) / scale)
        second = np.float32(period - float(first))
        yield f"two, the first of {bits} bits", [first, second], False


def errors(problem: Problem, name: str, got: Array, truth: Fit) -> list[Claim]:
    """sin, cos, tan: every wrong element lies further out than pi, and right ones lie nearer; no
    error exceeds what a reduction in the working precision leaves, about u |x| |f'|."""
    if name != "y":
        return []
    wrong = wrong_elements(problem, name, got)
    x, exact = to_float64(problem.inputs["x"]), np.asarray(problem.truth.reference[name])
    size = np.abs(x)
    if not wrong.any() or wrong.all() or size[wrong].min() <= math.pi:
        return []
    if not np.any(size[~wrong] < size[wrong].min()):
        return []
    slope = 1.0 + exact * exact if problem.op.name == "tan" else 1.0
    with np.errstate(all="ignore"):
        limit = problem.truth.bound[name] + _REDUCED * problem.format.u * size * slope
        error = np.abs(to_float64(got) - exact)
    if not np.all((error <= limit)[wrong & (size < 1.0 / problem.format.u)]):  # nor is it NaN
        return []
    nearest = float(size[wrong].min())
    return [pattern("argument_reduction", name, wrong, {"from": nearest})]
