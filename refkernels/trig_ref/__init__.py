"""sin, cos and tan: certified values and gradients for every float, and what a kernel owes them.

    sin(x), cos(x), tan(x) -> Enclosure              backward(name, dy, x) -> Enclosure of dy f'(x)
    forward_bound(name, x, format=...)               backward_bound(name, dy, x, format=...)
    forward_condition(name, x)                       backward_condition(name, dy, x)
    forward_plain(name, x, format=...)               backward_plain(name, dy, x, format=...)

How: x is reduced modulo pi/2 with 256 bits of 2/pi (`reduction`), a table and Taylor series in
double-double give sin and cos to 2^-101 of themselves (`kernels`, with the error budget), multiple
precision decides what a question still leaves open (`exact`).
"""

from functools import partial

from refkernels.op import Op
from refkernels.trig_ref.algorithms import backward_plain, forward_plain
from refkernels.trig_ref.bounds import (
    LIMIT,
    LIMIT_SOURCE,
    backward_bound,
    backward_condition,
    forward_bound,
    forward_condition,
)
from refkernels.trig_ref.cases import cases
from refkernels.trig_ref.invariants import INVARIANTS
from refkernels.trig_ref.oracle import backward, cos, sin, tan

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

OPS = tuple(
    Op(
        name=name,
        inputs=("x",),
        outputs=("y",),
        cotangent="dy",
        gradients=("dx",),
        forward=function,
        backward=partial(backward, name),
        forward_bound=partial(forward_bound, name),
        backward_bound=partial(backward_bound, name),
        forward_condition=partial(forward_condition, name),
        backward_condition=partial(backward_condition, name),
        forward_plain=partial(forward_plain, name),
        backward_plain=partial(backward_plain, name),
        cases=partial(cases, name),
        invariants=INVARIANTS[name],
        row_inputs=("x",),
        row_gradients=("dx",),
        elementwise=True,
        limit=LIMIT,
        limit_source=LIMIT_SOURCE,
    )
    for name, function in (("sin", sin), ("cos", cos), ("tan", tan))
)
