"""What no rounding excuses: a correctly or faithfully rounded kernel keeps all of these.

The bounds 3 and 1.5 stand for pi and pi/2 with room for the error of any kernel inside its limit.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.op import Arrays, Invariant

Mask = npt.NDArray[np.bool_]
Violated = Callable[[npt.NDArray[Any], Arrays, Mapping[str, Any]], Mask]


def _wide(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.asarray(array, dtype=np.float64)


def _above_one(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return np.abs(_wide(got)) > 1.0


def _wrong_sign(end: float) -> Violated:
    def violated(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        x = _wide(inputs["x"])
        return (np.abs(x) <= end) & (np.sign(_wide(got)) * np.sign(x) < 0.0)

    return violated


def _not_positive(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return (np.abs(_wide(inputs["x"])) <= 1.5) & (_wide(got) <= 0.0)


def _larger_than_dy(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return np.abs(_wide(got)) > np.abs(_wide(inputs["dy"]))


def _smaller_than_dy(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    dy = np.abs(_wide(inputs["dy"]))
    normal = np.isfinite(inputs["x"]) & (dy >= formats.of(np.asarray(inputs["dy"])).min_normal)
    return normal & (np.abs(_wide(got)) < dy)


_CONTRACTS = ("slope_at_most_one", "|dx| <= |dy|", "backward", "dx")
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
        Invariant("slope_at_least_one", "|dx| >= |dy|", "backward", "dx", _smaller_than_dy),
    ),
}
