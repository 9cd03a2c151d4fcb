"""RoundedArithmetic: every operation rounded to a format, as in a kernel; a model of a framework.

The caller chooses the order of sums; with `fma`, a product that is added is not rounded first.
Elementary functions are correctly rounded wherever the oracles' double-double tiers decide it.
Models of frameworks bring their kernels' own functions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, sums_in_order
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.fused import multiply_add
from refkernels.arithmetic.grids import NumberGrid
from refkernels.contexts import functions
from refkernels.contexts.context import Context, Index, fraction
from refkernels.contexts.value import Mask, Value, not_a_value

Array = npt.NDArray[Any]
_BLOCK = 1 << 20  # terms whose partial sums are kept at once
_MANY = 1 << 15  # terms for which a kernel is worth its first call
_WITH_KERNELS = (np.float32, np.float64)
_FEW, _STEPS = 8, 1 << 12  # multiplications of a power
Order = Literal["sequential", "pairwise", "NumPy's", "reversed", "random"]
Network = Literal["Sklansky", "Kogge-Stone", "Brent-Kung"]


class ScanOrder(NamedTuple):
    """A scan in blocks of so many terms by a network of adders; the total before is added to a
    block's first term, or `later` to all of its sums. PyTorch's on GPUs is Sklansky's."""

    block: int
    network: Network
    later: bool = False


class RoundedValue(Value):
    """An array of the working format; a product keeps its factors, for an FMA. A `loose` value
    is a scalar in binary64 that has met no array."""

    __slots__ = ("data", "factors", "loose")

    def __init__(
        self, context: RoundedArithmetic, data: Any, factors: tuple[Array, Array] | None = None
    ) -> None:
        self.context = context
        self.data: Array = np.asarray(data)
        self.factors = factors
        self.loose = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape


def _scalars_apart(primitive: Callable[..., Any]) -> Callable[..., Any]:
    """A primitive that combines loose scalars in binary64, and rounds one that meets an array."""

    @functools.wraps(primitive)
    def apply(self: RoundedArithmetic, *arguments: Any, **options: Any) -> Any:
        if self.scalars is None:
            return primitive(self, *arguments, **options)
        values = [argument for argument in arguments if isinstance(argument, RoundedValue)]
        if not all(argument.loose for argument in values):
            entered = (
                argument if not _loose(argument) else self.unstored(argument.data)
                for argument in arguments
            )
            return primitive(self, *entered, **options)
        result = primitive(self.scalars, *arguments, **options)
        return self.scalar(result.data) if isinstance(result, RoundedValue) else result

    return apply


def _computed(ufunc: np.ufunc) -> Any:
    """The primitive that rounds what a ufunc gives."""

    def primitive(self: RoundedArithmetic, *values: Value) -> RoundedValue:
        return self._with(ufunc, *values)

    return _scalars_apart(primitive)


