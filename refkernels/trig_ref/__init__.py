"""sin, cos, tan, asin, acos, atan, sinpi and cospi: certified values and gradients for every float.

    sin(x), ..., cospi(x) -> Enclosure               backward(name, dy, x) -> Enclosure of dy f'(x)
    forward_bound(name, x, format=...)               backward_bound(name, dy, x, format=...)
    forward_condition(name, x)                       backward_condition(name, dy, x)
    forward_plain(name, x, format=...)               backward_plain(name, dy, x, format=...)

The kernels are in `kernels.trigonometric`. float32 and narrower inputs go to a branch-free float64
kernel (`float64`, `inverse_float64`, `turns`) with a relative error of 2^-49. float64 inputs, and
elements that stay open, go to double-doubles: x is reduced modulo pi/2 with 256 bits of 2/pi
(`reduction`), and a table and Taylor series give sin and cos (`values`) and atan (`inverse`).
Multiple precision decides the elements that are still open (`exact`).
"""

__kernels_of__ = ("kernels.trigonometric", "elementwise")

from refkernels.elementwise.ops import Family
from refkernels.trig_ref.functions import FUNCTIONS, acos, asin, atan, cos, cospi, sin, sinpi, tan

__all__ = [
    "OPS",
    "acos",
    "asin",
    "atan",
    "backward",
    "backward_bound",
    "backward_condition",
    "backward_plain",
    "cases",
    "cos",
    "cospi",
    "forward_bound",
    "forward_condition",
    "forward_plain",
    "sin",
    "sinpi",
    "tan",
]

_FAMILY = Family("trig_ref", FUNCTIONS)
OPS = _FAMILY.ops
backward = _FAMILY.backward
backward_bound = _FAMILY.backward_bound
backward_condition = _FAMILY.backward_condition
backward_plain = _FAMILY.backward_plain
cases = _FAMILY.cases
forward_bound = _FAMILY.forward_bound
forward_condition = _FAMILY.forward_condition
forward_plain = _FAMILY.forward_plain
