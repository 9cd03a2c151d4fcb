"""The truth for erf, erfc and the gelus: Arb, by other formulas than the oracle's."""

from typing import Any

import flint

from refkernels.arithmetic.enclosure import Enclosure

NAMES = ("erf", "erfc", "gelu", "gelu_tanh")
PRECISION = 2600  # the square of the smallest float64 beside 1 needs 2150 bits
USUAL = 1300  # beside 1, what is left of a tail at 36 needs 1000 bits
PRECISE = 500  # between the two


def ball(value: float, scale: int = 0) -> Any:
    numerator, denominator = float(value).as_integer_ratio()
    return flint.arb(numerator) / denominator * flint.arb(2) ** int(scale)


def _half_argument(x: Any) -> tuple[Any, Any]:
    """sqrt(2/pi) (x + 0.044715 x^3) and its derivative."""
    root, cubic = (2 / flint.arb.pi()).sqrt(), flint.arb(44715) / 1000000
    return root * x * (1 + cubic * x * x), root * (1 + 3 * cubic * x * x)


def _normal(x: Any) -> Any:
    """Phi(x); for x < 0 by the incomplete gamma function, where nothing cancels."""
    if x < 0:
        half = flint.arb(1) / 2
        return (x * x / 2).gamma_upper(half) / (2 * flint.arb.pi().sqrt())
    return 1 - (x / flint.arb(2).sqrt()).erfc() / 2


def _logistic(half: Any) -> Any:
    """(1 + tanh)/2."""
    return half.exp() / (half.exp() + (-half).exp())


def forward(name: str, value: float) -> Any:
    x = ball(value)
    if name == "erf":
        return x.erf()
    if name == "erfc":
        return x.erfc()
    if name == "gelu":
        return x * _normal(x)
    return x * _logistic(_half_argument(x)[0])


def slope(name: str, value: float) -> Any:
    x = ball(value)
    if name in ("erf", "erfc"):
        return (-1) ** NAMES.index(name) * 2 * (-x * x).exp() / flint.arb.pi().sqrt()
    if name == "gelu":
        return _normal(x) + x * (-x * x / 2).exp() / (2 * flint.arb.pi()).sqrt()
    half, steepness = _half_argument(x)
    return _logistic(half) + x * steepness / (2 * half.cosh() ** 2)


def worst_escape(enclosure: Enclosure, truths: list[Any]) -> float:
    """The largest |truth - (hi + lo)| / radius, rounded up: above 1 an exact value escapes."""
    assert enclosure.size == len(truths) > 0
    worst = 0.0
    for i, truth in enumerate(truths):
        scale = enclosure.scale[i]
        error = abs(truth - (ball(enclosure.hi[i], scale) + ball(enclosure.lo[i], scale)))
        if enclosure.radius[i] == 0.0:
            assert error.is_zero()
            continue
        worst = max(worst, float((error / ball(enclosure.radius[i], scale)).upper()))
    return worst
