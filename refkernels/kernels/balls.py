"""Integer balls (mid ± radius) 2^exponent from Arb's real balls.

Source: Johansson (2017), "Arb: efficient
arbitrary-precision midpoint-radius interval arithmetic", doi:10.1109/TC.2017.2690633.
"""

from typing import Any, TypeAlias

from refkernels.arithmetic.enclosure import SCALE_LIMIT

Ball: TypeAlias = tuple[int, int, int]  # (mid ± radius) * 2^exponent
ANYWHERE = 2 * SCALE_LIMIT  # the exponent of a ball that holds every number


def of(value: Any, bits: int) -> Ball:
    """A ball that holds a flint.arb, with integers of at most about that many bits: the radius of
    x (1 - exp(-x^2/2)) has an exponent of -0.7 x^2, that of 1 + exp(x) any exponent."""
    if not value.is_finite():
        return 0, 1, ANYWHERE
    mid, exponent = (int(part) for part in value.mid().man_exp())
    radius, power = (int(part) for part in value.rad().man_exp())
    if not radius:
        return mid, 0, exponent
    top = max(part.bit_length() + at for part, at in ((mid, exponent), (radius, power)) if part)
    common = max(min(exponent, power) if mid else power, top - bits)
    radius = _shifted_up(radius, power - common)
    if exponent < common and mid:
        return mid >> (common - exponent), radius + 1, common
    return mid << (exponent - common) if mid else 0, radius, common


def _shifted_up(value: int, shift: int) -> int:
    """value 2^shift, rounded up; value > 0."""
    if shift >= 0:
        return value << shift
    return 1 if -shift > value.bit_length() else -(-value >> -shift)
