"""What attacks on bounds share: numbers all over a format's range, and error / bound, exactly.

REFKERNELS_HUNT multiplies the problems that each attack tries.
"""

from fractions import Fraction

import numpy as np
from hunting import HUNT

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64

EXAMPLES = 4 * HUNT


def exponent(rng, format):
    """Subnormal, around 1, anywhere, or where a product of two numbers underflows."""
    lowest = format.emin - format.p + 1
    low, high = [
        (lowest, format.emin + 3),
        (-6, 7),
        (lowest, format.emax // 2),
        (lowest // 2 - 3, format.emin // 2 + 3),
        (lowest, lowest // 2),
    ][rng.integers(5)]
    return int(rng.integers(low, high))


def numbers(rng, shape, format):
    """Numbers of the format around one exponent or spread over many, with few bits or all."""
    spread = rng.choice([0, 1, 3, 10, 40])
    powers = exponent(rng, format) + rng.integers(-spread, spread + 1, shape)
    powers = np.clip(powers, format.emin - format.p + 1, format.emax - 1)
    steps = 2.0 ** rng.choice([1, 3, format.p - 1, format.p - 1])
    values = np.ldexp(1.0 + np.floor(rng.random(shape) * steps) / steps, powers)
    zeros = rng.random(shape) < rng.choice([0.0, 0.3])
    return formats.round_to(np.where(zeros, 0.0, values * rng.choice([-1, 1], shape)), format)


def error_over_bound(got, exact, bound):
    """The largest certain |got - exact| / bound, over the elements with a finite bound whose exact
    value, give or take the bound, does not overflow; infinite where got is not finite."""
    largest = formats.of(got).max
    got, bound = to_float64(got), np.broadcast_to(bound, got.shape)
    assert (bound[np.isfinite(exact.hi)] >= 0.0).all()
    with np.errstate(all="ignore"):
        judged = np.abs(np.ldexp(exact.hi, np.clip(exact.scale, -5000, 5000))) + bound < largest
        error = np.abs((got - exact.hi) - exact.lo) - exact.radius
        ratio = np.where(error <= 0.0, 0.0, error / bound)
    tiny = np.abs(exact.hi) < 2.0**-900  # where float64 would round the difference
    for place in zip(*np.nonzero(judged & ((exact.scale != 0) | tiny)), strict=True):
        if np.isfinite(got[place]):
            distance = _distance(Fraction(float(got[place])), exact[place])
            ratio[place] = distance / Fraction(float(bound[place])) if distance else 0.0
    ratio = np.where(np.isfinite(got), ratio, np.inf)
    return float(np.max(ratio[judged], initial=0.0))


def _distance(value, exact):
    """From the interval of one element; what is below 2^-1900 counts as nothing."""
    if exact.scale < -3000:
        return abs(value)
    low, high = exact.lower_upper(())
    return max(low - value, value - high, Fraction(0))


class Record:
    """The largest error / bound by form, and the problem that gave it."""

    def __init__(self):
        self.largest = {}

    def add(self, form, problem, got, exact, bound):
        ratio = error_over_bound(got, exact, bound)
        if ratio >= self.largest.get(form, (0.0, None))[0]:
            self.largest[form] = ratio, problem
        assert ratio <= 1.0, f"{form}, problem {problem}: error / bound {ratio:.4g}"

    def tell(self, forms):
        """Print what was found; every one of so many forms was tried."""
        assert len(self.largest) == forms
        for form, (ratio, problem) in sorted(self.largest.items()):
            print(f"{ratio:8.4f}  {' '.join(form)}  (problem {problem})")
