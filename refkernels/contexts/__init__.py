"""Contexts: the arithmetics in which a formula is read.

    def softmax(xp, x):
        e = xp.exp(x - xp.pivot(x))
        return e / xp.sum(e)

`xp` is a context (mpmath's word: `mp`, `fp` and `iv` are contexts). The same lines give

    Ball, DoubleDouble, Arb, Rational    certified values, each tier sharper than the one before
    Bound                                how far a right kernel may be from them
    Amplification                        how much relative errors of the inputs may grow
    Doubles                              NumPy's float64, for searches
    CommonErrors                         the same, the error of a row's statistic being one error
    RoundedArithmetic                    a kernel's own roundings
    Shuffled                             at random in float32, as fast as NumPy: for whole trainings
    Unbounded                            special values: binary64 whose infinities are not overflows
    Gradient                             the backward pass, over any of these
    Record                               a graph of nodes: for generated kernels, and to be edited

`context` lists the names in `xp`; `value` holds the operators of a context's arrays. Every context
has all the names, or says in one sentence why a name has no meaning in it. Names are loaded on
first use.
"""

__kernels_of__ = ("kernels.elementary", "kernels.trigonometric")

import importlib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refkernels.contexts.amplification import Amplification
    from refkernels.contexts.arb import Arb
    from refkernels.contexts.ball import Ball
    from refkernels.contexts.bound import Bound
    from refkernels.contexts.common_errors import CommonErrors
    from refkernels.contexts.context import Context
    from refkernels.contexts.double_double import DoubleDouble
    from refkernels.contexts.doubles import Doubles
    from refkernels.contexts.gradient import Gradient
    from refkernels.contexts.rational import Rational
    from refkernels.contexts.record import Record
    from refkernels.contexts.shuffled import Shuffled
    from refkernels.contexts.unbounded import Unbounded
    from refkernels.contexts.value import Mask, Value
    from refkernels.contexts.working import RoundedArithmetic

_HOMES = {"Mask": "value", "RoundedArithmetic": "working"}  # others are called as their modules

__all__ = [
    "Amplification",
    "Arb",
    "Ball",
    "Bound",
    "CommonErrors",
    "Context",
    "DoubleDouble",
    "Doubles",
    "Gradient",
    "Mask",
    "Rational",
    "Record",
    "RoundedArithmetic",
    "Shuffled",
    "Unbounded",
    "Value",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
