"""A hunt for false or needlessly open answers where functions are extreme: arguments, and checks.

`hunt(op, direction, dtype, certify, n, rng)` asks one question of n hard elements and holds every
interval and every certified rounding against the truth; it raises AssertionError with the input.
"""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from anchored import VALUES, Exact

from refkernels import elementary_ref, trig_ref
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.op import DTYPES
from refkernels.trig_ref.points import multiples

OPS = {op.name: op for op in (*elementary_ref.OPS, *trig_ref.OPS)}
QUESTIONS: tuple[Any, ...] = (
    "enclosure",
    *(("rounding", name) for name in DTYPES),
    *(("ulp", "float32", 2.0**-20), ("ulp", "float64", 2.0**-70), ("ulp", "float64", 1e-300)),
)
# Where kernels change their ways, and functions theirs; and the ends of the formats.
_PLACES = [
    *(0.005, 0.5, 1.0, 1.2784645427610738, 0.7517915246935645, 0.7524614220710163, 12.5, 17.0),
    *(20.0, 25.0, 27.3, 36.0, 38.0, 39.0, 40.0, 76.2, 150.0, 624.0, 700.0, 709.78, 745.13, 1400.0),
    *(17000.0, 3.4028234663852886e38, 1.7976931348623157e308, 2.0, 4.0, 32.0, 45.254833995939045),
    *(0.0054, 1 / 128, 0.7071067811865476, 37.4, 38.8, 1023.0),
    *(2.0**k for k in (-1074, -1022, -960, -480, -250, -200, -149, -60, -54, -27)),
    *(2.0**k for k in (10, 14, 20, 29, 31)),
]
assert set(OPS) == set(VALUES)


def arguments(format: Format, n: int, rng: np.random.Generator) -> np.ndarray:
    """n finite nonzero float64 of the format, mostly where something is extreme."""
    lowest = format.emin - format.p + 1
    kind = rng.integers(0, 8, n)
    narrow = rng.choice([8, 11, 24], n)
    whole = rng.integers(2**52, 2**53, n) / 2.0**52
    middle = np.ldexp(np.floor(np.ldexp(whole, narrow - 1)) + 0.5, 1 - narrow)  # of a format
    power = rng.uniform(lowest, format.emax + 1, n)
    exponent = np.floor(np.where(rng.random(n) < 0.5, power, rng.uniform(-60, 40, n)))
    with np.errstate(over="ignore", under="ignore"):
        place = rng.choice(_PLACES, n) * (
            1 + rng.choice([0.0, 1.0, -1.0], n) * 2.0 ** -rng.integers(1, 53, n)
        )
        quarters = rng.integers(1, 2 ** rng.integers(2, 40, n))
        turned = np.where(rng.random(n) < 0.5, multiples(quarters.tolist()), quarters / 4)
        turned = turned * (1 + rng.integers(-2, 3, n) * 2.0**-52)
        x = np.select(
            [kind == k for k in range(7)],
            [
                np.exp2(rng.uniform(10, format.emax + 1, n)),
                np.ldexp(middle, exponent.astype(int)),
                np.ldexp(rng.integers(1, 2 ** (format.p - 1), n).astype(float), lowest),
                place,
                np.exp2(-rng.uniform(0, -lowest, n)),
                rng.uniform(0, 1, n) * 10.0 ** rng.integers(0, 4, n),
                turned,
            ],
            np.ldexp(whole, -rng.integers(0, 64, n)),
        )
    x = formats.round_to(x * rng.choice([-1.0, 1.0], n), format).astype(np.float64)
    usual = rng.uniform(0.1, 10.0, n)
    usual = formats.round_to(usual, format).astype(np.float64)
    return np.where(np.isfinite(x) & (x != 0.0), x, usual)


def inside(name: str, x: np.ndarray, direction: str) -> np.ndarray:
    """Arguments of the domain, without poles."""
    if name in ("log", "log2", "log10", "sqrt", "rsqrt"):
        return np.abs(x)
    if name == "log1p":
        return np.where(x > -1.0, x, np.abs(x))
    if name in ("asin", "acos"):
        with np.errstate(over="ignore"):
            x = np.where(np.abs(x) <= 1.0, x, 1.0 / x)
        return np.where((np.abs(x) == 1.0) & (direction == "backward"), 0.5, x)
    return x


