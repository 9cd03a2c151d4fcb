"""Remembering: a `Bound` that computes a primitive of the same operands once.

The forms of an op share about half of their steps: the scores, the pivot, a row's sum. Read one
after the other in this context, on the same arrays, they share the results. Values are immutable,
so a result is a function of its operands; operands are kept alive, so that no other object gets
their identity.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy.typing as npt

from refkernels.contexts.bound import Bound
from refkernels.contexts.bound_value import BoundValue
from refkernels.contexts.context import Context

_CALLED_WITH_FUNCTIONS = ("library", "rearrange")
_PRIMITIVES = ("enter", *(name for name in vars(Context) if not name.startswith("_")))
_BY_VALUE = frozenset((type(None), bool, int, float, str, Fraction))


class Remembering(Bound):
    """`Bound`, for formulas of some thousand elements: it keeps all their values."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._results: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def array(self, values: npt.NDArray[Any]) -> BoundValue:
        """Views of the same elements are the same array."""
        start = values.__array_interface__["data"][0]
        key = ("array", start, values.shape, values.strides, values.dtype)
        if key not in self._results:
            self._results[key] = super().array(values), values
        value: BoundValue = self._results[key][0]
        return value


def _remembered(name: str) -> Callable[..., Any]:
    @functools.wraps(getattr(Bound, name))
    def primitive(self: Remembering, *operands: Any, **options: Any) -> Any:
        key = (name, *map(_identity, operands))
        if options:
            key += tuple(map(_identity, sorted(options.items())))
        remembered = self._results.get(key)
        if remembered is None:
            result = getattr(super(Remembering, self), name)(*operands, **options)
            remembered = result, (operands, options)
            self._results[key] = remembered
        return remembered[0]

    return primitive


def _identity(operand: Any) -> Any:
    kind = type(operand)
    if kind in _BY_VALUE:
        return kind, operand
    return tuple(map(_identity, operand)) if kind in (list, tuple) else id(operand)


for _name in _PRIMITIVES:
    if callable(getattr(Bound, _name)) and _name not in ("array", *_CALLED_WITH_FUNCTIONS):
        setattr(Remembering, _name, _remembered(_name))
