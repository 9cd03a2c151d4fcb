"""Invariants that every correctly or faithfully rounded kernel satisfies.

Faithful roundings err by less than one ulp each, so answers that fall by two ulp where the function
rises cannot both be faithful.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.op import Arrays, Invariant

Mask = npt.NDArray[np.bool_]
Violated = Callable[[npt.NDArray[Any], Arrays, Mapping[str, Any]], Mask]
_STEEPEST = 1.15  # erf' is at most 2/sqrt(pi) = 1.1284; with room for an ulp of any format here
_SILU_LEAST = -0.2795  # silu's minimum, -0.27846, rounded down to bfloat16 is -0.2793


def _outside(low: float, high: float) -> Violated:
    def violated(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        y = to_float64(got)
        return (y < low) | (y > high)

    return violated


def _below_x(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return to_float64(got) < to_float64(inputs["x"])


def _above_x(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return to_float64(got) > to_float64(inputs["x"])


def _other_sign(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return np.sign(to_float64(got)) * np.sign(to_float64(inputs["x"])) < 0.0


def _larger_than_dy(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return np.abs(to_float64(got)) > np.abs(to_float64(inputs["dy"]))


def _larger_than_x(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return np.abs(to_float64(got)) > np.abs(to_float64(inputs["x"]))


def _much_larger_than_dy(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    dy = np.abs(to_float64(inputs["dy"]))
    normal = dy >= formats.of(np.asarray(inputs["dy"])).min_normal
    size = np.abs(to_float64(got))
    return normal & (size / _STEEPEST > dy) & (size < math.inf)


def _falling(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    """Where an answer is two ulp or more below the answer to a smaller argument."""
    format = formats.of(np.asarray(got))
    x, y = to_float64(inputs["x"]).reshape(-1), to_float64(got).reshape(-1)
    order = np.argsort(x, kind="stable")
    order = order[np.isfinite(x[order]) & ~np.isnan(y[order])]
    sorted_x, sorted_y = x[order], y[order]
    highest = np.maximum.accumulate(sorted_y) if order.size else sorted_y
    first = np.searchsorted(sorted_x, sorted_x)  # the first of equal arguments
    before = np.where(first > 0, highest[np.maximum(first - 1, 0)], -np.inf)
    with np.errstate(invalid="ignore"):
        _, exponent = np.frexp(np.where(np.isfinite(before), before, 0.0))
        ulp = np.ldexp(1.0, np.maximum(exponent - 1, format.emin) - format.p + 1)
        fallen = before - sorted_y >= 2.0 * ulp
    mask = np.zeros(x.size, np.bool_)
    mask[order] = fallen
    return mask.reshape(np.shape(got))


def _forward(name: str, statement: str, violated: Violated) -> Invariant:
    return Invariant(name, statement, "forward", "y", violated)


def _range(statement: str, low: float, high: float = np.inf) -> Invariant:
    return _forward("range", statement, _outside(low, high))


def _rising(name: str) -> Invariant:
    statement = f"{name} never falls by two ulp"
    return Invariant("rising", statement, "forward", "y", _falling, between=True)


def _sign(name: str) -> Invariant:
    return _forward("sign", f"{name}(x) never has the other sign than x", _other_sign)


_SMALL_SLOPE = Invariant("slope_at_most_one", "|dx| <= |dy|", "backward", "dx", _larger_than_dy)
_EXP = (_range("exp x >= 0", 0.0), _rising("exp"))
_STEEP = Invariant(
    "slope", "|dx| <= 1.15 |dy| where it does not overflow", "backward", "dx", _much_larger_than_dy
)
_GELU = (
    _range("y >= -0.171", -0.171),  # below both minima, -0.17004, by more than an ulp
    _forward("sign", "y never has the other sign than x", _other_sign),
    _forward("at_most_x", "|y| <= |x|", _larger_than_x),
)
INVARIANTS: dict[str, tuple[Invariant, ...]] = {
    "exp": _EXP,
    "exp2": (_range("2^x >= 0", 0.0), _rising("exp2")),
    "expm1": (
        _range("expm1 x >= -1", -1.0),
        _forward("at_least_x", "expm1 x >= x", _below_x),
        _rising("expm1"),
    ),
    "log": (_rising("log"),),
    "log2": (_rising("log2"),),
    "log10": (_rising("log10"),),
    "log1p": (_forward("at_most_x", "log1p x <= x", _above_x), _rising("log1p")),
    "sinh": (_sign("sinh"), _rising("sinh")),
    "cosh": (_range("cosh x >= 1", 1.0),),
    "tanh": (_range("|tanh x| <= 1", -1.0, 1.0), _sign("tanh"), _rising("tanh"), _SMALL_SLOPE),
    "sigmoid": (
        _range("0 <= sigmoid x <= 1", 0.0, 1.0),
        _rising("sigmoid"),
        _SMALL_SLOPE,
    ),
    "silu": (_range("silu x >= -0.2795", _SILU_LEAST), _sign("silu")),
    "softplus": (
        _range("softplus x >= 0", 0.0),
        _forward("at_least_x", "softplus x >= x", _below_x),
        _rising("softplus"),
        _SMALL_SLOPE,
    ),
    "sqrt": (_range("sqrt x >= 0", 0.0), _rising("sqrt")),
    "rsqrt": (_forward("sign", "1 / sqrt x > 0 for x > 0", _other_sign),),
    "reciprocal": (_sign("reciprocal"),),
    "erf": (
        _range("|erf x| <= 1", -1.0, 1.0),
        _forward("sign", "erf x never has the other sign than x", _other_sign),
        _rising("erf"),
        _STEEP,
    ),
    "erfc": (_range("0 <= erfc x <= 2", 0.0, 2.0), _STEEP),
    "gelu": _GELU,
    "gelu_tanh": _GELU,
}