def hunt(
    name: str, direction: str, dtype: str, certify: Any, n: int, rng: np.random.Generator
) -> Counter[str]:
    """How many enclosures and certified roundings were held against the truth."""
    format = formats.get(dtype)
    x = formats.round_to(inside(name, arguments(format, n, rng), direction), format)
    wide = x.astype(np.float64)
    if direction == "forward":
        enclosure = OPS[name].forward(x, certify=certify)
        truths = [Exact(name, value) for value in wide.tolist()]
    else:
        dy = np.where(rng.random(n) < 0.3, 1.0, arguments(format, n, rng))
        dy = formats.round_to(dy, format)
        enclosure = OPS[name].backward(dy, x, certify=certify)
        pairs = zip(wide.tolist(), dy.astype(np.float64).tolist(), strict=True)
        truths = [Exact(name, value, factor) for value, factor in pairs]
    if certify != "enclosure" and certify[0] == "ulp":
        reachable = max(certify[2], 2.0**-50)  # two float64 have no bits for more
        wide_ones = ~(enclosure.uncertainty(certify[1]) <= reachable)
        assert not wide_ones.any(), (name, direction, dtype, certify, wide[wide_ones])
    counts: Counter[str] = Counter()
    for i, truth in enumerate(truths):
        place = name, direction, dtype, certify, truth.x.hex(), float(truth.factor).hex()
        assert holds(enclosure, i, truth), place
        counts["enclosures"] += 1
    for output in DTYPES:
        values, certified = enclosure.round(output)
        if certify == ("rounding", output):
            assert certified.all(), (name, direction, dtype, certify, wide[~certified])
        for i in np.flatnonzero(certified):
            place = (
                name,
                direction,
                dtype,
                certify,
                truths[i].x.hex(),
                float(truths[i].factor).hex(),
            )
            assert rounds_to(float(values[i]), formats.get(output), truths[i]), (*place, output)
            counts["roundings"] += 1
    return counts


def holds(enclosure: Enclosure, i: int, truth: Exact) -> bool:
    """Whether the value lies strictly inside the interval, or is what it says exactly."""
    hi, lo, radius, scale = (
        getattr(enclosure, part)[i].item() for part in ("hi", "lo", "radius", "scale")
    )
    if math.isinf(hi):
        return radius == math.inf and truth.side_of(int(math.copysign(1, hi)), 2000) == np.sign(hi)
    if hi + lo != hi:
        return False
    middle, reach = Fraction(hi) + Fraction(lo), Fraction(radius)
    if not reach:
        return _side(truth, middle, scale) == 0
    return _side(truth, middle - reach, scale) > 0 > _side(truth, middle + reach, scale)


def _side(truth: Exact, value: Fraction, scale: int) -> int:
    return truth.side_of(value.numerator, scale - value.denominator.bit_length() + 1)


def rounds_to(value: float, format: Format, truth: Exact) -> bool:
    """Whether the truth, rounded to nearest with ties to even, is that number of the format."""
    sign = math.copysign(1.0, value)
    if truth.side_of(0, 0) * sign < 0:
        return False
    lowest = format.emin - format.p + 1
    size = abs(value)
    if size == math.inf:
        return (
            truth.side_of(int(sign) * (2 ** (format.p + 1) - 1), format.emax - format.p) * sign >= 0
        )
    power = max(math.frexp(size)[1] - format.p, lowest) if size else lowest
    units = int(math.ldexp(size, -power))
    assert math.ldexp(units, power) == size
    narrow = units == 2 ** (format.p - 1) and power > lowest
    below = truth.side_of(int(sign) * (4 * units - (1 if narrow else 2)), power - 2) * sign
    above = truth.side_of(int(sign) * (4 * units + 2), power - 2) * sign
    even = units % 2 == 0
    return (below > 0 or (even and below == 0) or units == 0) and (
        above < 0 or (even and above == 0)
    )
