"""Unbounded: binary64 arithmetic whose infinities are not overflows.

A result too large for binary64 becomes its largest number, and with `underflow` a result too small
its smallest, of the same sign. A difference of two such numbers is unknown, and never taken for
zero. So an infinity or a NaN belongs to the definition: an input or a pole (log 0) caused it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.context import Context
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedArithmetic, RoundedValue, data

Doubles = npt.NDArray[Any]
_LARGEST, _SMALLEST = np.finfo(np.float64).max, 2.0**-1074
_SHARE = 2.0**-64  # scales the terms of a sum that overflows: no sum has as many terms


class Unbounded(RoundedArithmetic):
    """Sums are in sequence. `underflow`: whether results too small stay other than zero."""

    def __init__(self, underflow: bool = False) -> None:
        super().__init__("float64")
        self.underflow = underflow

    def plus(self, a: Doubles, b: Doubles) -> Doubles:
        terms = np.stack(np.broadcast_arrays(a, b), axis=-1)
        return self.running(np.zeros(terms.shape[:-1]), terms)[..., -1]

    def times(self, a: Doubles, b: Doubles) -> Doubles:
        with np.errstate(all="ignore"):
            return self._within(np.asarray(a * b), np.isfinite(a) & np.isfinite(b), (a, b))

    def divide(self, a: Value, b: Value) -> RoundedValue:
        above, below = data(a), data(b)
        finite = np.isfinite(above) & np.isfinite(below) & (below != 0.0)
        with np.errstate(all="ignore"):
            return self.value(self._within(np.asarray(above / below), finite, (above,)))

    def primitive(self, name: str, a: Value) -> RoundedValue:
        results = data(super().primitive(name, a))
        if name not in ("exp", "expm1", "erfc"):
            return self.value(results)
        factors = () if name == "expm1" else (np.ones(results.shape),)
        return self.value(self._within(results, np.isfinite(data(a)), factors))

    def _within(self, results: Doubles, finite: Doubles, factors: Sequence[Doubles]) -> Doubles:
        """Results of finite operands made finite, and nonzero where no factor is zero."""
        results = np.where(finite, np.clip(results, -_LARGEST, _LARGEST), results)
        if not self.underflow or not factors:
            return results
        lost = finite & (results == 0.0)
        for factor in factors:
            lost = lost & (factor != 0.0)
        return np.where(lost, np.copysign(_SMALLEST, results), results)

    def running(self, total: Doubles, terms: Doubles) -> Doubles:
        chain = np.concatenate([total[..., None], terms], axis=-1)
        finite = np.isfinite(chain)
        with np.errstate(all="ignore"):
            known = np.where(finite, chain, 0.0)
            sums = np.add.accumulate(known, axis=-1)
            if not np.isfinite(sums).all():
                shared = np.add.accumulate(known * _SHARE, axis=-1)
                largest = _LARGEST * _SHARE
                sums = np.where(
                    np.isfinite(sums), sums, np.clip(shared, -largest, largest) / _SHARE
                )
            sizes = abs(known)
            unknown = (sizes == _LARGEST) | (self.underflow & (sizes == _SMALLEST))
            vague = np.logical_or.accumulate(unknown, axis=-1)
            sums = np.where(vague & (sums == 0.0), _SMALLEST, sums)
            if not finite.all():
                special = np.add.accumulate(np.where(finite, 0.0, chain), axis=-1)
                sums = np.where(np.logical_and.accumulate(finite, axis=-1), sums, special)
        return np.asarray(sums[..., 1:])

    def _by_kernel(self, a: Doubles, b: Doubles) -> bool:
        """Whether no product and no sum comes near an end of the range."""
        least = most = 1.0
        for factor in (np.abs(part[part != 0.0]) for part in (a, b)):
            with np.errstate(all="ignore"):  # NaN and infinity are not below
                least, most = least * factor.min(initial=1.0), most * factor.max(initial=1.0)
        return bool(least > 2.0**-1000 and most * a.shape[-1] < 2.0**1000)

    prod, welford, library = Context.prod, Context.welford, Context.library  # type: ignore[assignment]
