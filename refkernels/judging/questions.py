"""What an op can be asked, and a kernel: the questions that the op takes, the inputs that a kernel
says it takes, the op's own cases, with integers and params that no signature says, and shapes that
no kernel has seen, by the letters of the signature.

The length of a letter is drawn: primes, a tile and one more or less; in `odd`, 0, 1 and many.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.judging.data import Rng, Shapes, longest_exact
from refkernels.op import Case, Direction, Op, core
from refkernels.ops.function_formulas import definition
from refkernels.ops.letters import Argument

ELEMENTS = (2**14, 2**16, 2**19)  # of all inputs of a case, by the size of a round
Built = tuple[dict[str, Any], dict[str, Any]]  # inputs and params
AXES = frozenset(range(5))  # how many leading axes there may be
LENGTHS: Sequence[Sequence[int]] = (
    (5, 7, 13, 16, 17, 31, 33),
    (15, 17, 32, 61, 63, 64, 65, 67, 127, 129),
    (129, 251, 255, 256, 257, 509, 521, 1021, 1025),
)  # of a letter: in the first round, in the second, afterwards
SHORT = (2, 3, 5, 7)  # where many letters would make too much work
WORK = (2**14, 2**19, 2**24)  # the product of all lengths
TRIES = 20
WIDE = 2**16 + 3  # a length beyond the integers of 16 bits, and the rows of a grid
LONG = 2**17  # a letter's length, at least, beyond what kernels are tried on
TERMS, MANY = 2**9, 2**11  # of terms, each of which counts, and of other letters
MOST = 2**22  # the product of all lengths of what is long
USUAL = (512, 768, 1024, 2048, 4096)  # in models
TILE, TILES = 16, (128, 256, 384)
_ROWS: Sequence[Sequence[tuple[int, ...]]] = (
    ((3,), (2, 3), (7,)),
    ((17,), (3, 5), (2, 2, 3), (2, 1, 2, 3)),
    ((33,), (129,), (7, 11)),
)


def is_question(
    op: Op, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> bool:
    """Whether the op takes these shapes and params: a beta2 of 1.007 is refused."""
    try:
        definition(op).question(direction, inputs, params)
    except (ValueError, TypeError):
        return False
    return True


def is_float(array: Any) -> bool:
    return isinstance(array, np.ndarray) and formats.is_one(array.dtype)


def is_whole(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "iu"


@dataclass(frozen=True)
class KernelDomain:
    """The inputs that a kernel takes. `left_out`: optional ones that it does not take; `lengths`:
    the only ones, by letter; `dtypes`: the only formats of an input of integers or 8-bit numbers;
    `shapes`: those of its use, by input, which are asked first; `axes`: the numbers of leading axes
    or, if the op's cases give the shapes, of the first input; `allow_overflow` and `finite`: as for
    `judge`."""

    left_out: frozenset[str] = frozenset()
    lengths: Mapping[str, Sequence[int]] = field(default_factory=dict)
    dtypes: Mapping[str, Sequence[str]] | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    axes: frozenset[int] = AXES
    allow_overflow: bool | None = None
    finite: bool = False


ANYTHING = KernelDomain()


@with_default_fenv
def cases_of(op: Op, direction: Direction, dtype: str, domain: KernelDomain) -> list[Built]:
    """The inputs and params of an op's cases of the dtype and the direction, or else of the dtype,
    without the inputs that a kernel does not take, and in the formats that it takes."""
    only = domain.dtypes or {}

    def built(case: Case) -> Built:
        arrays, params = case.build(dtype)
        takes = (name for name in op.takes(direction) if name not in domain.left_out)
        return {n: arrays[n] for n in takes if n in arrays}, {**op.params, **params}

    def fits(case: Case) -> bool:
        inputs, params = built(case)
        own = {**params, **{n: a.dtype.name for n, a in inputs.items() if n in only}}
        return all(own.get(name, names[0]) in names for name, names in only.items())

    known = [case for case in op.cases() if not only or fits(case)]
    of_dtype = [case for case in core(known, dtype) if dtype in case.dtypes]
    chosen = [case for case in of_dtype if direction in case.directions]
    chosen = chosen or [case for case in known if dtype in case.dtypes]
    return [built(case) for case in chosen if case.regime != "invalid"]  # may be answered anyhow


def first_axes(inputs: Mapping[str, Any]) -> int:
    """How many axes the first input has, or the first array of a list."""
    value = next(iter(inputs.values()))
    return int(np.ndim(value[0] if isinstance(value, list | tuple) else value))


def elements(inputs: Mapping[str, Any]) -> int:
    """Of all arrays."""
    lists = (value if isinstance(value, list) else [value] for value in inputs.values())
    return sum(np.size(array) for arrays in lists for array in arrays)


def shape_of(value: Any) -> str:
    return f"of {len(value)}" if isinstance(value, list | tuple) else str(value.shape)


def with_marker(inputs: Mapping[str, Any], before: Any, after: Any) -> dict[str, Any]:
    """The inputs, in which integers equal to a param's old value (labels to ignore) have its new
    value."""
    if type(before) is not int or type(after) is not int:
        return dict(inputs)
    return {
        name: np.where(array == before, array.dtype.type(after), array)
        if isinstance(array, np.ndarray) and array.dtype.kind == "i"
        else array
        for name, array in inputs.items()
    }


@dataclass(frozen=True, eq=False)
class ShapeDrawer:
    """Draws shapes in a domain for `arguments`, by name. `coupled`: whether a letter's elements
    have to do with each other; `takes`: whether the op takes some shapes."""

    arguments: Mapping[str, Argument]
    domain: KernelDomain
    coupled: bool
    format: Format
    takes: Callable[[Shapes], bool]

    @cached_property
    def letters(self) -> list[str]:
        return list(dict.fromkeys(x for argument in self.arguments.values() for x in argument.own))

    @property
    def ranked(self) -> bool:
        """Whether the number of leading axes is open."""
        return any(argument.rows for argument in self.arguments.values())

    def drawn(
        self, rng: Rng, size: int, exact: bool = False, leading: tuple[int, ...] | None = None
    ) -> Shapes:
        """Shapes for a family: lengths drawn by letter, with no more work than the round allows;
        half of them whole tiles, for which kernels have other ways."""
        longest, usual = longest_exact(self.format) // 2 if exact else 1 << 30, LENGTHS[size]
        if rng.random() < 0.5:
            usual = [n for n in usual if n % TILE == 0]
        choices = [*_ROWS[size], *[()] * (len(self.letters) - 1)]
        rows = choices[int(rng.integers(len(choices)))] if leading is None else leading
        if not self.coupled and leading is None:
            rows = (*rows, int(rng.choice(LENGTHS[2])))  # each number is a question of its own
        rows = self.leading(rows)

        def length(letter: str, pool: Sequence[int]) -> int:
            fitting = [n for n in pool if n <= longest] or [max(min(longest, 4), 1)]
            return int(rng.choice(self.domain.lengths.get(letter) or fitting))

        lengths = {x: length(x, usual) for x in self.letters}
        for letter in rng.permutation(self.letters * TRIES):  # one after another is made short
            if math.prod((*rows, *lengths.values())) <= WORK[size]:
                break
            lengths[str(letter)] = length(letter, SHORT)
        return self.of_lengths(lengths, rows)

    def odd(self, rng: Rng, size: int) -> Iterator[Shapes]:
        """The length of each letter in turn 1, 0 and a large prime, and a multiple of
        tiles; no rows; a row without axis; many axes, one of length 1."""
        free = [x for x in self.letters if x not in self.domain.lengths]
        many = len(self.letters) > 2
        two_rows, pool = self.leading((2,)), SHORT if len(self.letters) > 3 else LENGTHS[0]
        for _ in range(TRIES):
            others = self._lengths({x: int(rng.choice(pool)) for x in self.letters}, rng)
            if self.takes(self.of_lengths(others, two_rows)):
                break
        plan = [({x: 1}, two_rows) for x in free]
        if self.ranked:
            axes = sorted({0, max(AXES)} & self.domain.axes)
            plan += [({}, self.leading((n,))) for n in (0, 1)]
            plan += [({}, (2, 1, 2, 2)[:n]) for n in axes]
        large = ((127, 1021, 8191), (67, 257, 1021))[many][size]
        plan += [({x: n}, two_rows) for x in free for n in (large, 0, int(rng.choice(TILES)))]
        plan += [] if self.letters else [({}, self.leading(((127, 1021, 65537)[size],)))]
        for lengths, rows in plan:
            yield self.of_lengths(self._lengths({**others, **lengths}, rng), rows)

    def alike(self, rng: Rng, axes: int = 0) -> Shapes:
        """One length for all letters, and for so many leading axes, or for the rows of one letter,
        a whole tile of a few: no axis tells its name."""
        n = TILE if len(self.letters) < 4 else int(rng.choice(SHORT))
        lengths = self._lengths(dict.fromkeys(self.letters, n), rng)
        rows = (n,) * axes or (() if len(self.letters) > 1 else (2, n))
        return self.of_lengths(lengths, self.leading(rows))

    def long(self, rng: Rng, size: int, related: Container[str]) -> Iterator[Shapes]:
        """One letter, a related one if any is, as long as in large models, beside short ones, with
        a leading axis and without one, in turn, as what follows; each letter one shorter than whole
        tiles, and one longer than a tile, where one term more or less shows; whole tiles; each
        related letter at usual lengths; many rows."""
        letters = [str(x) for x in rng.permutation(self.letters) if x not in self.domain.lengths]
        letters.sort(key=lambda x: x not in related)
        plan = [(x, LONG << size, 1) for x in letters[:1] * 2]
        plan += [(x, TERMS if x in related else MANY, -1) for x in letters]
        plan += [(x, TILES[0], 1) for x in letters]
        either = itertools.cycle(self.leading((1,) * int(n)) for n in rng.permutation(2))
        drawn = []
        for letter, least, more in plan:
            whole = int(rng.integers(least, 2 * least)) // TILES[0] * TILES[0]
            drawn.append(({letter: whole + more}, next(either)))
        tiles = int(MOST ** (1 / max(len(self.letters), 1))) // TILE
        if len(letters) > 1 and tiles:
            drawn.append((dict.fromkeys(letters, tiles * TILE), self.leading(())))
        drawn += [({x: n}, next(either)) for x in letters if x in related for n in USUAL]
        if self.ranked and len(letters) < 2:
            n = int(rng.integers(TERMS // 2, TERMS))
            m = (2 * LONG << min(2 * size, 2)) // n + int(rng.integers(1, 32))  # above 2^18 or 2^20
            drawn.append((dict.fromkeys(letters, n), self.leading((m if letters else n * m,))))
        for lengths, rows in drawn:
            chosen = self._lengths({**dict.fromkeys(self.letters, 2), **lengths}, rng)
            shapes = self.of_lengths(chosen, rows)
            if math.prod((*rows, *chosen.values())) <= MOST and self.takes(shapes):
                yield shapes

    def large(self, elements: int) -> Shapes:
        """Usual large lengths, and rows for so many elements of the first input."""
        usual = min(1024, 2 ** (24 // max(len(self.letters), 1)))
        lengths = {x: max(self.domain.lengths.get(x, [usual])) for x in self.letters}
        rows = elements // math.prod(lengths.values()) if len(self.letters) < 2 else 0
        return self.of_lengths(lengths, self.leading((rows,) if rows else ()))

    def wide(self, rng: Rng) -> Iterator[Shapes]:
        """Beside lengths of 2, so many rows; and one letter of that length, of those that the op
        takes."""
        short = dict.fromkeys(self.letters, 2)
        if self.ranked:
            yield self.of_lengths(short, self.leading((WIDE,)))
        for letter in rng.permutation(self.letters):
            shapes = self.of_lengths({**short, str(letter): WIDE}, self.leading((2,)))
            if self.takes(shapes):
                yield shapes
                return

    def leading(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        """The lengths of the leading axes, for a number of axes that the kernel takes: axes are
        left out, or axes of length 2 added."""
        if not self.domain.axes or len(rows) in self.domain.axes:
            return rows
        number = min(self.domain.axes, key=lambda count: (abs(count - len(rows)), count))
        return (*(2,) * (number - len(rows)), *rows[len(rows) - min(number, len(rows)) :])

    def of_lengths(self, lengths: Mapping[str, int], rows: tuple[int, ...]) -> dict[str, Any]:
        each = self.arguments.items()
        return {n: (*rows[: a.rows * len(rows)], *(lengths[x] for x in a.own)) for n, a in each}

    def _lengths(self, others: Mapping[str, int], rng: Rng) -> dict[str, int]:
        return {x: int(rng.choice(self.domain.lengths.get(x) or [n])) for x, n in others.items()}
