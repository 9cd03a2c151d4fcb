"""Doubles: a formula in NumPy's float64, as fast as it comes.

For searches, which read a formula thousands of times and ask the oracle about what they find. Sums
and products of matrices are in NumPy's own order, functions are NumPy's and the C library's. No
kernel is modelled by it, and nothing is certified.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas, formats
from refkernels.contexts.context import FUNCTIONS, Context, Index
from refkernels.contexts.value import Mask, Value
from refkernels.contexts.working import RoundedArithmetic, RoundedValue, data

Arrays = npt.NDArray[np.float64]


def _each(function: Callable[[float], float]) -> Callable[[Arrays], Arrays]:
    """The array function of a function of numbers."""
    apply = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(apply(x), np.float64)


NUMPY: dict[str, Callable[[Arrays], Arrays]] = {
    **{name: getattr(np, name) for name in FUNCTIONS if hasattr(np, name)},
    "atan": np.arctan,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
}
"""Every function of float64 arrays, as NumPy or the C library computes it."""


class Doubles(RoundedArithmetic):
    """NumPy's float64."""

    def __init__(self) -> None:
        super().__init__("float64")
        self.name = "Doubles"

    def primitive(self, name: str, a: Value) -> RoundedValue:
        with np.errstate(all="ignore"):
            return self.value(NUMPY[name](data(a)))

    library, welford = Context.library, Context.welford  # type: ignore[assignment]

    def sum(self, a: Value, axis: int = -1) -> RoundedValue:
        return self._with(lambda part: np.sum(part, axis=axis, keepdims=True), a)

    def matmul(self, a: Value, b: Value) -> RoundedValue:
        return self._with(blas.product, a, b)

    def scatter_add(self, a: Value, index: Index, length: int) -> RoundedValue:
        if (rows := data(a)).ndim == 1:
            return self.value(np.bincount(index.reshape(-1), rows, length))
        total = np.zeros((length, *rows.shape[1:]))
        with np.errstate(all="ignore"):
            np.add.at(total, index.reshape(-1), rows)
        return self.value(total)

    def prod(self, a: Value, axis: int = -1) -> RoundedValue:
        return self._with(lambda part: np.prod(part, axis=axis, keepdims=True), a)


def on_plain_arrays() -> Any:
    """`Doubles` whose values are NumPy's arrays themselves, for a graph that is read thousands of
    times: making a value costs several times an operation on a thousand numbers."""
    xp = Doubles()
    vars(xp).update(_OF_ARRAYS)
    return xp


def _by_values(name: str, *given: Any, **options: Any) -> Any:
    """The primitive of `Doubles` of that name, of arrays."""
    arrays = (isinstance(x, np.ndarray | np.float64) and x.dtype == np.float64 for x in given)
    entered = (RoundedValue(_XP, x) if is_x else x for x, is_x in zip(given, arrays, strict=True))
    result = getattr(_XP, name)(*entered, **options)
    return result.data if isinstance(result, RoundedValue) else result


def _reduced(ufunc: Any) -> Callable[..., Any]:
    return lambda a, axis=-1: ufunc.reduce(a, axis, None, None, True)


_XP, _SUM = Doubles(), _reduced(np.add)
_UFUNCS = "add subtract multiply divide negative absolute square maximum"
_BY_VALUES = "power prod cumsum others newton_schulz scatter_add less share_of_max step pi"
_OF_ARRAYS: dict[str, Any] = {
    **{name: getattr(np, name) for name in _UFUNCS.split()},
    **{name: functools.partial(_by_values, name) for name in _BY_VALUES.split()},
    **{name: NUMPY[name] for name in FUNCTIONS},
    **dict.fromkeys(("store", "saved", "stop", "either", "lift"), lambda a, *_: a),
    "array": functools.partial(np.asarray, dtype=np.float64),
    "number": lambda value: np.float64(_XP.number(value).data),
    "primitive": lambda name, a: NUMPY[name](a),
    "narrow": lambda a, format: formats.cast(a, format).astype(np.float64),
    "sum": _SUM,
    **dict.fromkeys(("max", "pivot"), _reduced(np.maximum)),
    "mean": lambda a, axis=-1: _SUM(a, axis) / a.shape[axis],
    "matmul": blas.product,
    "where": lambda mask, a, b: np.where(mask.yes if isinstance(mask, Mask) else mask, a, b),
    "rearrange": lambda change, *arrays: change(*arrays),
}
