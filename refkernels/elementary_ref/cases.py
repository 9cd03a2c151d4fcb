"""Cases of the elementary functions: every binade, the hard places, specials, subnormals.

Each builds x and a cotangent dy in the given dtype; random numbers come from the seed in the name.
"""

import math
from functools import partial

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.elementwise.cases import binades, make, specials, subnormals
from refkernels.kernels.real_function import Doubles
from refkernels.op import Case, Direction

_POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt")
_ALGEBRAIC = ("sqrt", "rsqrt", "reciprocal")
_ERROR_FUNCTIONS = ("erf", "erfc", "gelu", "gelu_tanh")
_FLAT = {"silu": -1.2784645427610738, "gelu": -0.7517915246935645, "gelu_tanh": -0.7524614220710163}
"""Where f' is 0."""
# At infinities and at the ends of a format, a kernel that computes the slope as a separate product
# has no single right answer: NaN and the limit are both acceptable.
FORWARD: tuple[Direction, ...] = ("forward",)
_MODERATE = 259  # an odd length leaves a remainder in every vector width


def cases_of(name: str) -> list[Case]:
    """All cases of one function."""
    return [
        make(name, "binades", {"n": 1000}, partial(_binades, name)),
        make(name, "hard_places", {"n": 800}, partial(_hard_places, name)),
        make(name, "subnormals", {"n": 256}, partial(_subnormals, name)),
        make(name, "specials", {}, specials, directions=FORWARD),
        make(name, "invariance", {"n": _MODERATE}, partial(_moderate, name)),
    ]


def _signed(name: str, x: Doubles) -> Doubles:
    """x with signs that stay in the domain: positive for logarithms and roots, above -1 for
    log1p."""
    if name in _POSITIVE:
        return np.abs(x)
    return np.where(x <= -1.0, -x, x) if name == "log1p" else x


def _binades(name: str, format: Format, generator: np.random.Generator) -> Doubles:
    """Equally many numbers from each binade: all binades for logarithms and powers, else those from
    2^-20 to where the function, or its tail, is constant or leaves the format."""
    if name in _POSITIVE or name in ("reciprocal", "log1p"):
        return _signed(name, binades(format.emin, format.emax, 1000, format, generator))
    if name in _ERROR_FUNCTIONS:
        edge = math.ceil(math.log2(math.sqrt(-2.0 * math.log(format.min_subnormal))))
    else:
        edge = math.ceil(math.log2(math.log(2.0) * (2.0 - format.emin + format.p)))
    return binades(-20, edge, 1000, format, generator)


def _subnormals(name: str, format: Format, generator: np.random.Generator) -> Doubles:
    return _signed(name, subnormals(256, format, generator))


def _moderate(name: str, format: Format, generator: np.random.Generator) -> Doubles:
    return _signed(name, generator.uniform(-8.0, 8.0, _MODERATE))


def _hard_places(name: str, format: Format, generator: np.random.Generator) -> Doubles:
    """Numbers of the format around the function's own hard places, most of them within 16 ulp."""
    centers = np.array(_centers(name, format))
    nearest = formats.round_to(generator.choice(centers, 800), format).astype(np.float64)
    _, exponent = np.frexp(nearest)
    ulp = np.ldexp(1.0, np.maximum(exponent - 1, format.emin) - format.p + 1)
    steps = np.rint(np.exp(generator.uniform(0.0, math.log(16.0), 800)) - 1.0)
    with np.errstate(over="ignore"):  # next to the largest float64
        return _signed(name, nearest + generator.choice([-1.0, 1.0], 800) * steps * ulp)


def _centers(name: str, format: Format) -> list[float]:
    if name in _ERROR_FUNCTIONS:
        return _tails(name, format)
    if name in ("log", "log2", "log10"):
        powers = [10.0**k for k in range(-4, 5)]
        return [1.0, 1.0, 1.0, 2.0, 0.5, math.e, format.max, format.min_normal, *powers]
    if name == "log1p":
        return [-1.0, -0.5, -format.u, format.u, 2.0 * format.u, 1.0, format.max]
    if name in _ALGEBRAIC:
        edges = [format.min_normal, 1.0 / format.min_normal, format.max]
        return [1.0, 2.0, 3.0, 4.0, 9.0, 0.25, 1.0 - format.u, *edges]
    high, low = math.log(format.max), math.log(format.min_subnormal)
    saturated = [math.log(2.0 / format.u) / 2.0, -math.log(format.u)]
    around = [high, low, math.log(format.min_normal), *saturated, math.log(2.0) / 2.0, format.u]
    if name == "exp2":
        return [x / math.log(2.0) for x in around] + [0.5, 1.0]
    if name == "silu":
        return [*around, _FLAT["silu"], _FLAT["silu"], -saturated[1]]
    if name == "softplus":
        return [*around, 20.0, -saturated[1]]
    return [*around, *(-x for x in saturated), -math.log(2.0) / 2.0]


def _tails(name: str, format: Format) -> list[float]:
    """Where tails are lost beside 1, become subnormal and vanish; where methods change, f' is 0 or
    arguments equal an ulp of 1."""
    logs = [-math.log(small) for small in (format.u, format.min_normal, format.min_subnormal)]
    if name == "gelu_tanh":
        edges = [_where_argument_is(log) for log in logs]
    else:
        edges = [math.sqrt(log * (2.0 if name == "gelu" else 1.0)) for log in logs]
    beside_zero = [format.u, -format.u, 2.0**-14, -(2.0**-14)]
    flat = [_FLAT[name]] * 4 if name in _FLAT else []
    middle = [0.5, 0.84375, 1.0, 1.25, 2.0]  # libraries change their method near some of these
    return [*edges, *(-x for x in edges), *middle, *(-x for x in middle), *flat, *beside_zero]


def _where_argument_is(v: float) -> float:
    """x with 2 sqrt(2/pi) (x + 0.044715 x^3) = v, by Newton's method from above."""
    x = v
    for _ in range(60):
        argument = 1.5957691216057308 * (x + 0.044715 * x**3) - v
        x -= argument / (1.5957691216057308 * (1.0 + 0.134145 * x * x))
    return x
