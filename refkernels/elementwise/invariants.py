"""Invariants that every correctly or faithfully rounded kernel of a function satisfies."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.kernels.real_function import Doubles
from refkernels.op import Arrays, Invariant

Mask = npt.NDArray[np.bool_]
Violated = Callable[[Doubles, Doubles, Format], Mask]  # of the answers, and of x or of dy


def forward(name: str, statement: str, violated: Violated, between: bool = False) -> Invariant:
    def of_arrays(got: Any, inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        return violated(to_float64(got), to_float64(inputs["x"]), formats.of(np.asarray(got)))

    return Invariant(name, statement, "forward", "y", of_arrays, between=between)


def backward(name: str, statement: str, violated: Callable[..., Mask]) -> Invariant:
    """`violated` of |dx|, |dy|, where dy is normal, and x."""

    def of_arrays(got: Any, inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        dy, format = to_float64(inputs["dy"]), formats.of(np.asarray(inputs["dy"]))
        size = np.abs(dy)
        return violated(np.abs(to_float64(got)), size, size >= format.min_normal, inputs["x"])

    return Invariant(name, statement, "backward", "dx", of_arrays)


def within(statement: str, low: float, high: float = math.inf, name: str = "range") -> Invariant:
    """y in [low, high]."""
    return forward(name, statement, lambda y, x, _: (y < low) | (y > high))


def sign(statement: str, end: float = math.inf) -> Invariant:
    """The sign of x, or 0, for |x| <= end."""
    return forward(
        "sign", statement, lambda y, x, _: (np.abs(x) <= end) & (np.sign(y) * np.sign(x) < 0.0)
    )


CONTRACTS = backward("slope_at_most_one", "|dx| <= |dy|", lambda dx, dy, *_: dx > dy)
