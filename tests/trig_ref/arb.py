"""The truth that shares no code with the oracle: Arb's balls, by python-flint."""

from typing import Any

import flint
import numpy as np

from refkernels import trig_ref
from refkernels.arithmetic.enclosure import Enclosure

PRECISION = 1700  # the largest float64 needs 1024 bits to be reduced, the smallest 2200 to square
FUNCTIONS = {op.name: op.forward for op in trig_ref.OPS}
VALUES = {
    "sinpi": lambda x: x.sin_pi(),
    "cospi": lambda x: x.cos_pi(),
    **{name: getattr(flint.arb, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
}
SLOPES = {
    "sin": lambda x: x.cos(),
    "cos": lambda x: -x.sin(),
    "tan": lambda x: 1 / x.cos() ** 2,
    "asin": lambda x: 1 / (1 - x * x).sqrt(),
    "acos": lambda x: -1 / (1 - x * x).sqrt(),
    "atan": lambda x: 1 / (1 + x * x),
    "sinpi": lambda x: x.pi() * x.cos_pi(),
    "cospi": lambda x: -x.pi() * x.sin_pi(),
}


def exact_ball(value: float, scale: int = 0) -> Any:
    numerator, denominator = float(value).as_integer_ratio()
    return flint.arb(numerator) / denominator * flint.arb(2) ** scale


def forward(name: str, x: float) -> Any:
    return VALUES[name](exact_ball(x))


def backward(name: str, dy: float, x: float) -> Any:
    return exact_ball(dy) * SLOPES[name](exact_ball(x))


def escape(enclosure: Enclosure, i: int, truth: Any) -> float:
    """|truth - (hi + lo)| / radius, rounded up: above 1 the exact value escapes."""
    scale = int(enclosure.scale[i])
    middle = exact_ball(enclosure.hi[i], scale) + exact_ball(enclosure.lo[i], scale)
    error = abs(truth - middle)
    radius = exact_ball(enclosure.radius[i], scale)
    if enclosure.radius[i] == 0.0:
        return 0.0 if truth == middle or error.is_zero() else np.inf
    return float((error / radius).upper())


def worst_escape(enclosure: Enclosure, truths: list[Any]) -> float:
    """The largest `escape`; the caller's list must be as long as the enclosure."""
    assert enclosure.size == len(truths) > 0
    return max(escape(enclosure, i, truth) for i, truth in enumerate(truths))
