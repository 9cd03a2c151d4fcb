"""Stochastic: `Working` with every operation rounded at random, its mean the exact result.

x between neighbours a < b of the format becomes b with probability (x - a) / (b - a), else a. So
E[fl(x)] = x, given the operands; a number of the format stays unchanged. Roundings are independent:
the error of a sum of n terms grows as √n, and one run shows what rounding alone may do to a result.

What is guaranteed. Each x is known as an unevaluated sum hi + lo of float64 with a common exponent:
sums and products exactly, quotients and roots to 2^-100 |x|, functions to the radius of the
oracles' double-double tiers. The probability is that of hi + lo to 2^-52. So |E[fl(x)] - x| is at
most 2^-51 (b - a), and beyond that 2^-100 |x| or the radius. A function of a rounded value has the
bias that the function's curvature causes.

Params enter rounded to nearest. One context draws one sequence: the same seed and the same
operations give the same bits.

Sources: Croci et al. (2022), "Stochastic rounding: implementation, error analysis and
applications", doi:10.1098/rsos.211631; Parker (1997), "Monte Carlo arithmetic".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.transformations import divided, rooted, two_prod, two_sum
from refkernels.contexts import functions
from refkernels.contexts.context import FUNCTIONS, Context
from refkernels.contexts.value import Value
from refkernels.contexts.working import Array, Order, Working, WorkingValue, data

Doubles = npt.NDArray[np.float64]
Triple = tuple[Doubles, Doubles, Any]  # (hi + lo) 2^scale


class Stochastic(Working):
    """Arithmetic in `format`, rounded at random from `seed`."""

    def __init__(
        self,
        format: Format | str,
        seed: int,
        storage: Format | str | None = None,
        order: Order = "sequential",
    ) -> None:
        super().__init__(format, storage, order, seed=seed)
        self.name = f"Stochastic({self.format}, {seed})"
        self.random = np.random.default_rng(seed)

    def plus(self, a: Array, b: Array) -> Array:
        return self._round(*_sum(*_wide(a, b)))

    def times(self, a: Array, b: Array) -> Array:
        return self._round(*_product(*_wide(a, b)))

    def running(self, total: Array, terms: Array) -> Array:
        sums = []
        for k in range(terms.shape[-1]):
            total = self.plus(total, terms[..., k])
            sums.append(total)
        return np.stack(sums, axis=-1) if sums else terms

    def prod(self, a: Value, axis: int = -1) -> Value:
        return Context.prod(self, a, axis)

    def welford(self, a: Value, axis: int = -1) -> tuple[Value, Value]:
        return Context.welford(self, a, axis)

    def divide(self, a: Value, b: Value) -> WorkingValue:
        return self.value(self._round(*_quotient(*_wide(data(a), data(b)))))

    def function(self, name: str, a: Value) -> WorkingValue:
        if name not in FUNCTIONS:
            raise ValueError(f"There is no function {name!r} in a formula.")
        (x,) = _wide(data(a))
        parts = _root(x) if name == "sqrt" else functions.pair(name, x)
        return self.value(self._round(*parts))

    def store(self, a: Value) -> WorkingValue:
        (x,) = _wide(data(a))
        return self.value(self._round(x, np.zeros_like(x), 0, self.storage))

    def narrow(self, a: Value, format: str) -> WorkingValue:
        (x,) = _wide(data(a))
        return self.value(self._round(x, np.zeros_like(x), 0, formats.get(format)))

    def _round(self, hi: Doubles, lo: Doubles, scale: Any, format: Format | None = None) -> Array:
        """(hi + lo) 2^scale at random to one of its neighbours in the format."""
        to = format or self.format
        with np.errstate(all="ignore"):
            mantissa, exponent = np.frexp(hi)
            below = (np.abs(mantissa) == 0.5) & (lo * hi < 0.0)
            q = np.maximum(exponent - 1 - below + scale, to.emin) - to.p + 1
            units = np.ldexp(hi, scale - q)
            down = np.floor(units)
            part = (units - down) + np.ldexp(lo, scale - q)
            down, part = down - (part < 0.0), np.where(part < 0.0, part + 1.0, part)
            uniform = self.random.random(hi.shape)
            result = np.ldexp(down + (uniform < part), q)
            result = np.copysign(result, hi)
            result = np.where(np.abs(result) > to.max, np.copysign(np.inf, hi), result)
            return np.where(np.isfinite(hi) & (hi != 0.0), result, hi).astype(to.storage)


def _wide(*arrays: Array) -> list[Doubles]:
    return [np.asarray(x).astype(np.float64) for x in np.broadcast_arrays(*arrays)]


def _finite_or_zero(x: Doubles) -> Doubles:
    """x, or 0 where it is not finite: such a result has no error term."""
    return np.where(np.isfinite(x), x, 0.0)


def _sum(a: Doubles, b: Doubles) -> Triple:
    with np.errstate(all="ignore"):
        total, error = two_sum(a, b)
        return total, _finite_or_zero(error), 0


def _product(a: Doubles, b: Doubles) -> Triple:
    with np.errstate(all="ignore"):
        (a, a_scale), (b, b_scale) = np.frexp(a), np.frexp(b)
        product, error = two_prod(a, b)
        return product, _finite_or_zero(error), a_scale + b_scale


def _quotient(a: Doubles, b: Doubles) -> Triple:
    """a / b = q + (a - q b) / b."""
    with np.errstate(all="ignore"):
        (a, a_scale), (b, b_scale) = np.frexp(a), np.frexp(b)
        q, remainder = divided(a, b)
        return q, _finite_or_zero(remainder / b), a_scale - b_scale


def _root(x: Doubles) -> Triple:
    """√x = s + (x - s²) / (√x + s), with 2s for √x + s: off by 2^-104 s at most."""
    with np.errstate(all="ignore"):
        m, scale = np.frexp(x)
        odd = scale & 1
        s, remainder = rooted(np.where(odd, m * 2.0, m))
        return s, _finite_or_zero(remainder / (2.0 * s)), (scale - odd) // 2
