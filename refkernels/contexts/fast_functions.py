"""FastFunctions: `RoundedArithmetic` in binary32 with the functions of a GPU and its division.

    e^x = ex2.approx(fl(x log2 e))   log x = fl(lg2.approx(x) ln 2)   a / b = fl(a rcp.approx(b))

Functions that have no instruction are rounded once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from refkernels.arithmetic.formats import BINARY32, Format
from refkernels.contexts import special_functions
from refkernels.contexts.composed import Flushed
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedValue, data

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


class FastFunctions(Flushed):
    """Arithmetic in binary32, the functions and divisions as `compiled`. `called`: the names of
    those that were computed."""

    def __init__(self, format: Format | str, compiled: Compiled, **options: Any) -> None:
        super().__init__(BINARY32, storage=format, **options)
        self.compiled, self.called = compiled, set[str]()

    def function(self, name: str, a: Value) -> RoundedValue:
        self.called.add(name)
        if name not in self.compiled.fast:
            return super().function(name, a)
        form = special_functions.FAST[name][0 if self.compiled.flushes else -1]
        return self.value(form(data(a)))

    def divide(self, a: Value, b: Value) -> RoundedValue:
        self.called.add("divide")
        if not self.compiled.divides:
            return super().divide(a, b)
        return self.value(self.times(data(a), special_functions.rcp(data(b))))

    def _flushed(self, array: Any) -> Any:
        return super()._flushed(array) if self.compiled.flushes else array
