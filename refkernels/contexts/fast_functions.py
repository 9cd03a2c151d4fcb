"""FastFunctions: binary32 with the functions of a GPU (`special_functions`) and its division, as
kernels have them that are compiled for speed; everything else as in `Working`.

    e^x = ex2.approx(fl(x log2 e))   log x = fl(lg2.approx(x) ln 2)   a / b = fl(a rcp.approx(b))

Functions that have no instruction are computed as kernels write them (`WRITTEN`), and round as
badly: log(1 + x) for log1p, e^x - 1 for expm1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from refkernels.arithmetic.formats import BINARY32, Format
from refkernels.contexts import special_functions
from refkernels.contexts.composed import Flushed
from refkernels.contexts.value import Value
from refkernels.contexts.working import WorkingValue, data

_EVERY = frozenset(("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "sqrt", "rsqrt"))


class Compiled(NamedTuple):
    """How a kernel is compiled: the functions of the special function unit, whether it divides by
    the approximate reciprocal, and flushes subnormal numbers."""

    fast: frozenset[str]
    divides: bool
    flushes: bool


COMPILED = {
    "--use_fast_math": Compiled(_EVERY, True, True),
    "Triton": Compiled(frozenset(("exp", "exp2", "sqrt", "rsqrt")), True, False),
    "__expf": Compiled(frozenset(("exp", "exp2")), False, False),
    "__expf and __fdividef": Compiled(frozenset(("exp", "exp2")), True, True),
    "tanh.approx": Compiled(frozenset(("tanh",)), False, False),
    "-ftz=true": Compiled(frozenset(), False, True),
}


def _number(xp: Any, digits: str) -> Any:
    return xp.number(Fraction(digits))


def _sigmoid(xp: Any, x: Any) -> Any:
    return xp.number(1) / (1 + xp.exp(-x))


def _tanh_argument(xp: Any, x: Any) -> Any:
    return _number(xp, "0.7978845608028654") * (x + _number(xp, "0.044715") * x * x * x)


WRITTEN: dict[str, dict[str, Callable[..., Any]]] = {
    "log1p": {"log(1 + x)": lambda xp, x: xp.log(1 + x)},
    "expm1": {"e^x - 1": lambda xp, x: xp.exp(x) - 1},
    "tanh": {
        "(e^2x - 1) / (e^2x + 1)": lambda xp, x: (xp.exp(x * 2) - 1) / (xp.exp(x * 2) + 1),
        "1 - 2 / (e^2x + 1)": lambda xp, x: 1 - xp.number(2) / (xp.exp(x * 2) + 1),
        "2 / (1 + e^-2x) - 1": lambda xp, x: xp.number(2) / (1 + xp.exp(x * -2)) - 1,
        "(e^x - e^-x) / (e^x + e^-x)": lambda xp, x: (
            (xp.exp(x) - xp.exp(-x)) / (xp.exp(x) + xp.exp(-x))
        ),
    },
    "sinh": {
        "(e^x - e^-x) / 2": lambda xp, x: _number(xp, "0.5") * (xp.exp(x) - xp.exp(-x)),
    },
    "cosh": {
        "(e^x + e^-x) / 2": lambda xp, x: _number(xp, "0.5") * (xp.exp(x) + xp.exp(-x)),
    },
    "softplus": {
        "log(1 + e^x)": lambda xp, x: xp.log(1 + xp.exp(x)),
        "log(1 + e^x), x above 20": lambda xp, x: xp.where(x < 20, xp.log(1 + xp.exp(x)), x),
        "max(x, 0) + log(1 + e^-|x|)": lambda xp, x: (
            xp.where(x < 0, xp.number(0), x) + xp.log(1 + xp.exp(-abs(x)))
        ),
    },
    "log_sigmoid": {
        "-log(1 + e^-x)": lambda xp, x: -xp.log(1 + xp.exp(-x)),
        "log(1 / (1 + e^-x))": lambda xp, x: xp.log(_sigmoid(xp, x)),
        "min(x, 0) - log(1 + e^-|x|)": lambda xp, x: (
            xp.minimum(x, xp.number(0)) - xp.log(1 + xp.exp(-abs(x)))
        ),
    },
    "sigmoid": {"1 / (1 + e^-x)": _sigmoid},
    "silu": {
        "x / (1 + e^-x)": lambda xp, x: x / (1 + xp.exp(-x)),
        "x (1 / (1 + e^-x))": lambda xp, x: x * _sigmoid(xp, x),
    },
    "swiglu": {
        "a (1 / (1 + e^-a)) b": lambda xp, a, b: a * _sigmoid(xp, a) * b,
        "a / (1 + e^-a) b": lambda xp, a, b: a / (1 + xp.exp(-a)) * b,
    },
    "mish": {
        "x tanh(log(1 + e^x))": lambda xp, x: x * xp.tanh(xp.log(1 + xp.exp(x))),
    },
    "gelu": {
        "x (1 + erf(x / √2)) / 2": lambda xp, x: (
            _number(xp, "0.5") * x * (1 + xp.erf(x * _number(xp, "0.7071067811865476")))
        ),
    },
    "gelu_tanh": {
        "x (1 + tanh(z)) / 2": lambda xp, x: (
            _number(xp, "0.5") * x * (1 + xp.tanh(_tanh_argument(xp, x)))
        ),
        "x σ(2z)": lambda xp, x: x * _sigmoid(xp, _tanh_argument(xp, x) * 2),
    },
    "tan": {"sin(x) / cos(x)": lambda xp, x: xp.sin(x) / xp.cos(x)},
}
"""How kernels write functions, from those that have an instruction."""


class FastFunctions(Flushed):
    """Arithmetic in binary32, the functions and divisions as `compiled`; `options` are those of
    `Working`."""

    def __init__(self, format: Format | str, compiled: Compiled, **options: Any) -> None:
        super().__init__(BINARY32, storage=format, **options)
        self.name = f"FastFunctions({self.storage})"
        self.compiled = compiled

    def function(self, name: str, a: Value) -> WorkingValue:
        fast, _, flushes = self.compiled
        if name in fast:
            forms = special_functions.FAST[name]
            return self.value(forms[0 if flushes else -1](data(a)))
        if name in WRITTEN and ("exp" in fast or name != "tanh"):
            written: Any = next(iter(WRITTEN[name].values()))(self, a)
            return self.value(data(written))
        return super().function(name, a)

    def divide(self, a: Value, b: Value) -> WorkingValue:
        if not self.compiled.divides:
            return super().divide(a, b)
        return self.value(self.times(data(a), special_functions.rcp(data(b))))

    def _flushed(self, array: Any) -> Any:
        return super()._flushed(array) if self.compiled.flushes else array
