"""sin, cos, tan, asin, acos, atan, sinpi and cospi: certified values and gradients for every float.

    sin(x), ..., cospi(x) -> Enclosure               backward(name, dy, x) -> Enclosure of dy f'(x)
    forward_bound(name, x, format=...)               backward_bound(name, dy, x, format=...)
    forward_condition(name, x)                       backward_condition(name, dy, x)
    forward_plain(name, x, format=...)               backward_plain(name, dy, x, format=...)

The kernels are in `kernels.trigonometric`. float32 and narrower inputs go to a branch-free float64
kernel (`float64`, `inverse_float64`, `turns`) with a relative error of 2^-49. float64 inputs, and
elements that stay open, go to double-doubles: x is reduced modulo pi/2 with 256 bits of 2/pi
(`reduction`), and a table and Taylor series give sin and cos (`values`) and atan (`inverse`). The
elements that are still open, and all gradients, are read from formulas (`ops.refine`; `forms`).
"""

from functools import partial

from refkernels.elementwise import bounds, oracle, plain
from refkernels.elementwise.ops import STANDARD, Family, named
from refkernels.trig_ref.functions import FUNCTIONS

_FAMILY = Family("trig_ref", FUNCTIONS)
__all__ = ["OPS", *named(_FAMILY)]
OPS = _FAMILY.ops
backward = _FAMILY.by_name(oracle.backward)
backward_bound = _FAMILY.by_name(bounds.backward_bound)
backward_condition = _FAMILY.by_name(bounds.backward_condition)
backward_plain = _FAMILY.by_name(plain.backward_plain)
cases = _FAMILY.cases
forward_bound = _FAMILY.by_name(bounds.forward_bound)
forward_condition = _FAMILY.by_name(bounds.forward_condition)
forward_plain = _FAMILY.by_name(plain.forward_plain)
_like_sin, _like_asin = (partial(_FAMILY.public, like=name) for name in ("sin", "asin"))

sin = _FAMILY.public(
    "sin",
    "sin x, in radians",
    "Relative radius <= 2^-101; sin(±0) = ±0 exactly; infinities and NaN give NaN",
    f"{STANDARD}; for the reduction Payne and Hanek (1983), doi:10.1145/1057600.1057602",
)
cos = _like_sin("cos", "cos x", "cos(±0) = 1 exactly")
tan = _like_sin("tan", "tan x", "Twice the radius; tan(±0) = ±0 exactly")
asin = _like_sin(
    "asin",
    "asin x, the angle in [-pi/2, pi/2] whose sine is x",
    "Relative radius <= 2^-99; asin(±0) = ±0 exactly; NaN for |x| > 1",
)
acos = _like_asin("acos", "acos x, the angle in [0, pi] whose cosine is x", "acos(1) = +0 exactly")
atan = _like_asin(
    "atan",
    "atan x, the angle in [-pi/2, pi/2] whose tangent is x",
    "atan(±inf) encloses ±pi/2",
)
sinpi = _like_sin("sinpi", "sin(pi x)", "Exact at multiples of 1/2, with sinpi(±n) = ±0")
cospi = _like_sin("cospi", "cos(pi x)", "Exact at multiples of 1/2, with cospi(n + 1/2) = +0")
