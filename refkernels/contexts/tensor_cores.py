"""TensorCores: matrix products as matrix instructions add them; the rest as in `RoundedArithmetic`.

An instruction adds k exact products and the accumulator at once: all terms are cut to F fraction
bits below the largest exponent among them, a product's being the sum of its factors', and the sum
is cut to the accumulator's digits, or rounded to them. Instructions follow one another along K.

Hopper's are measured on an H100, every bit; the others are from the literature. Fasi, Higham,
Mikaitis and Pranesh (2021), doi:10.7717/peerj-cs.330; MMA-Sim (2025), arXiv:2511.10909; Khattak and
Mikaitis (2025), arXiv:2512.07004.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic import blas, formats
from refkernels.arithmetic.bits import EXPONENT, bits_of, float_of
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, BINARY64, TF32, Format
from refkernels.arithmetic.grids import NumberGrid, grid
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.matrix_instructions import CORES, FLOAT8, Core
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedArithmetic, RoundedValue, data


class Split(NamedTuple):
    """How factors of more digits are taken: as parts, each what is left, in its format by its
    rounding; and which parts are multiplied, in order, the largest last. `computed`: only of those
    that no format of 16 bits holds, as a result that is a factor beside inputs."""

    parts: tuple[tuple[Any, Callable[[Any, Any], Any]], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ((0, 0),)
    computed: bool = False

    def of(self, a: Any) -> list[Any]:
        if self.computed and any(np.array_equal(a, _NEAREST(a, held)) for held in _SHORT):
            return [a]
        parts = []
        for format, convert in self.parts:
            parts.append(convert(a, format).astype(np.float64))
            a = a - parts[-1]
        return parts or [a]


_THREE = ((1, 0), (0, 1), (0, 0))
_SIX = ((1, 1), (2, 0), (0, 2), *_THREE)
_NEAREST, _AWAY, _CUT = formats.round_to, formats.round_ties_away, formats.truncate_to
_SHORT = BINARY16, BFLOAT16
_ON_GRID: Callable[[Any, NumberGrid], Any] = lambda a, to: to(a)  # noqa: E731
_BFLOAT16 = (BFLOAT16, _NEAREST)
_E4M3, _E5M2 = grid("float8_e4m3fn"), grid("float8_e5m2")
_SCALED = replace(_E4M3, emin=_E4M3.emin - 8)  # by 2^8 before
SPLITS = {
    "": Split(),
    "TF32": Split(((TF32, _NEAREST),)),
    "TF32 by truncation": Split(((TF32, _CUT),)),
    "TF32 with ties away": Split(((TF32, _AWAY),)),
    "bfloat16": Split((_BFLOAT16,)),
    "float16": Split(((BINARY16, _NEAREST),)),
    "3xTF32": Split(((TF32, _AWAY), (TF32, _CUT)), _THREE),
    "3xTF32 with rounded rests": Split(((TF32, _AWAY), (TF32, _AWAY)), _THREE),
    "bf16x3": Split((_BFLOAT16,) * 2, _THREE),
    "bf16x6": Split((_BFLOAT16,) * 3, _SIX),
    "bf16x9": Split((_BFLOAT16,) * 3, ((2, 2), (2, 1), (1, 2), *_SIX)),
    "computed factors in bfloat16": Split((_BFLOAT16,), computed=True),
    "computed factors in float16": Split(((BINARY16, _NEAREST),), computed=True),
    "computed factors in e4m3": Split(((_E4M3, _ON_GRID),), computed=True),
    "computed factors, times 2^8, in e4m3": Split(((_SCALED, _ON_GRID),), computed=True),
    "computed factors in e5m2": Split(((_E5M2, _ON_GRID),), computed=True),
}


BINARY8 = 4  # digits of e4m3
_BLOCKS, _TILES = (32, 64, 16, 128, 1 << 30), (64, 32, 16, 8)


class Multiplication(NamedTuple):
    """How a kernel multiplies matrices. The sums of ranges of `length` terms are added in binary32
    in order, rounded to `stored` first if that is given, or `added` in it; within a range, every
    `block` terms are summed from zero and added in binary32. 0: all terms at once."""

    core: Core
    split: str = ""
    block: int = 0
    length: int = 0
    stored: Format | None = None
    added: bool = False

    def product(self, a: Any, b: Any) -> Any:
        """(..., M, K) times (..., N, K), float64 arrays of exact numbers, in float64."""
        total = None
        for part in _ranges(a.shape[-1], self.length):
            partial_sum = self._of_range(a[..., part], b[..., part])
            if self.stored is not None:
                partial_sum = formats.round_to(partial_sum, self.stored).astype(np.float64)
            total = partial_sum if total is None else _single(total + partial_sum)
            if self.added and self.stored is not None:
                total = formats.round_to(total, self.stored).astype(np.float64)
        return total

    def _of_range(self, a: Any, b: Any) -> Any:
        split, stacked = SPLITS[self.split], int(np.prod(a.shape[:-2]))  # -1 fails without terms
        left, right = split.of(a), split.of(b)
        total = np.zeros((*a.shape[:-1], b.shape[-2]))
        for block in _ranges(a.shape[-1], self.block):
            result = np.zeros_like(total)
            for i, j in split.pairs:
                factors = [np.ascontiguousarray(part[..., block]) for part in (left[i], right[j])]
                if self.core.k:
                    arrays = (x.reshape(stacked, *x.shape[-2:]) for x in (*factors, result))
                    add_products(*arrays, self.core)
                else:
                    result += blas.product(factors[0], np.swapaxes(factors[1], -1, -2))
            total = _single(total + result) if self.block else result
        return total

    def name(self, architecture: str) -> str:
        """What it is called: "Hopper tensor core, TF32 by truncation, 8 products at a time"."""
        literature = "" if architecture == "hopper" else " (from the literature)"
        if not architecture:
            steps = "in sequence" if self.core.k == 1 else f"blocks of {self.core.k} in sequence"
            inputs = f", {self.split} inputs" if self.split else ""
            rounding = ", products rounded" if self.core.rounds else ""
            return f"{steps} in {self.core.narrow or BINARY32}{inputs}{rounding}"
        words = [f"{architecture.capitalize()} tensor core{literature}", self.split]
        words.append(f"{self.core.k} products at a time")
        words.append("float16 accumulator" if self.core.narrow else "")
        words.append("14-bit accumulator" if self.core.p == 14 else "")
        words.append(f"added in float32 every {self.block} terms" if self.block else "")
        words.append(f"K in ranges of {self.length}" if self.length else "")
        words.append(f"their sums in {self.stored}" if self.stored else "")
        words.append("and added in it" if self.added else "")
        return ", ".join(filter(None, words))


def multiplications(digits: int, terms: int) -> Iterator[tuple[str, Multiplication]]:
    """By architecture, the ways to sum so many products of factors of so many digits, the
    likeliest first."""
    for architecture, core in FLOAT8.items() if digits <= BINARY8 else ():
        for block in (0, 128, 64, 256):
            yield architecture, Multiplication(core, block=block)
    of_inputs = (name for name, split in SPLITS.items() if not split.computed)
    for split in (name for name in of_inputs if bool(name) == (digits > BINARY16.p)):
        for architecture, core in CORES.items():
            if split and architecture == "volta":
                continue  # it has no TF32, and no bfloat16
            core = core._replace(k=core.k // (2 if "TF32" in split else 1))
            if len(SPLITS[split].parts) > 1:
                blocks = dict.fromkeys(min(block, terms) for block in _BLOCKS)
                yield from ((architecture, Multiplication(core, split, b)) for b in blocks)
                continue
            if split and architecture == "hopper":  # and by no matrix instruction
                for rounds in (False, True):
                    yield "", Multiplication(Core(1, 40, BINARY32.p, True, rounds), split)
            lengths = (0, *_lengths(terms))
            yield from ((architecture, Multiplication(core, split, 0, n)) for n in lengths)
            if not split:
                half = Multiplication(core._replace(p=BINARY16.p, nearest=True))
                yield architecture, half
                narrow = itertools.product((BINARY16, BFLOAT16), lengths[1:], (False, True))
                for stored, n, added in narrow:
                    yield architecture, Multiplication(core, "", 0, n, stored, added)


def narrow_accumulators(format: Format, narrow: bool) -> Iterator[Multiplication]:
    """Accumulators of 16 bits that add exact sums of k products, or rounded products; with `narrow`
    also of factors rounded to the format."""
    for split in ("", format.name) if narrow else ("",):
        for k, rounds in ((1, False), (1, True), (4, False), (8, False), (16, False), (32, False)):
            yield Multiplication(Core(k, 40, format.p, True, rounds), split)


def _lengths(terms: int) -> list[int]:
    """The ranges into which kernels cut K, of whole tiles."""
    cut = {-(-terms // (parts * tile)) * tile for parts in range(2, 65) for tile in _TILES}
    return sorted((length for length in cut if length < terms), reverse=True)


def _single(values: Any) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _ranges(terms: int, length: int) -> Iterator[slice]:
    step = length or max(terms, 1)
    return (slice(start, min(start + step, terms)) for start in range(0, max(terms, 1), step))


class TensorCores(RoundedArithmetic):
    """Arithmetic in `format`, 16 bits in binary32; products by `how`, by default those of a `core`
    for factors of 16 bits; `options` are those of `RoundedArithmetic`. `digits`: the most that a
    factor of a product had, where these were few."""

    digits = 0

    def __init__(
        self,
        format: Format | str,
        core: str = "hopper",
        how: Multiplication | None = None,
        **options: Any,
    ) -> None:
        storage = formats.get(format)
        super().__init__(BINARY32 if storage.p < BINARY32.p else storage, storage, **options)
        self._how = how or Multiplication(CORES[core])

    def matmul(self, a: Value, b: Value) -> RoundedValue:
        left, right = data(a).astype(np.float64), np.swapaxes(data(b).astype(np.float64), -1, -2)
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        left, right = (np.broadcast_to(part, batch + part.shape[-2:]) for part in (left, right))
        few = all((np.ldexp(np.frexp(part)[0], BINARY8) % 1 == 0).all() for part in (left, right))
        self.digits = max(self.digits, BINARY8 if few else BINARY64.p)
        with np.errstate(over="ignore"):
            return self.value(self._how.product(left, right))


@njit
def add_products(a: Any, b: Any, c: Any, core: Any) -> None:
    """Adds each a (M, K) times b (N, K) to the accumulators c (M, N), of float64 numbers, stacked.
    Terms are cut in units of the last fraction bit: at most 2^(F + 2) each, so that float64 adds
    them exactly."""
    k, fraction, p, nearest, rounds = core
    digits = ~((np.int64(1) << np.int64(53 - p)) - 1)
    for n, i, j in np.ndindex(c.shape):
        total = c[n, i, j]
        for start in range(0, a.shape[2], k):
            stop = min(start + k, a.shape[2])
            top = _exponent(total)
            for t in range(start, stop):
                top = max(top, _exponent(a[n, i, t]) + _exponent(b[n, j, t]))
            top = min(max(top, -900), 900)
            scale = float_of(np.int64(1023 + fraction - top) << 52)
            units = np.trunc(total * scale)
            for t in range(start, stop):
                product = a[n, i, t] * b[n, j, t]
                units += np.trunc((_nearest(product, p) if rounds else product) * scale)
            total = units / scale
            total = _nearest(total, p) if nearest else float_of(bits_of(total) & digits)
        c[n, i, j] = total


@njit(inline="always")
def _exponent(x: float) -> Any:
    return ((bits_of(x) & EXPONENT) >> 52) - 1023


@inner
def _nearest(x: float, p: int) -> float:
    """Rounded to float16, bfloat16 or float32, ties to even."""
    least = -14 if p == 11 else -126
    largest = 65504.0 if p == 11 else (2.0 - 2.0 ** (1 - p)) * 2.0**127
    exponent = min(max(_exponent(x), least), 900)
    scale = float_of(np.int64(1022 + p - exponent) << 52)
    rounded = np.rint(x * scale) / scale
    return np.copysign(np.inf, x) if abs(rounded) > largest else rounded
