"""sin, cos and tan: certified values and gradients for every float, and what a kernel owes them.

    sin(x), cos(x), tan(x) -> Enclosure              backward(name, dy, x) -> Enclosure of dy f'(x)
    forward_bound(name, x, format=...)               backward_bound(name, dy, x, format=...)
    forward_condition(name, x)                       backward_condition(name, dy, x)
    forward_plain(name, x, format=...)               backward_plain(name, dy, x, format=...)

How: x is reduced modulo pi/2 with 256 bits of 2/pi (`reduction`), a table and Taylor series in
double-double give sin and cos to 2^-101 of themselves (`kernels`, with the error budget), multiple
precision decides what a question still leaves open (`exact`).
"""

from refkernels.elementwise.ops import Family
from refkernels.trig_ref.functions import FUNCTIONS, cos, sin, tan

__all__ = [
    "OPS",
    "backward",
    "backward_bound",
    "backward_condition",
    "backward_plain",
    "cases",
    "cos",
    "forward_bound",
    "forward_condition",
    "forward_plain",
    "sin",
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
