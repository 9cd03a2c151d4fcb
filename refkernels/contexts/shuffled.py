"""Shuffled: a formula as some kernel may compute it in float32, at a kernel's speed.

Sums and products of matrices are NumPy's and its BLAS's own, over terms in an order that is drawn
for each; every other operation is rounded at random, its mean the exact result.

A random rounding errs by 1/√6 ulp in the mean square, one to nearest by 1/√12. Quotients, roots and
functions are float64's, so the mean is off by about 2^-29 ulp. Results below 2^-126 are rounded to
nearest. A seed gives the same bits on one machine.

Sources: Croci et al. (2022), "Stochastic rounding: implementation, error analysis and
applications", doi:10.1098/rsos.211631; for orders, Villa et al. (2009), "Effects of floating-point
non-associativity on numerical computations on massively multithreaded systems".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas, formats
from refkernels.contexts.context import Context, Index
from refkernels.contexts.doubles import NUMPY
from refkernels.contexts.value import Value
from refkernels.contexts.working import Array, RoundedArithmetic, RoundedValue, _loose, data

Doubles = npt.NDArray[np.float64]
_CUT = 53 - formats.get("float32").p  # bits of a float64 that a float32 lacks
_REST = np.int64(2**_CUT - 1)


class Shuffled(RoundedArithmetic):
    """float32, its sums in random orders and its other operations rounded at random from `seed`.
    Params are held in binary64, and rounded to nearest where they meet an array."""

    def __init__(self, seed: int) -> None:
        super().__init__("float32", seed=seed, scalars="binary64")
        self.name = f"Shuffled({seed})"
        self.random = np.random.default_rng(seed)

    def plus(self, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return self._rounded(np.add(a, b, dtype=np.float64))

    def times(self, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return self._rounded(np.multiply(a, b, dtype=np.float64))

    def divide(self, a: Value, b: Value) -> RoundedValue:
        if _loose(a) and _loose(b):
            return super().divide(a, b)
        with np.errstate(all="ignore"):
            divided = np.divide(self._entered(a), self._entered(b), dtype=np.float64)
            return self.value(self._rounded(divided))

    def primitive(self, name: str, a: Value) -> RoundedValue:
        if _loose(a):
            return super().primitive(name, a)
        with np.errstate(all="ignore"):
            return self.value(self._rounded(NUMPY[name](data(a).astype(np.float64))))

    def sum(self, a: Value, axis: int = -1) -> RoundedValue:
        terms = self._drawn(np.moveaxis(data(a), axis, -1))
        with np.errstate(all="ignore"):
            total = np.add.reduce(terms, axis=-1, dtype=np.float32)
        return self.value(np.expand_dims(total, axis))

    def matmul(self, a: Value, b: Value) -> RoundedValue:
        left, right = data(a), data(b)
        order = self.random.permutation(left.shape[-1])
        with np.errstate(all="ignore"), blas.on_one_thread():
            return self.value(blas.multiply(left[..., order], right[..., order, :]))

    def scatter_add(self, a: Value, index: Index, length: int) -> RoundedValue:
        rows, places = data(a), np.asarray(index).reshape(-1)
        order = self.random.permutation(places.size)
        total = np.zeros((length, *rows.shape[1:]), np.float32)
        if np.bincount(places, minlength=1).max(initial=0) <= 1:
            total[places] = rows
        else:
            with np.errstate(all="ignore"):
                np.add.at(total, places[order], rows[order])
        return self.value(total)

    prod, welford = Context.prod, Context.welford

    def _drawn(self, terms: Array) -> Array:
        return np.ascontiguousarray(terms[..., self.random.permutation(terms.shape[-1])])

    def _entered(self, a: Value) -> Array:
        return np.asarray(data(a), np.float32)

    def _rounded(self, x: Doubles) -> Array:
        """x rounded at random to one of its neighbours: bits are added below the last, and cut
        off."""
        noise = self.random.integers(0, _REST + 1, x.shape, np.int64)
        moved = ((x.view(np.int64) + noise) & ~_REST).view(np.float64)
        usual = (np.abs(x) >= formats.get("float32").min_normal) & np.isfinite(x)
        with np.errstate(all="ignore"):
            return np.asarray(np.where(usual, moved, x), np.float64).astype(np.float32)
