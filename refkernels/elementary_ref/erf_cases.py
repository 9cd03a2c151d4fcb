"""Cases and invariants of erf, erfc, gelu and gelu_tanh.

Each case builds x and a cotangent dy in the given dtype; random numbers come from the seed in the
name. Every correctly or faithfully rounded kernel satisfies the invariants.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.elementary_ref.cases import FORWARD
from refkernels.elementary_ref.invariants import falling, other_sign, outside
from refkernels.elementwise.cases import binades, make, specials, subnormals
from refkernels.elementwise.function import Doubles
from refkernels.op import Arrays, Case, Invariant

Mask = npt.NDArray[np.bool_]
_MODERATE = 259  # an odd length leaves a remainder in every vector width
_HARD = 800
_FLAT = {"gelu": -0.7517915246935645, "gelu_tanh": -0.7524614220710163}  # where f' is 0
_BELOW_LEAST = -0.171  # below both gelus' minima, -0.17004, by more than an ulp of any format here
_STEEPEST = 1.15  # erf' is at most 2/sqrt(pi) = 1.1284; with room for an ulp of any format here


def cases_of(name: str) -> list[Case]:
    """All cases of one function."""
    return [
        make(name, "binades", {"n": 1000}, _binades),
        make(name, "hard_places", {"n": _HARD}, partial(_hard_places, name)),
        make(name, "subnormals", {"n": 256}, partial(subnormals, 256)),
        make(name, "specials", {}, specials, directions=FORWARD),
        make(name, "invariance", {"n": _MODERATE}, _moderate),
    ]


def _binades(format: Format, generator: np.random.Generator) -> Doubles:
    """Equally many numbers from each binade, from 2^-20 to where every tail has underflowed."""
    edge = math.ceil(math.log2(math.sqrt(-2.0 * math.log(format.min_subnormal))))
    return binades(-20, edge, 1000, format, generator)


def _moderate(format: Format, generator: np.random.Generator) -> Doubles:
    return generator.uniform(-8.0, 8.0, _MODERATE)


def _hard_places(name: str, format: Format, generator: np.random.Generator) -> Doubles:
    """Numbers of the format around the function's own hard places, most of them within 16 ulp."""
    centers = np.array(_centers(name, format))
    nearest = formats.round_to(generator.choice(centers, _HARD), format).astype(np.float64)
    _, exponent = np.frexp(nearest)
    ulp = np.ldexp(1.0, np.maximum(exponent - 1, format.emin) - format.p + 1)
    steps = np.rint(np.exp(generator.uniform(0.0, math.log(16.0), _HARD)) - 1.0)
    return nearest + generator.choice([-1.0, 1.0], _HARD) * steps * ulp


def _centers(name: str, format: Format) -> list[float]:
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


def _larger_than_x(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    return np.abs(to_float64(got)) > np.abs(to_float64(inputs["x"]))


def _much_larger_than_dy(got: npt.NDArray[Any], inputs: Arrays, params: Mapping[str, Any]) -> Mask:
    dy = np.abs(to_float64(inputs["dy"]))
    normal = dy >= formats.of(np.asarray(inputs["dy"])).min_normal
    size = np.abs(to_float64(got))
    return normal & (size / _STEEPEST > dy) & (size < math.inf)


def _forward(name: str, statement: str, violated: Callable[..., Mask]) -> Invariant:
    return Invariant(name, statement, "forward", "y", violated)


_STEEP = Invariant(
    "slope", "|dx| <= 1.15 |dy| where it does not overflow", "backward", "dx", _much_larger_than_dy
)
_GELU = (
    _forward("range", "y >= -0.171", outside(_BELOW_LEAST, math.inf)),
    _forward("sign", "y never has the other sign than x", other_sign),
    _forward("at_most_x", "|y| <= |x|", _larger_than_x),
)
INVARIANTS: dict[str, tuple[Invariant, ...]] = {
    "erf": (
        _forward("range", "|erf x| <= 1", outside(-1.0, 1.0)),
        _forward("sign", "erf x never has the other sign than x", other_sign),
        Invariant("rising", "erf never falls by two ulp", "forward", "y", falling, between=True),
        _STEEP,
    ),
    "erfc": (_forward("range", "0 <= erfc x <= 2", outside(0.0, 2.0)), _STEEP),
    "gelu": _GELU,
    "gelu_tanh": _GELU,
}
