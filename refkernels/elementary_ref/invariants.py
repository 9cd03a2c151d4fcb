"""The invariants of the elementary functions."""

from refkernels.elementwise.invariants import (
    CONTRACTS,
    STEEP,
    at_least_x,
    at_most_x,
    rising,
    sign,
    within,
)
from refkernels.op import Invariant

_GELU = (
    within("y >= -0.171", -0.171),  # below both minima, -0.17004, by more than an ulp
    sign("y never has the other sign than x"),
    at_most_x("|y| <= |x|", sizes=True),
)


def _sign(name: str) -> Invariant:
    return sign(f"{name}(x) never has the other sign than x")


INVARIANTS: dict[str, tuple[Invariant, ...]] = {
    "exp": (within("exp x >= 0", 0.0), rising("exp")),
    "exp2": (within("2^x >= 0", 0.0), rising("exp2")),
    "expm1": (within("expm1 x >= -1", -1.0), at_least_x("expm1 x >= x"), rising("expm1")),
    "log": (rising("log"),),
    "log2": (rising("log2"),),
    "log10": (rising("log10"),),
    "log1p": (at_most_x("log1p x <= x"), rising("log1p")),
    "sinh": (_sign("sinh"), rising("sinh")),
    "cosh": (within("cosh x >= 1", 1.0),),
    "tanh": (within("|tanh x| <= 1", -1.0, 1.0), _sign("tanh"), rising("tanh"), CONTRACTS),
    "sigmoid": (within("0 <= sigmoid x <= 1", 0.0, 1.0), rising("sigmoid"), CONTRACTS),
    # silu's minimum, -0.27846, rounded down to bfloat16 is -0.2793
    "silu": (within("silu x >= -0.2795", -0.2795), _sign("silu")),
    "softplus": (
        within("softplus x >= 0", 0.0),
        at_least_x("softplus x >= x"),
        rising("softplus"),
        CONTRACTS,
    ),
    "sqrt": (within("sqrt x >= 0", 0.0), rising("sqrt")),
    "rsqrt": (sign("1 / sqrt x > 0 for x > 0"),),
    "reciprocal": (_sign("reciprocal"),),
    "erf": (
        within("|erf x| <= 1", -1.0, 1.0),
        sign("erf x never has the other sign than x"),
        rising("erf"),
        STEEP,
    ),
    "erfc": (within("0 <= erfc x <= 2", 0.0, 2.0), STEEP),
    "gelu": _GELU,
    "gelu_tanh": _GELU,
}
