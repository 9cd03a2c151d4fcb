"""hardswish, with its gradient, certified: an activation made of arithmetic alone.

    y = 0 for x <= -3,  x for x >= 3,  x (x + 3) / 6 between;  as kernels have it,
    y = x clip(x + 3, 0, 6) / 6

    dx = dy times 0, 1, (2 x + 3) / 6; at -3 and 3, where the slope jumps, 0 and 1

The bound takes in the jump: a kernel may take the slope of either side at ±3, and where its x + 3
may round to 0 or 6. y at -inf is 0, the limit. x clip(x + 3, 0, 6) overflows for x > max / 6.

Source: Howard et al. (2019), "Searching for MobileNetV3", arXiv:1905.02244.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Certify
from refkernels.op import Case, Invariant
from refkernels.ops import Fault, Mask, formula_op
from refkernels.ops.cases import Arrays, case
from refkernels.ops.formula import derived

__all__ = ["OPS", "hardswish", "hardswish_backward"]


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


def _fault(cause: str, formula: Any) -> Fault:
    return Fault(cause, formula, derived(formula, ("y",), {"dy": "y"}, ("x",)))


_FAULTS = (
    _fault("clip_before_shift", lambda xp, x: x * (xp.clip(x, 0, 6) + 3) / 6),
    _fault("silu_gate", lambda xp, x: x / (1 + xp.exp(-x))),
    _fault("rounded_sixth", partial(_multiplied, sixth=0.1667)),
    Fault("constant_gate", backward=lambda xp, dy, x: dy * (xp.clip(x + 3, 0, 6) / 6)),
)


def cases() -> list[Case]:
    """All of them. Appended, never changed."""
    make = partial(case, "hardswish")
    return [
        make("range", {"size": 4}, lambda rng, _: _with_dy(rng, rng.uniform(-4, 4, 4000))),
        make("binades", {}, _binades),
        make("around", {"x": -3}, partial(_around, -3.0)),
        make("around", {"x": -1.5}, partial(_around, -1.5)),
        make("around", {"x": 3}, partial(_around, 3.0)),
        make("ties", {}, _ties, directions=("forward",)),
        make("specials", {}, lambda rng, _: _with_dy(rng, np.array(_SPECIALS))),
        make("invariance", {"n": 259}, lambda rng, _: _with_dy(rng, rng.uniform(-4, 4, 259))),
    ]


_SPECIALS = (0.0, -0.0, 3.0, -3.0, 6.0, -6.0, np.inf, -np.inf, np.nan)


def _with_dy(rng: np.random.Generator, x: Any) -> Arrays:
    return {"dy": rng.standard_normal(x.shape), "x": x}


def _binades(rng: np.random.Generator, dtype: str) -> Arrays:
    format = formats.get(dtype)
    exponents = np.arange(format.emin - format.p + 1, format.emax + 1)
    sizes = np.ldexp(rng.uniform(1.0, 2.0 - 2.0**-7, (4, exponents.size)), exponents)
    return _with_dy(rng, np.concatenate([sizes, -sizes], axis=1).reshape(-1))


def _around(centre: float, rng: np.random.Generator, dtype: str) -> Arrays:
    ulp = 2.0 ** (np.floor(np.log2(abs(centre))) - formats.get(dtype).p + 1)
    return _with_dy(rng, centre + ulp * np.arange(-64.0, 65.0))


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
    """-3/8 is a number of every format; 8 u is more than the bound allows."""
    return np.asarray(got, np.float64) < -0.375 * (1.0 + 8.0 * formats.of(got).u)


OPS = (
    formula_op(
        "hardswish",
        "x[...] -> y[...]",
        forms={"pieces": _pieces, "clipped": _clipped, "multiplied": _multiplied},
        backward={"slope": _slope, "slope_of_either_side": _slope_of_either_side},
        faults=_FAULTS,
        invariants=(Invariant("bounded_below", "y >= -3/8", "forward", "y", _below_least),),
        cases=cases,
    ),
)


def hardswish(x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """y = x min(max(x + 3, 0), 6) / 6, of any shape.

    x           float16, bfloat16, float32 or float64 (NumPy, DLPack, `__array__`)
    certify     the question (`refkernels.Enclosure`)

    The bound is about 4 u |y|: `OPS` has it elementwise, proven for the pieces, x gate / 6,
    (x gate) (1 / 6) and x (gate / 6), where x 6 does not overflow.
    Raises TypeError for other dtypes. Source: Howard et al. (2019), arXiv:1905.02244.
    """
    return OPS[0].evaluate("forward", {"x": x}, {}, certify)["y"]


def hardswish_backward(dy: Any, x: Any, *, certify: Certify = "enclosure") -> Enclosure:
    """dx = dy times 0 for x <= -3, 1 for x >= 3, (2 x + 3) / 6 between; dy has x's shape.

    The bound takes in the jump of the slope at ±3. Else as for `hardswish`.
    """
    return OPS[0].evaluate("backward", {"dy": dy, "x": x}, {}, certify)["dx"]
