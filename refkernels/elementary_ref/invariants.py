"""The invariants of the elementary functions.

Faithful roundings err by less than one ulp each, so answers that fall by two ulp where the function
rises cannot both be faithful.
"""

import math

import numpy as np

from refkernels.arithmetic.formats import Format
from refkernels.elementwise.invariants import CONTRACTS, Mask, backward, forward, sign, within
from refkernels.kernels.real_function import Doubles
from refkernels.op import Invariant


def _at_least_x(statement: str) -> Invariant:
    return forward("at_least_x", statement, lambda y, x, _: y < x)


def _at_most_x(statement: str, sizes: bool = False) -> Invariant:
    """y <= x; of `sizes`, |y| <= |x|."""
    return forward(
        "at_most_x", statement, lambda y, x, _: np.abs(y) > np.abs(x) if sizes else y > x
    )


def _rising(name: str) -> Invariant:
    """No answer is two ulp or more below the answer to a smaller argument."""
    return forward("rising", f"{name} never falls by two ulp", _falling, between=True)


def _falling(got: Doubles, arguments: Doubles, format: Format) -> Mask:
    x, y = arguments.reshape(-1), got.reshape(-1)
    order = np.argsort(x, kind="stable")
    order = order[np.isfinite(x[order]) & ~np.isnan(y[order])]
    sorted_x, sorted_y = x[order], y[order]
    highest = np.maximum.accumulate(sorted_y) if order.size else sorted_y
    first = np.searchsorted(sorted_x, sorted_x)  # the first of equal arguments
    before = np.where(first > 0, highest[np.maximum(first - 1, 0)], -np.inf)
    with np.errstate(invalid="ignore"):
        _, exponent = np.frexp(np.where(np.isfinite(before), before, 0.0))
        ulp = np.ldexp(1.0, np.maximum(exponent - 1, format.emin) - format.p + 1)
        fallen = before - sorted_y >= 2.0 * ulp
    mask = np.zeros(x.size, np.bool_)
    mask[order] = fallen
    return mask.reshape(np.shape(got))


def _sign(name: str) -> Invariant:
    return sign(f"{name}(x) never has the other sign than x")


# erf' is at most 2/sqrt(pi) = 1.1284; with room for an ulp of any format here
_STEEP = backward(
    "slope",
    "|dx| <= 1.15 |dy| where it does not overflow",
    lambda dx, dy, normal, x: normal & (dx / 1.15 > dy) & (dx < math.inf),
)
_GELU = (
    within("y >= -0.171", -0.171),  # below both minima, -0.17004, by more than an ulp
    sign("y never has the other sign than x"),
    _at_most_x("|y| <= |x|", sizes=True),
)


INVARIANTS: dict[str, tuple[Invariant, ...]] = {
    "exp": (within("exp x >= 0", 0.0), _rising("exp")),
    "exp2": (within("2^x >= 0", 0.0), _rising("exp2")),
    "expm1": (within("expm1 x >= -1", -1.0), _at_least_x("expm1 x >= x"), _rising("expm1")),
    "log": (_rising("log"),),
    "log2": (_rising("log2"),),
    "log10": (_rising("log10"),),
    "log1p": (_at_most_x("log1p x <= x"), _rising("log1p")),
    "sinh": (_sign("sinh"), _rising("sinh")),
    "cosh": (within("cosh x >= 1", 1.0),),
    "tanh": (within("|tanh x| <= 1", -1.0, 1.0), _sign("tanh"), _rising("tanh"), CONTRACTS),
    "sigmoid": (within("0 <= sigmoid x <= 1", 0.0, 1.0), _rising("sigmoid"), CONTRACTS),
    # silu's minimum, -0.27846, rounded down to bfloat16 is -0.2793
    "silu": (within("silu x >= -0.2795", -0.2795), _sign("silu")),
    "softplus": (
        within("softplus x >= 0", 0.0),
        _at_least_x("softplus x >= x"),
        _rising("softplus"),
        CONTRACTS,
    ),
    "sqrt": (within("sqrt x >= 0", 0.0), _rising("sqrt")),
    "rsqrt": (sign("1 / sqrt x > 0 for x > 0"),),
    "reciprocal": (_sign("reciprocal"),),
    "erf": (
        within("|erf x| <= 1", -1.0, 1.0),
        sign("erf x never has the other sign than x"),
        _rising("erf"),
        _STEEP,
    ),
    "erfc": (within("0 <= erfc x <= 2", 0.0, 2.0), _STEEP),
    "gelu": _GELU,
    "gelu_tanh": _GELU,
}
