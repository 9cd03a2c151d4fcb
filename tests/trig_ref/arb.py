"""The truth that shares no code with the oracle: Arb's balls, by python-flint."""

from typing import Any

import flint
import numpy as np

from refkernels import trig_ref
from refkernels.arithmetic.enclosure import Enclosure

PRECISION = 1700  # the largest float64 needs 1024 bits to be reduced, the smallest 2200 to square
FUNCTIONS = {"sin": trig_ref.sin, "cos": trig_ref.cos, "tan": trig_ref.tan}


def exact_ball(value: float, scale: int = 0) -> Any:
    numerator, denominator = float(value).as_integer_ratio()
    return flint.arb(numerator) / denominator * flint.arb(2) ** scale


def forward(name: str, x: float) -> Any:
    return getattr(exact_ball(x), name)()


def backward(name: str, dy: float, x: float) -> Any:
    ball = exact_ball(x)
    slope = {"sin": ball.cos, "cos": lambda: -ball.sin(), "tan": lambda: 1 / ball.cos() ** 2}[name]
    return exact_ball(dy) * slope()


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