class RoundedArithmetic(Context):
    """Arithmetic in `format`; `storage` is the format that `store` rounds to, `format` by default.
    `seed` chooses the random order; cumulative sums may be `scanned`. With scalars="binary64",
    params are held and combined in binary64, and rounded to the format where they meet an array.

    Special values follow IEEE 754: a formula's first form in RoundedArithmetic("float64") is the
    reference where an input is not finite.
    """

    flushes = False  # a power that is flushed stays zero

    def __init__(
        self,
        format: Format | str,
        storage: Format | str | None = None,
        order: Order = "sequential",
        fma: bool = False,
        seed: int = 0,
        scalars: Literal["working", "binary64"] = "working",
        scanned: ScanOrder | None = None,
    ) -> None:
        self.format = formats.get(format)
        self.storage = self.format if storage is None else formats.get(storage)
        self.order = order
        self.fma = fma
        self.seed = seed
        self.scanned = scanned
        apart = scalars == "binary64" and self.format != formats.BINARY64
        self.scalars = RoundedArithmetic("float64") if apart else None
        self.name = f"{type(self).__name__}({self.format})"
        if self.format.dtype is None:
            raise ValueError(f"{self.format} is not a format to compute in: it has no arithmetic.")

    def value(self, array: Any) -> RoundedValue:
        """An array of any format, converted to this one."""
        array = np.asarray(array)
        if array.dtype is not self.format.dtype:
            array = formats.cast(array, self.format)
        return RoundedValue(self, array)

    def unstored(self, array: Any) -> RoundedValue:
        """A scalar, in the form in which it meets an array."""
        return self.value(array)

    def array(self, values: Array) -> RoundedValue:
        return self.value(values)

    def scalar(self, data: Any) -> RoundedValue:
        """A loose value."""
        value = RoundedValue(self, data)
        value.loose = True
        return value

    def number(self, value: Any) -> RoundedValue:
        """The nearest number of the format, or of the scalars' format, rounded once from the
        exact."""
        if self.scalars is not None:
            return self.scalar(self.scalars.number(value).data)
        small = type(value) is int and abs(value) <= 1 << 53
        if small or (type(value) is float and math.isfinite(value)):  # one rounding, the format's
            return self.unstored(value + 0.0)  # the number 0 has no sign
        exact = fraction(value)
        try:
            wide = float(exact)
        except OverflowError:
            wide = np.inf if exact > 0 else -np.inf
        if np.isfinite(wide) and self.format.p < 53 and wide != exact:
            # where the float64 is a tie, the exact number is not
            towards = np.inf if exact > wide else -np.inf
            beside = float(np.nextafter(wide, towards))
            if float(self.unstored(beside).data) != float(self.unstored(wide).data):
                wide = beside
        return self.unstored(wide)

    def pi(self) -> RoundedValue:
        return self.unstored(np.pi)

    def _with(self, operation: Any, *values: Value) -> RoundedValue:
        with np.errstate(all="ignore"):
            return self.value(operation(*(data(value) for value in values)))

    def plus(self, a: Array, b: Array) -> Array:
        """fl(a + b), of arrays."""
        with np.errstate(all="ignore"):
            return np.asarray(a + b).astype(self.format.storage, copy=False)

    def times(self, a: Array, b: Array) -> Array:
        """fl(a b), of arrays."""
        with np.errstate(all="ignore"):
            return np.asarray(a * b).astype(self.format.storage, copy=False)

    @_scalars_apart
    def add(self, a: Value, b: Value) -> RoundedValue:
        for product, addend in ((a, b), (b, a)):
            factors = _factors(product)
            if factors is not None:
                return self.value(multiply_add(*factors, data(addend)))
        return self.value(self.plus(data(a), data(b)))

    @_scalars_apart
    def subtract(self, a: Value, b: Value) -> RoundedValue:
        factors = _factors(b)
        if factors is not None and _factors(a) is None:
            return self.value(multiply_add(-factors[0], factors[1], data(a)))
        return self.add(a, self.negative(b))

    @_scalars_apart
    def multiply(self, a: Value, b: Value) -> RoundedValue:
        product = self.value(self.times(data(a), data(b)))
        if self.fma:
            product.factors = data(a), data(b)
        return product

    divide, maximum = _computed(np.divide), _computed(np.maximum)
    negative, absolute = _computed(np.negative), _computed(np.absolute)

    @_scalars_apart
    def power(self, a: Value, exponent: int) -> RoundedValue:
        """One multiplication per step; by repeated squaring where that would take long."""
        if exponent < 0:
            return self.divide(self.number(1), self.power(a, -exponent))
        if exponent > _STEPS:
            half = self.power(a, exponent // 2)
            half = self.multiply(half, half)
            return self.multiply(half, a) if exponent % 2 else half
        if exponent > _FEW and (self.flushes or not self._own("value", "times")):  # in one call
            with np.errstate(all="ignore"):
                steps = np.broadcast_to(data(a), (exponent, *a.shape))
                before, last = map(self.value, np.multiply.accumulate(steps, axis=0)[-2:])
            last.factors = (data(before), data(a)) if self.fma else None
            return last
        result = self.value(np.ones(data(a).shape))
        for _ in range(exponent):
            result = self.multiply(result, a)
        return result

    def _own(self, *methods: str) -> bool:
        """Whether this arithmetic has other methods of these names than `RoundedArithmetic`."""
        return any(getattr(type(self), m) is not vars(RoundedArithmetic)[m] for m in methods)

    @_scalars_apart
    def primitive(self, name: str, a: Value) -> RoundedValue:
        if name == "sqrt":
            return self._with(np.sqrt, a)
        return self.value(functions.rounded(name, data(a), self.format))

    def library(
        self, formula: Callable[..., Value], limit: int, inputs: Sequence[Value], *beside: Any
    ) -> RoundedValue:
        """Double-doubles or Arb, rounded; IEEE 754's special values where these have no value."""
        from refkernels.contexts import objects
        from refkernels.contexts.arb import Arb
        from refkernels.contexts.double_double import DoubleDouble
        from refkernels.contexts.double_double_value import parts

        def read(xp: Context) -> Value:
            arguments = (
                xp.array(data(argument)) if isinstance(argument, Value) else argument
                for argument in (*inputs, *beside)
            )
            with np.errstate(all="ignore"):
                return formula(xp, *arguments)

        sharp, plain = parts(read(DoubleDouble())), data(read(RoundedArithmetic("float64")))
        known = sharp.tail.radius <= np.abs(sharp.head) * 2.0**-60
        exact = np.where(known, sharp.head, plain)
        if not np.all(known | ~np.isfinite(plain)):
            with Arb() as xp:
                balls = np.broadcast_to(objects.data(read(xp)), exact.shape)
            mids = np.array([float(x.mid()) if x.is_finite() else np.nan for x in balls.flat])
            mids = mids.reshape(exact.shape)
            exact = np.where(known | np.isnan(mids), exact, mids)
        return self.value(exact)

    def sum(self, a: Value, axis: int = -1) -> RoundedValue:
        factors = [
            np.moveaxis(np.broadcast_to(part, a.shape), axis, -1) for part in _factors(a) or ()
        ]
        terms = np.moveaxis(data(a), axis, -1)
        return self.value(np.expand_dims(self._sum(terms, factors), axis))

    def _sum(self, terms: Array, factors: Sequence[Array] = ()) -> Array:
        """Over the last axis, in the order chosen, every partial sum rounded; each term is the
        product of factors where these are given."""
        if self.order == "pairwise":
            return self._pairwise(terms, factors)
        if self.order == "NumPy's":  # which depends on the processor
            return np.asarray(np.sum(np.ascontiguousarray(terms), axis=-1, dtype=terms.dtype))
        order = self._places(terms.shape[-1])
        terms, factors = terms[..., order], [part[..., order] for part in factors]
        total = np.zeros(terms.shape[:-1], terms.dtype)
        length = max(_BLOCK // max(total.size, 1), 1)
        for start in range(0, terms.shape[-1], length):
            block = slice(start, start + length)
            if factors:
                total = self._fused(factors[0][..., block], factors[1][..., block], total)
            else:
                total = self.running(total, terms[..., block])[..., -1]
        return total

    def _places(self, n: int) -> Any:
        """The order of n terms."""
        if self.order == "random":
            return np.random.default_rng([self.seed, n]).permutation(n)
        return slice(None, None, -1 if self.order == "reversed" else 1)

    def running(self, total: Array, terms: Array) -> Array:
        """The partial sums over the last axis, begun with `total`: NumPy's are in sequence."""
        with np.errstate(all="ignore"):
            chain = np.concatenate([total[..., None], terms], axis=-1)
            return np.add.accumulate(chain, axis=-1, dtype=terms.dtype)[..., 1:]

    def _fused(self, a: Array, b: Array, total: Array) -> Array:
        if a.dtype.type not in _WITH_KERNELS:
            for k in range(a.shape[-1]):
                total = multiply_add(a[..., k], b[..., k], total)
            return total
        flat = total.reshape(-1).copy()
        shape = flat.size, a.shape[-1]
        rows = [np.ascontiguousarray(part).reshape(shape) for part in (a, b)]
        sums_in_order.fused(*rows, flat)
        return flat.reshape(total.shape)

    def _pairwise(self, terms: Array, factors: Sequence[Array]) -> Array:
        """An FMA adds the first factors of each pair to the rounded product of the second."""
        with np.errstate(all="ignore"):
            while terms.shape[-1] > 1:
                even = terms.shape[-1] - terms.shape[-1] % 2
                right = terms[..., 1:even:2]
                if factors:
                    first = [part[..., 0:even:2] for part in factors]
                    pairs, factors = multiply_add(first[0], first[1], right), ()
                else:
                    pairs = self.plus(terms[..., 0:even:2], right)
                terms = np.concatenate([pairs, terms[..., even:]], axis=-1)
            return terms[..., 0] if terms.shape[-1] else np.zeros(terms.shape[:-1], terms.dtype)

    def max(self, a: Value, axis: int = -1) -> RoundedValue:
        return self._with(lambda part: np.max(part, axis=axis, keepdims=True), a)

    def cumsum(self, a: Value, axis: int = -1) -> RoundedValue:
        terms = np.moveaxis(data(a), axis, -1)
        total = np.zeros(terms.shape[:-1], terms.dtype)
        total = self._scanned(terms, self.scanned) if self.scanned else self.running(total, terms)
        return self.value(np.moveaxis(total, -1, axis))

    def _scanned(self, terms: Array, scan: ScanOrder) -> Array:
        terms = terms.copy()
        for start in range(0, terms.shape[-1], scan.block):
            block, total = terms[..., start : start + scan.block], terms[..., start - 1 : start]
            if start and not scan.later:
                block[..., :1] = self.plus(total, block[..., :1])
            for late, early in _adders(scan.network, block.shape[-1]):
                block[..., late] = self.plus(block[..., early], block[..., late])
            if start and scan.later:
                block[...] = self.plus(total, block)
        return terms

    def prod(self, a: Value, axis: int = -1) -> Value:
        """In the order of sums."""
        if self.order == "pairwise" or not data(a).shape[axis]:
            return super().prod(a, axis)
        terms = np.moveaxis(data(a), axis, -1)
        with np.errstate(all="ignore"):
            running = np.multiply.accumulate(terms[..., self._places(terms.shape[-1])], axis=-1)
        return self.value(np.expand_dims(running[..., -1], axis))

    def welford(self, a: Value, axis: int = -1) -> tuple[Value, Value]:
        """Streaming."""
        if data(a).dtype.type not in _WITH_KERNELS:
            return super().welford(a, axis)
        terms = np.moveaxis(data(a), axis, -1)
        shape = math.prod(terms.shape[:-1]), terms.shape[-1]
        rows = np.ascontiguousarray(terms[..., self._places(shape[1])]).reshape(shape)
        statistics = np.zeros((2, shape[0]), rows.dtype)
        if rows.size < _MANY:
            _stream(rows, *statistics)
        else:
            sums_in_order.welford(rows, *statistics)
        mean, squares = (part.reshape(terms.shape[:-1]) for part in statistics)
        return self.value(np.expand_dims(mean, axis)), self.value(np.expand_dims(squares, axis))

    def matmul(self, a: Value, b: Value) -> RoundedValue:
        """Many by a kernel; else a block of a's rows at a time, so that the products fit into
        memory."""
        many = math.prod(data(a).shape) * data(b).shape[-1] >= _MANY
        if many and self._by_kernel(data(a), data(b)):
            order = self._places(a.shape[-1])
            left, right = data(a)[..., order], data(b)[..., order, :]
            return self.value(_products(left, right, self.fma))
        left, right = data(a)[..., :, None, :], np.swapaxes(data(b), -1, -2)[..., None, :, :]
        batch = np.broadcast_shapes(left.shape[:-3], right.shape[:-3])
        length = max(_BLOCK // max(math.prod((*batch, *right.shape[-2:])), 1), 1)
        parts = []
        for start in range(0, max(left.shape[-3], 1), length):
            block = left[..., start : start + length, :, :]
            with np.errstate(all="ignore"):
                products = self.times(block, right)
            factors = np.broadcast_arrays(block, right) if self.fma else ()
            parts.append(self._sum(products, factors))
        return self.value(np.concatenate(parts, axis=-2))

    def _by_kernel(self, a: Array, b: Array) -> bool:
        """Whether products are added one by one, each result rounded to the format alone."""
        in_order = self.order in ("sequential", "reversed", "random")
        known = a.dtype.type in _WITH_KERNELS
        return in_order and known and not self._own("times", "plus", "running", "_sum")

    def pivot(self, a: Value, axis: int = -1) -> RoundedValue:
        return self.max(a, axis)

    def store(self, a: Value) -> RoundedValue:
        return self.value(formats.cast(data(a), self.storage))

    def narrow(self, a: Value, format: str) -> RoundedValue:
        return self.value(formats.cast(data(a), formats.get(format)))

    @_scalars_apart
    def less(self, a: Value, b: Value) -> Mask:
        yes = np.asarray(data(a) < data(b))
        return Mask(yes, ~yes)

    @_scalars_apart
    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> RoundedValue:
        chosen = mask.yes if isinstance(mask, Mask) else mask
        return self._with(lambda x, y: np.where(chosen, x, y), a, b)

    @_scalars_apart
    def step(self, a: Value, grid: NumberGrid) -> RoundedValue:
        return self._with(lambda x: grid(np.asarray(x, np.float64)), a)

    def rearrange(self, change: Any, *values: Value) -> RoundedValue:
        return self._with(change, *values)

    def scatter_add(self, a: Value, index: Index, length: int) -> RoundedValue:
        rows, places = data(a), index.reshape(-1)
        total = np.zeros((length, *rows.shape[1:]), rows.dtype)
        with np.errstate(all="ignore"):
            if not self._own("plus") and rows.dtype.type in _WITH_KERNELS:
                np.add.at(total, places, rows)  # row after row
                return self.value(total)
            # The first row of every place at once, then the second of each, and so on.
            order = np.argsort(places, kind="stable")
            turns = np.arange(order.size) - np.searchsorted(places[order], places[order])
            ends = np.cumsum(np.bincount(turns))[:-1]
            for turn in np.split(order[np.argsort(turns, kind="stable")], ends):
                total[places[turn]] = self.plus(total[places[turn]], rows[turn])
        return self.value(total)


def _adders(network: Network, n: int) -> list[tuple[Array, Array]]:
    """By layer, the places of n partial sums, and of those that are added to them."""
    places, steps = np.arange(n), [1 << j for j in range(n.bit_length())]
    if network == "Brent-Kung":
        starts = [(2 * s - 1, s) for s in steps] + [(3 * s - 1, s) for s in reversed(steps)]
        return [(places[start :: 2 * s], places[start :: 2 * s] - s) for start, s in starts]
    if network == "Kogge-Stone":  # Hillis and Steele's
        return [(places[s:], places[:-s]) for s in steps]
    return [((late := places[places & s > 0]), late // s * s - 1) for s in steps]


def _stream(rows: Array, mean: Array, squares: Array) -> None:
    """`sums_in_order.welford`, of all rows at once."""
    with np.errstate(all="ignore"):
        for count, column in enumerate(np.ascontiguousarray(rows.T), 1):
            before = column - mean
            mean += before / rows.dtype.type(count)
            squares += before * (column - mean)


def _products(a: Array, b: Array, by_fma: bool) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.zeros((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    left, right = (np.broadcast_to(part, (*batch, *part.shape[-2:])) for part in (a, b))
    for i in np.ndindex(*batch):
        sums_in_order.products(*map(np.ascontiguousarray, (left[i], right[i])), result[i], by_fma)
    return result


def _factors(value: Value) -> tuple[Array, Array] | None:
    if not isinstance(value, RoundedValue):
        raise not_a_value(value)
    return value.factors


def _loose(value: Any) -> bool:
    return isinstance(value, RoundedValue) and value.loose


def data(value: Value) -> Array:
    """The array of a Value."""
    if not isinstance(value, RoundedValue):
        raise not_a_value(value)
    return value.data
