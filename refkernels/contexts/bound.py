"""Bound: how far from the exact value any right kernel of this form may compute.

A value is a pair. z, the exact value, has |z - mid| <= rho: a Ball. Every ẑ that a kernel may
compute has |ẑ - z| <= r. With M = |mid| + rho >= |z| and M + r >= |ẑ|, and with one rounding,
`rounding`, to follow (u, η of the working format; F the reading of the primitive in Ball):

    a + b        r_a + r_b
    a b          M_a r_b + M_b r_a + r_a r_b                âb̂ - ab = a(b̂-b) + b(â-a)
                                                                      + (â-a)(b̂-b)
    a / b        (r_a + M_F r_b) / (least |b| - r_b)        â/b̂ - a/b = ((â-a) - (a/b)(b̂-b)) / b̂
    a²           r (2 M + r)
    a^n          n r (M + r)^(n-1), then n - 1 roundings, `accumulation.power`
    f(a)         sup |f(ẑ) - f(z)|, `functions.spread`, then the library's limit
    sum          Σ r + (m - 1) u Σ (M + r), `accumulation.counted`; in any order
    prod         `accumulation.products`; welford      `accumulation.moments`
    matmul       M_A R_B + R_A M_B + R_A R_B, then `accumulation.product`
    library      the library's limit, of exact arguments
    logaddexp    the larger r, and the roundings of max + log1p(e^-|a - b|)
    max, min     the largest r of those that may be the largest; no rounding
    where        r of the branch; if the comparison may fall out either way, the jump too
    pivot        rho covers every pivot that a kernel may choose; r = 0

An FMA omits the rounding of a product; its own rounding in subnormals, η/2, is that allowed for the
product. A sum of numbers of the format is a multiple of η: it loses none.

The pivot. A kernel's own pivot p̂ is the largest score that it computed. The exact result is the
same for every pivot, so a kernel is compared with the exact formula *at its own p̂*, where z is
x - p̂. The pivot's rho covers every possible p̂. What follows holds for each of them, and the
result's z is the truth.

What is covered: every operation of the form rounded to nearest, once, or not at all (contraction,
values kept in a wider format until some later operation rounds them); outside sums also twice, in a
wider format first. What is not: other formulas, flushing to zero, truncation. r is infinite where
the working range may be left or a singularity reached.

Sources: Higham (2002), "Accuracy and Stability of Numerical Algorithms", chapters 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import blas, formats
from refkernels.arithmetic.formats import BINARY16, Format
from refkernels.arithmetic.rounding import Rounding
from refkernels.contexts import accumulation, functions, newton_schulz
from refkernels.contexts.ball import ETA, Ball, BallValue, U, outward
from refkernels.contexts.bound_value import BoundValue, parts
from refkernels.contexts.context import Index
from refkernels.contexts.unrounded import Unrounded
from refkernels.contexts.value import Value

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_UP = 1.0 + 2.0**-40  # exceeds the roundings that follow it


class Bound(Unrounded):
    """The rounding bound of a formula in `working` arithmetic, its results kept in `storage`.

    Kernels on 16-bit arrays compute in binary32: Bound("float32", storage="bfloat16").
    `limit`: by how many ulp of the working format a library's elementary functions may be off, erf
    and erfc four times as many.
    `exp2` allows exp(x) to be taken as exp2(x log2 e), the product and the constant rounded.
    scalars="binary64": params are held and combined in binary64, and may be rounded where they meet
    arrays; else a kernel may hold them in the working format.
    `extra`: how many terms more the error of a product of matrices allows for, as products of split
    floats need.
    """

    def __init__(
        self,
        working: Format | str,
        storage: Format | str | None = None,
        *,
        limit: float = 4.0,
        exp2: bool = False,
        scalars: Literal["working", "binary64"] = "working",
        extra: float = 0.0,
    ) -> None:
        self.working = Rounding(formats.get(working))
        self.storage = self.working if storage is None else Rounding(formats.get(storage))
        self.limit = limit
        self.exp2 = exp2
        self.extra = extra
        self.scalars = Rounding(formats.BINARY64) if scalars == "binary64" else None
        self.ball = Ball()
        self.name = f"Bound({self.working.format})"

    def bound(self, result: Value) -> Doubles:
        """sup |ẑ - z| of a result that is delivered in the storage format."""
        return parts(self.store(result)).error

    def array(self, values: npt.NDArray[Any]) -> BoundValue:
        """Exact; an element that the working format does not hold is rounded on the way in."""
        exact = self.ball.array(values)
        error = np.where(self.working.holds(exact.mid), 0.0, self.working.lost(np.abs(exact.mid)))
        return BoundValue(self, exact, outward(error))

    def number(self, value: Any) -> BoundValue:
        return self._scalar(self.ball.number(value))

    def pi(self) -> BoundValue:
        return self._scalar(self.ball.pi())

    def _scalar(self, exact: BallValue) -> BoundValue:
        rounding = self.scalars or self.working
        exactly = rounding.holds(exact.mid) & (exact.radius == 0.0)
        exactly &= ~rounding.beyond(np.abs(exact.mid))
        error = np.where(exactly, 0.0, rounding.lost(np.abs(exact.mid) + exact.radius))
        return BoundValue(self, exact, outward(error), self.scalars is not None)

    def enter(self, a: Value) -> BoundValue:
        """A loose scalar, rounded to the working format."""
        value = parts(a)
        if not value.loose:
            return value
        fits = self.working.holds(value.exact.mid) & (value.exact.radius + value.error == 0.0)
        error = value.error + np.where(fits, 0.0, self.working.lost(value.reach))
        return BoundValue(self, value.exact, outward(error))

    # --- one rounding ------------------------------------------------------------------------

    def _rounded(
        self,
        exact: BallValue,
        error: Doubles,
        operands: tuple[BoundValue, ...],
        *,
        underflow: bool = True,
        scaled: Bools | bool = False,
        most: Doubles | float = np.inf,
    ) -> BoundValue:
        """A result with error `error` before its rounding, at most `most`. Where `scaled`, it is a
        number of the format times a power of two, which is rounded only where it underflows."""
        rounding = self._rounding(*operands)
        with np.errstate(all="ignore"):
            size = np.abs(exact.mid) + exact.radius + error
            lost = rounding.lost(size, underflow)
            lost = np.where(lost < np.inf, np.minimum(lost, most), lost)
            if np.any(scaled):
                lost = np.where(scaled, np.minimum(lost, rounding.half), lost)
                lost = np.where(rounding.beyond(size), np.inf, lost)
            return BoundValue(self, exact, outward(error + lost), rounding is self.scalars)

    def _rounding(self, *operands: BoundValue) -> Rounding:
        """The rounding of an operation: among loose scalars, binary64's."""
        loose = all(operand.loose for operand in operands)
        return self.scalars if self.scalars and loose else self.working

    def _met(self, a: Value, b: Value) -> tuple[BoundValue, BoundValue, bool]:
        """Two operands, and whether a loose scalar meets an array: a kernel may round it first, as
        PyTorch does, or compute the operation in binary64 and round the result alone."""
        x, y = parts(a), parts(b)
        if x.loose == y.loose:
            return x, y, False
        return self.enter(x), self.enter(y), True

    def add(self, a: Value, b: Value) -> BoundValue:
        x, y, apart = self._met(a, b)
        exact = self.ball.add(x.exact, y.exact)
        most: Doubles | float = np.inf
        if np.any(np.abs(exact.mid) > self.working.format.max / 4):
            most = np.minimum(self._absorbed(x, y), self._absorbed(y, x))
        # A binary64 scalar that is not rounded first is not a multiple of the format's η.
        return self._rounded(exact, x.error + y.error, (x, y), underflow=apart, most=most)

    def _absorbed(self, x: BoundValue, y: BoundValue) -> Doubles:
        """At most |fl(x̂ + y) - (x̂ + y)| for a number y of the format, which is no nearer than the
        result; through a wider format first, but for its roundings. So are masked scores added."""
        with np.errstate(all="ignore"):
            wider = 4.0 * (self.working.unit - self.working.format.u) * (x.reach + y.reach)
            held = (y.error + y.exact.radius == 0.0) & self.working.holds(y.exact.mid)
            return np.where(held, x.reach + wider, np.inf)

    def multiply(self, a: Value, b: Value) -> BoundValue:
        x, y, apart = self._met(a, b)
        exact = self.ball.multiply(x.exact, y.exact)
        with np.errstate(all="ignore"):
            error = x.size * y.error + y.size * x.error + x.error * y.error
        scaled = (x.powers_of_two | y.powers_of_two) & (not apart)
        return self._rounded(exact, error, (x, y), scaled=scaled)

    def divide(self, a: Value, b: Value) -> BoundValue:
        x, y, apart = self._met(a, b)
        exact = self.ball.divide(x.exact, y.exact)
        with np.errstate(all="ignore"):
            least = np.abs(y.exact.mid) - (y.exact.radius + y.error) * _UP
            least = least * (1.0 - 2.0**-50)
            quotient = np.abs(exact.mid) + exact.radius
            above = x.error + quotient * y.error + np.where(y.error > 0.0, ETA, 0.0)
            error = np.where(least > 0.0, above / least, np.inf)
        scaled = y.powers_of_two & (not apart)
        return self._rounded(exact, error, (x, y), scaled=scaled)

    def quotient(self, a: Value, b: Value) -> BoundValue:
        """Of a power of two, both are exact where the format holds them."""
        x, y = parts(a), parts(b)
        inverse = self.divide(self.number(1), b)
        value = self.either(self.divide(a, b), self.multiply(a, inverse))
        value.exact = exact = self.ball.quotient(x.exact, y.exact)
        sure = y.powers_of_two & (x.error + exact.radius == 0.0) & self.working.holds(exact.mid)
        sure = sure & self.working.holds(np.abs(inverse.exact.mid))
        value.error = np.where(sure, 0.0, value.error)
        return value

    def square(self, a: Value) -> BoundValue:
        x = parts(a)
        with np.errstate(all="ignore"):
            error = x.error * (2.0 * x.size + x.error)
        return self._rounded(self.ball.square(x.exact), error, (x,))

    def power(self, a: Value, exponent: int) -> BoundValue:
        """A negative power is (1 / x)^n or 1 / x^n."""
        x, n = parts(a), exponent
        if n < 0:
            one = self.number(1)
            return self.either(
                self.divide(one, self.power(x, -n)), self.power(self.divide(one, x), -n)
            )
        exact = self.ball.power(x.exact, n)
        if n < 2:
            return BoundValue(self, exact, x.error if n else 0.0, x.loose)
        with np.errstate(all="ignore"):
            error = accumulation.power(self._rounding(x), x.reach, x.error, n)
            return BoundValue(self, exact, outward(error), x.loose)

    # --- functions ---------------------------------------------------------------------------

    def primitive(self, name: str, a: Value) -> BoundValue:
        return self._function(name, parts(a), False)

    def library(
        self, formula: Callable[..., Value], limit: int, inputs: Sequence[Value], *beside: Any
    ) -> Value:
        """The library's limit alone, since ẑ = z; infinite where an input is not exact."""
        exact = formula(
            self.ball,
            *(parts(item).exact for item in inputs),
            *(parts(item).exact if isinstance(item, Value) else item for item in beside),
        )
        assert isinstance(exact, BallValue)
        with np.errstate(all="ignore"):
            size = np.abs(exact.mid) + exact.radius
            lost = 2.0 * limit * (self.working.unit * size + self.working.half)
            known = ~self.working.beyond(size + lost)
            for item in inputs:
                known = known & (parts(item).error == 0.0)
            return BoundValue(self, exact, outward(np.where(known, lost, np.inf)))

    def logaddexp(self, a: Value, b: Value, log1p: bool = True) -> BoundValue:
        """The larger r of both, and the kernel's own roundings of any operands that it may have."""
        x, y = self.enter(a), self.enter(b)
        first, second = (BoundValue(self, self._hull(v), 0.0) for v in (x, y))
        own = parts(super().logaddexp(first, second, log1p))
        error = outward(np.maximum(x.error, y.error) + own.error)
        return BoundValue(self, self.ball.logaddexp(x.exact, y.exact), error)

    def norm(self, a: Value, axis: int = -1) -> BoundValue:
        return self._function("sqrt", parts(self.sum(self.square(a), axis)), True)

    def _function(self, name: str, x: BoundValue, positive: bool) -> BoundValue:
        """|f(ẑ) - f(z)| and the library's own error: half an ulp for sqrt, else `limit` ulp of
        f(ẑ), an ulp being at most max(2 u |f|, η). Of ẑ >= 0, |√ẑ - √z| <= √|ẑ - z|."""
        exact = self.ball.function(name, x.exact)
        rounding = self._rounding(x)
        mid, radius, r = x.exact.mid, x.exact.radius, x.error
        with np.errstate(all="ignore"):
            if name == "exp" and self.exp2:  # x (1 + δ)(1 + δ') + η/2 for x
                r = r + (x.reach * 2.0 * rounding.unit * (1 + rounding.unit) + rounding.half)
            size = np.abs(exact.mid) + exact.radius
            spread = functions.spread(name, mid, radius, r, size)
            if positive:
                spread = np.minimum(spread, np.sqrt(r) * _UP)
        if name == "sqrt":
            return self._rounded(exact, spread, (x,), underflow=False)
        with np.errstate(all="ignore"):
            size = size + spread
            limit = self.limit * functions.allowance(name)
            lost = 2.0 * limit * (rounding.unit * size + rounding.half)
            lost = np.where(rounding.beyond(size + lost), np.inf, lost)
            return BoundValue(self, exact, outward(spread + lost), x.loose)

    # --- reductions --------------------------------------------------------------------------

    def sum(self, a: Value, axis: int = -1) -> BoundValue:
        x = self.enter(a)
        n = x.shape[axis]
        with np.errstate(all="ignore"):
            reach = x.reach
            errors, sizes = (part.sum(axis, keepdims=True) for part in (x.error, reach))
            terms = accumulation.counted(self.working, reach, sizes, axis)
            return self._summed(self.ball.sum(x.exact, axis), errors, sizes, terms, n)

    def _summed(
        self, exact: BallValue, errors: Doubles, sizes: Doubles, terms: Any, most_terms: int
    ) -> BoundValue:
        error = accumulation.summed(self.working, errors, sizes, terms, most_terms)
        return BoundValue(self, exact, outward(error))

    def mean(self, a: Value, axis: int = -1) -> BoundValue:
        """Σ / n or Σ fl(1 / n): Σ t with |t - 1/n| <= r_t, where t = 1 / fl(n), exact or rounded,
        or fl(1 / n); a rounding follows."""
        return self._averaged(self.sum(a, axis), a.shape[axis])

    def _averaged(self, total: BoundValue, n: int) -> BoundValue:
        exact = self.ball.divide(total.exact, self.ball.number(n))
        with np.errstate(all="ignore"):
            error = total.error / n + total.reach * accumulation.inverse(self.working, n)
        power_of_two = n & (n - 1) == 0 and self.working.holds(np.asarray(1.0 / n)).all()
        return self._rounded(exact, error, (total,), scaled=bool(power_of_two))

    def cumsum(self, a: Value, axis: int = -1) -> BoundValue:
        x = self.enter(a)
        with np.errstate(all="ignore"):
            parts_of_sum = x.error, x.reach, x.reach != 0.0
            errors, sizes, terms = (np.cumsum(part, axis) for part in parts_of_sum)
            exact = self.ball.cumsum(x.exact, axis)
            return self._summed(exact, errors, sizes, terms, x.shape[axis])

    def prod(self, a: Value, axis: int = -1) -> BoundValue:
        return self._multiplied("prod", a, axis)

    def others(self, a: Value, axis: int = -1) -> BoundValue:
        return self._multiplied("others", a, axis)

    def _multiplied(self, name: str, a: Value, axis: int) -> BoundValue:
        x, n, product = self.enter(a), a.shape[axis], getattr(self.ball, name)
        exact: BallValue = product(x.exact, axis)
        with np.errstate(all="ignore"):
            reach = product(self.ball.value(x.reach, 0.0), axis)
            relative = np.where(x.error > 0.0, x.error / x.reach, 0.0).sum(axis, keepdims=True)
            top = np.maximum(x.reach, 1.0).prod(axis, keepdims=True) * (1.0 + 2.0 * n * U)
            size = np.abs(reach.mid) + reach.radius
            error = accumulation.products(self.working, n, size, relative, top)
            if n < (2 if name == "prod" else 3):  # one factor: nothing is multiplied
                error = x.error if name == "prod" and n else size * relative
            return BoundValue(self, exact, outward(error))

    def welford(self, a: Value, axis: int = -1) -> tuple[BoundValue, BoundValue]:
        """Of terms off by r at most: the mean is off by r more, and the sum of squares by
        n r (2 σ + r), σ being the root of their mean."""
        x, n = self.enter(a), a.shape[axis]
        exact: Any = self.ball.welford(x.exact, axis)
        with np.errstate(all="ignore"):
            inputs_error = x.error.max(axis, keepdims=True)
            spread = np.abs(exact[1].mid) + exact[1].radius
            carried = n * inputs_error * (2.0 * np.sqrt(spread / n + ETA) + inputs_error) * _UP
            reach = x.reach.max(axis, keepdims=True)
            mean, squares = accumulation.moments(self.working, n, reach, spread + carried)
            largest = np.maximum(
                2.0 * n * (spread + carried + squares), 4.0 * np.square(reach + mean)
            )
            beyond = self.working.beyond(np.maximum(x.reach.sum(axis, keepdims=True), largest))
            errors = (mean + inputs_error, squares + carried)
            return tuple(  # type: ignore[return-value]
                BoundValue(self, z, outward(np.where(beyond, np.inf, r)))
                for z, r in zip(exact, errors, strict=True)
            )

    def scatter_add(self, a: Value, index: Index, length: int) -> BoundValue:
        x = self.enter(a)
        errors, sizes, terms = (np.zeros((length, *x.shape[1:])) for _ in range(3))
        with np.errstate(all="ignore"):
            np.add.at(errors, index, x.error)
            np.add.at(sizes, index, x.reach)
            np.add.at(terms, index, x.reach != 0.0)
            exact = self.ball.scatter_add(x.exact, index, length)
            return self._summed(exact, errors, sizes, terms, index.size)

    @property
    def _narrow_factors(self) -> bool:
        return self.storage.format.p <= BINARY16.p < self.working.format.p

    def matmul(self, a: Value, b: Value) -> BoundValue:
        x, y = self.enter(a), self.enter(b)
        terms = x.shape[-1]
        with np.errstate(all="ignore"):
            sizes = blas.product(x.reach, y.reach) * (1.0 + 4.0 * terms * U)
            error: Any = 0.0 * sizes
            if x.error.any() or y.error.any():
                error = blas.product(x.size, y.error) + blas.product(x.error, y.size + y.error)
            counts: Any = float(terms)
            if not (x.reach.all() and y.reach.all()):
                # By structure: a product by 0 is 0, and adding it rounds nothing.
                counts = blas.product(*((part.reach > 0.0).astype(float) for part in (x, y)))
            erring = counts + np.where(counts > 0.0, self.extra, 0.0)
            narrow = self._narrow_factors
            lost = accumulation.product(self.working, erring, sizes, by_instructions=narrow)
            error = np.where(np.isnan(error), np.inf, error) * (1.0 + 4.0 * terms * U)
            error = error + lost + 4 * terms * ETA
            zero = (counts == 0.0) & (error < np.inf)  # a product may underflow here too
            error = np.where(zero, 0.0, error)
            return BoundValue(self, self.ball.matmul(x.exact, y.exact), outward(error))

    def newton_schulz(self, x: Value, a: Value, b: Value, c: Value, steps: int) -> BoundValue:
        """The error, element by element, or that of the whole matrix, if it is less."""
        composed = self.enter(super().newton_schulz(x, a, b, c, steps))
        entered, numbers = self.enter(x), tuple(map(self.enter, (a, b, c)))
        with np.errstate(all="ignore"):
            error = newton_schulz.error(self.working, entered, numbers, steps, self._narrow_factors)
        least = np.where(error < composed.error, error, composed.error)
        return BoundValue(self, composed.exact, least)

    # --- what a kernel may do ----------------------------------------------------------------

    def store(self, a: Value) -> BoundValue:
        return self._kept(a, self.storage)

    def narrow(self, a: Value, format: str) -> BoundValue:
        return self._kept(a, Rounding(formats.get(format)))

    def _kept(self, a: Value, rounding: Rounding) -> BoundValue:
        x = self.enter(a)
        if not rounding.narrower(self.working):
            return x
        with np.errstate(all="ignore"):
            return BoundValue(self, x.exact, outward(x.error + rounding.lost(x.reach)))


class Unstored(Bound):
    """The bound of a kernel that keeps only its last result in the storage format, but for what the
    forward pass saved: a kernel that is given y cannot know x. `from_saved`: whether the formula
    read such a result. The arguments are those of `Bound`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.from_saved = False

    def store(self, a: Value) -> BoundValue:
        return self.enter(a)

    def saved(self, a: Value) -> BoundValue:
        self.from_saved = True
        return super().store(a)

    def bound(self, result: Value) -> npt.NDArray[np.float64]:
        return parts(super().store(result)).error
