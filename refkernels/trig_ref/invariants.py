"""Invariants that every correctly or faithfully rounded kernel satisfies.

The bounds 3 and 1.5 stand for pi and pi/2, with room for the error of any kernel within its limit.
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


def _above_one(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return np.abs(to_float64(got)) > 1.0


def _wrong_sign(end: float) -> Violated:
    def violated(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        x = to_float64(inputs["x"])
        return (np.abs(x) <= end) & (np.sign(to_float64(got)) * np.sign(x) < 0.0)

    return violated


def _not_positive(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return (np.abs(to_float64(inputs["x"])) <= 1.5) & (to_float64(got) <= 0.0)


def _larger_than_dy(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return np.abs(to_float64(got)) > np.abs(to_float64(inputs["dy"]))


def _smaller_than_dy(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    dy = np.abs(to_float64(inputs["dy"]))
    normal = np.isfinite(inputs["x"]) & (dy >= formats.of(np.asarray(inputs["dy"])).min_normal)
    return normal & (np.abs(to_float64(got)) < dy)


def _outside(low: float, high: float) -> Violated:
    """Where an answer is outside [low, high], each end rounded outward to the format."""

    def violated(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        ends = formats.round_to(np.array([low, high]), formats.of(np.asarray(got)))
        wide, reached = to_float64(got), to_float64(ends)
        with np.errstate(over="ignore"):
            step = to_float64(np.nextafter(ends, np.array([-np.inf, np.inf]).astype(ends.dtype)))
        bottom = reached[0] if reached[0] <= low else step[0]
        top = reached[1] if reached[1] >= high else step[1]
        return (wide < bottom) | (wide > top)

    return violated


def _nonzero_at(offset: float) -> Violated:
    """Where an answer is not zero at an integer plus the offset."""

    def violated(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        x = to_float64(inputs["x"])
        with np.errstate(invalid="ignore"):
            at = np.isfinite(x) & (np.fmod(np.abs(x), 1.0) == offset)
        return at & (to_float64(got) != 0.0)

    return violated


_CONTRACTS = ("slope_at_most_one", "|dx| <= |dy|", "backward", "dx")
_STRETCHES = ("slope_at_least_one", "|dx| >= |dy|", "backward", "dx")
_HALF_PI = math.pi / 2  # and math.pi: below pi/2 and pi, by less than half a unit of float64
INVARIANTS = {
    "sin": (
        Invariant("at_most_one", "|sin x| <= 1", "forward", "y", _above_one),
        Invariant(
            "sign", "sin x never has the other sign for |x| <= 3", "forward", "y", _wrong_sign(3.0)
        ),
        Invariant(*_CONTRACTS, _larger_than_dy),  # type: ignore[arg-type]
    ),
    "cos": (
        Invariant("at_most_one", "|cos x| <= 1", "forward", "y", _above_one),
        Invariant("positive", "cos x > 0 for |x| <= 1.5", "forward", "y", _not_positive),
        Invariant(*_CONTRACTS, _larger_than_dy),  # type: ignore[arg-type]
    ),
    "tan": (
        Invariant(
            "sign",
            "tan x never has the other sign for |x| <= 1.5",
            "forward",
            "y",
            _wrong_sign(1.5),
        ),
        Invariant(*_STRETCHES, _smaller_than_dy),  # type: ignore[arg-type]
    ),
    "asin": (
        Invariant(
            "range",
            "|asin x| <= pi/2, rounded outward",
            "forward",
            "y",
            _outside(-_HALF_PI, _HALF_PI),
        ),
        Invariant("sign", "asin x has the sign of x", "forward", "y", _wrong_sign(1.0)),
        Invariant(*_STRETCHES, _smaller_than_dy),  # type: ignore[arg-type]
    ),
    "acos": (
        Invariant(
            "range", "0 <= acos x <= pi, rounded outward", "forward", "y", _outside(0.0, math.pi)
        ),
        Invariant(*_STRETCHES, _smaller_than_dy),  # type: ignore[arg-type]
    ),
    "atan": (
        Invariant(
            "range",
            "|atan x| <= pi/2, rounded outward",
            "forward",
            "y",
            _outside(-_HALF_PI, _HALF_PI),
        ),
        Invariant("sign", "atan x has the sign of x", "forward", "y", _wrong_sign(math.inf)),
        Invariant(*_CONTRACTS, _larger_than_dy),  # type: ignore[arg-type]
    ),
    "sinpi": (
        Invariant("at_most_one", "|sinpi x| <= 1", "forward", "y", _above_one),
        Invariant("zero", "sinpi x = 0 at every integer", "forward", "y", _nonzero_at(0.0)),
    ),
    "cospi": (
        Invariant("at_most_one", "|cospi x| <= 1", "forward", "y", _above_one),
        Invariant("zero", "cospi x = 0 halfway between integers", "forward", "y", _nonzero_at(0.5)),
    ),
}
