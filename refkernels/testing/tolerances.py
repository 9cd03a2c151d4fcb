"""The atol and rtol that a proven bound allows, for test suites that must keep `allclose`.

A kernel of the op's named forms errs by at most b_i on element z_i. `allclose` asks for
|got_i - z_i| <= atol + rtol |z_i|. So any pair with b_i <= atol + rtol |z_i| for all i passes every
such kernel, on these inputs. `tolerances` takes the pair that allows the least on average,
atol + rtol mean |z|: a convex function of rtol, with atol = max(0, max_i (b_i - rtol |z_i|)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import question
from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.metrology import outputs as kernel_outputs
from refkernels.metrology.ulp_errors import ulp as ulp_of
from refkernels.op import Direction, Op

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tolerance:
    """`atol` and `rtol` of one output, and how many ulp they allow on its element of median size:
    `allclose` accepts errors of so many ulp there."""

    atol: float
    rtol: float
    ulp: float


@with_default_fenv
def tolerances(
    op: str | Op,
    inputs: Mapping[str, Any],
    params: Mapping[str, Any] | None = None,
    direction: Direction = "forward",
    *,
    dtype: Any = None,
) -> dict[str, Tolerance]:
    """The smallest tolerances, by output name, with which `allclose` against the exact value passes
    every kernel of the op's named forms on these inputs; both rounded up to two digits.

    They hold for these inputs only: others have other bounds, and `assert_kernel` derives a bound
    for each element. `dtype` is that of the outputs, by default that of the inputs (the narrowest).
    An expected value that is rounded, for example in float64, adds its own rounding.

    Raises ValueError if the bound is infinite in an element, or an exact value is not a finite
    number, because then no tolerance is right; and ValueError or TypeError for a question that
    `assert_kernel` refuses.
    """
    record, arrays, settings = question.read(op, inputs, params, direction)
    format = formats.get(dtype) if dtype is not None else _narrowest(arrays)
    names = record.names(direction)
    oracle = kernel_outputs.ask(record, direction, arrays, settings, dict.fromkeys(names, format))
    return {name: _tolerance(name, oracle, format) for name in oracle.reference}


def _narrowest(arrays: Mapping[str, npt.NDArray[Any]]) -> Format:
    floating = [formats.of(array) for array in arrays.values() if formats.is_one(array.dtype)]
    return min(floating, key=lambda format: format.p)


def _tolerance(name: str, oracle: kernel_outputs.Asked, format: Format) -> Tolerance:
    exact = oracle.reference[name]
    with np.errstate(over="ignore"):
        magnitude = (np.abs(exact.hi) * np.exp2(np.asarray(exact.scale, np.float64))).ravel()
    bound = np.ravel(oracle.truths[name].reach()[name])
    if not magnitude.size:
        return Tolerance(0.0, 0.0, 0.0)
    if wrong := int((~(np.isfinite(magnitude) & np.isfinite(bound))).sum()):
        raise ValueError(
            f"{name}: {wrong} of {magnitude.size} elements are not finite numbers, or may overflow "
            "on the way, so that no tolerance is right: give inputs without them."
        )
    rtol = _rounded_up(_best_rtol(magnitude, bound))
    atol = _rounded_up(_atol(rtol, magnitude, bound))
    median = float(np.median(magnitude))
    ulp = (atol + rtol * median) / float(ulp_of(median, format))
    return Tolerance(atol, rtol, ulp)


def _atol(rtol: float, magnitude: Array, bound: Array) -> float:
    """The least atol for this rtol, as `allclose` computes with them: product and sum are
    rounded."""
    with np.errstate(over="ignore"):
        excess = float((bound - np.nextafter(rtol * magnitude, 0.0)).max())
    return math.nextafter(excess, math.inf) if excess > 0.0 else 0.0


def _best_rtol(magnitude: Array, bound: Array) -> float:
    """The rtol of the least average: the minimum over rtol >= 0 of the largest of the lines
    b_i + rtol (mean - z_i) and rtol mean. One falling and one rising line enclose it. The line that
    is largest where they meet replaces one of them, until none is larger."""
    offsets, slopes = np.append(bound, 0.0), float(magnitude.mean()) - np.append(magnitude, 0.0)
    falling, rising, rtol = int(np.argmax(offsets)), len(magnitude), 0.0
    while slopes[falling] < 0.0:
        rtol = (offsets[falling] - offsets[rising]) / (slopes[rising] - slopes[falling])
        heights = offsets + rtol * slopes
        largest = int(np.argmax(heights))
        if heights[largest] <= max(heights[falling], heights[rising]):
            break
        falling, rising = (largest, rising) if slopes[largest] < 0.0 else (falling, largest)
    return float(rtol)


def _rounded_up(value: float) -> float:
    """Rounded up to two decimal digits."""
    up = Decimal(value).normalize(Context(prec=2, rounding=ROUND_CEILING))
    return float(up) if float(up) >= value else float(up.next_plus(Context(prec=2)))
