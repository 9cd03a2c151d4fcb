"""hardswish, with its gradient, certified: an activation made of arithmetic alone.

    y = 0 for x <= -3,  x for x >= 3,  x (x + 3) / 6 between;  in kernels,
    y = x clip(x + 3, 0, 6) / 6

    dx = dy times 0, 1, (2 x + 3) / 6; at -3 and 3, where the slope jumps, 0 and 1

The bound includes the jump: a kernel may take the slope of either side at ±3, and where its x + 3
may round to 0 or 6. y at -inf is 0, the limit. x clip(x + 3, 0, 6) overflows for x > max / 6.

Source: Howard et al. (2019), "Searching for MobileNetV3", arXiv:1905.02244.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.activation_ref.cases import SPECIALS, around, binades, with_dy
from refkernels.activation_ref.formulas import fault
from refkernels.arithmetic import formats
from refkernels.kernels.elementary.activations import FAST
from refkernels.op import Case, Invariant
from refkernels.ops import Fault, Mask, formula_op
from refkernels.ops.cases import Arrays, case


def _pieces(xp: Any, x: Any) -> Any:
    beyond = xp.where(x < 0, xp.number(0), x)
    return xp.where(abs(x) < 3, x * (x + 3) / 6, beyond)


def _clipped(xp: Any, x: Any) -> Any:
    return x * xp.clip(x + 3, 0, 6) / 6


def _multiplied(xp: Any, x: Any, sixth: float | Fraction = Fraction(1, 6)) -> Any:
    gate, factor = xp.clip(x + 3, 0, 6), xp.number(sixth)
    return xp.either(x * gate * factor, x * xp.either(gate * factor, gate / 6))


def _slope(xp: Any, dy: Any, x: Any) -> Any:
    beyond = xp.where(x < 0, xp.number(0), xp.where(x > 0, xp.number(1), x))  # NaN stays
    return dy * xp.where(abs(x) < 3, (2 * x + 3) / 6, beyond)


def _slope_of_either_side(xp: Any, dy: Any, x: Any) -> Any:
    gate = x + 3
    above, below = (
        Mask((x > c).yes & (gate > c + 3).yes, (x < c).yes & (gate < c + 3).yes) for c in (-3, 3)
    )
    slope = xp.either(x / 3 + xp.number(Fraction(1, 2)), (2 * x + 3) / 6)
    return dy * xp.where(above, xp.where(~below, slope, xp.number(1)), xp.number(0))


_FAULTS = (
    fault("clip_before_shift", lambda xp, x: x * (xp.clip(x, 0, 6) + 3) / 6),
    fault("silu_gate", lambda xp, x: x / (1 + xp.exp(-x))),
    fault("rounded_sixth", partial(_multiplied, sixth=0.1667)),
    Fault("constant_gate", backward=lambda xp, dy, x: dy * (xp.clip(x + 3, 0, 6) / 6)),
)


def cases() -> list[Case]:
    """All cases. Appended, never changed."""
    make = partial(case, "hardswish")
    return [
        make("range", {"size": 4}, lambda rng, _: with_dy(rng, rng.uniform(-4, 4, 4000))),
        make("binades", {}, binades),
        make("around", {"x": -3}, partial(around, -3.0)),
        make("around", {"x": -1.5}, partial(around, -1.5)),
        make("around", {"x": 3}, partial(around, 3.0)),
        make("ties", {}, _ties, directions=("forward",)),
        make(
            "specials", {}, lambda rng, _: with_dy(rng, np.array([*SPECIALS, 3.0, -3.0, 6.0, -6.0]))
        ),
        make("invariance", {"n": 259}, lambda rng, _: with_dy(rng, rng.uniform(-4, 4, 259))),
    ]


def _ties(rng: np.random.Generator, dtype: str) -> Arrays:
    """x = 3 j / 2^s: x (x + 3) / 6 = 3 j (j + 2^s) / 2^(2 s + 1) has one bit more than the format,
    for odd j of either sign where 3 j (j + 2^s) is that long."""
    p = formats.get(dtype).p
    s = rng.integers(1, p, 20_000)
    j = (2 * rng.integers(0, 2 ** np.minimum(s, p + 1 - s) // 2 + 1) + 1) * rng.choice(
        [-1, 1], 20_000
    )
    length = np.floor(np.log2(3.0 * np.abs(j * (j + 2.0**s)) + 0.5)) + 1
    tied = (length == p + 1) & (np.abs(j) < 2**s)
    return {"x": np.unique(3.0 * j[tied] / 2.0 ** s[tied])}


def _below_least(got: Any, inputs: Any, params: Any) -> Any:
    """Below -3/8, a number of every format, by more than 8 u, which exceeds the bound."""
    return np.asarray(got, np.float64) < -0.375 * (1.0 + 8.0 * formats.of(got).u)


HARDSWISH = formula_op(
    "hardswish",
    "x[...] -> y[...]",
    forms={"pieces": _pieces, "clipped": _clipped, "multiplied": _multiplied},
    backward={"slope": _slope, "slope_of_either_side": _slope_of_either_side},
    faults=_FAULTS,
    invariants=(Invariant("bounded_below", "y >= -3/8", "forward", "y", _below_least),),
    cases=cases,
    fast=FAST["hardswish"],
)
