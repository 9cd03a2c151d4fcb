"""Challenges: inputs by families, in shapes that no kernel has seen.

Lengths are drawn for each letter of the op's signature: 1, primes, a tile and one more or less, and
0. If inputs are integers or lists, whose values mean more than a signature says, the op's own cases
give the shapes and those inputs, and only the floating ones are redrawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.mode import in_default_mode
from refkernels.judging import data
from refkernels.judging.data import Draw, InputRoles, Shapes
from refkernels.judging.standard import Challenge
from refkernels.op import Direction, Op, core

Array = npt.NDArray[Any]
FAMILIES: dict[str, Draw] = {
    "typical": data.typical,
    "exact": data.integers,
    "one_hot": data.one_hot,
    "powers": data.powers,
    "two_valued": data.two_valued,
    "positive": data.positive,
    "scales": data.scales,
    "shifted": data.shifted,
    "mixed": data.mixed,
    "special": data.special,
}
"""By name. The families "shapes", "strides" and "hard" are drawn in other ways."""
LENGTHS: Sequence[Sequence[int]] = (
    (5, 7, 13, 16, 17, 31, 33),
    (15, 17, 32, 61, 63, 64, 65, 67, 127, 129),
    (129, 251, 255, 256, 257, 509, 521, 1021, 1025),
)  # of a letter: in the first round, in the second, afterwards
SHORT = (2, 3, 5, 7)  # where many letters would make too much work
_ROWS: Sequence[Sequence[tuple[int, ...]]] = (
    ((3,), (2, 3), (7,)),
    ((17,), (3, 5), (2, 2, 3)),
    ((33,), (129,), (7, 11)),
)
AXES = frozenset(range(5))  # how many leading axes there may be
_WORK = (2**14, 2**19, 2**24)  # the product of all lengths
_ELEMENTS = (2**14, 2**16, 2**19)  # of all inputs of a case
_TRIES = 20


@dataclass(frozen=True, eq=False)
class Drawer:
    """Draws the challenges of one op. `left_out`: optional inputs that the kernel does not take;
    `lengths`: the only lengths that it takes, by letter; `axes`: the numbers of leading axes that
    it takes or, if the op's cases give the shapes, the numbers of axes of the first input."""

    op: Op
    direction: Direction
    dtype: str
    left_out: frozenset[str] = frozenset()
    lengths: Mapping[str, Sequence[int]] | None = None
    axes: frozenset[int] = AXES

    @cached_property
    def roles(self) -> InputRoles:
        built = [self._built(case) for case in self._cases()[:8]]
        takes = self.op.takes(self.direction)
        signed = {n for arrays, _ in built for n, a in arrays.items() if _floats(a) and _low(a) < 0}
        floating = {n for arrays, _ in built for n, a in arrays.items() if _floats(a)}
        positive = {n for n in takes if n in floating and n not in signed}
        if not self.op.elementwise:  # one element whose answer is NaN may spoil the whole output
            usual = [arrays for arrays, params in built if params == dict(self.op.params)]
            smallest = min(usual, key=_elements, default={})
            positive |= {n for n in floating if self._spoils(n, smallest)}
        return data.roles_of(self.op, self.direction, frozenset(positive))

    def _spoils(self, name: str, arrays: Mapping[str, Any]) -> bool:
        """Whether negative numbers in an input make every output NaN throughout."""
        if name not in arrays or not arrays[name].size:
            return False
        negative = (-np.abs(arrays[name]) - 0.5).astype(arrays[name].dtype)
        answers = [
            self.op.plain(self.direction, inputs, self.op.params, self._format)
            for inputs in (arrays, {**arrays, name: negative})
        ]
        usual, spoilt = (
            [bool(np.all(np.isnan(to_float64(array)))) for array in outputs.values()]
            for outputs in answers
        )
        return all(spoilt) and not any(usual)

    @property
    def summed(self) -> bool:
        """Whether every right kernel gives the same bits for integers."""
        return bool(self.op.sums) or (self.op.total == "sum" and self.direction == "forward")

    def round(self, rng: np.random.Generator, number: int) -> Iterator[Challenge]:
        """One challenge of each family, and several shapes and layouts; later rounds are larger."""
        size = min(number, 2)
        for family in FAMILIES:
            if family != "exact" or self.summed:
                yield from self._some(family, rng, size)
        for name in self._other_inputs:
            yield from self._some("special", rng, size, data.nan_in(name))
        if self.free:
            for shapes in self._odd_shapes(rng, size):
                yield from self._drawn("shapes", data.typical, rng, shapes)
            for layout in _LAYOUTS:
                yield from self._laid_out(layout, rng, size)
        yield from self._hard(size)
        yield from self._other_params(rng)

    @property
    def ranked(self) -> bool:
        """Whether the signature leaves the number of leading axes open."""
        return self.free and any(argument.rows for argument in self._needed.values())

    @cached_property
    def free(self) -> bool:
        """Whether the signature alone determines the possible shapes: there are no integers and no
        lists, and no length follows from others, as in a convolution's gradient."""
        if any(argument.kind != "float" or argument.several for argument in self._needed.values()):
            return False
        rng = np.random.default_rng(0)
        shapes = (self._shapes(rng, 0) for _ in range(_TRIES))
        return bool(self.lengths) or any(
            any(self._drawn("typical", data.typical, rng, drawn)) for drawn in shapes
        )

    @property
    def _masks(self) -> frozenset[str]:
        """The optional inputs of integers or booleans, which only the cases give."""
        masks = {
            n
            for n, argument in self.roles.arguments.items()
            if argument.optional and argument.kind != "float"
        }
        return frozenset(masks - self.left_out)

    @property
    def _needed(self) -> dict[str, Any]:
        """The arrays that are drawn: all but optional ones of integers or booleans."""
        return {
            name: argument
            for name, argument in self.roles.arguments.items()
            if name not in self.left_out and not (argument.optional and argument.kind != "float")
        }

    @property
    def _other_inputs(self) -> list[str]:
        """The floating inputs in which `special` has no special values."""
        names = [n for n, argument in self._needed.items() if argument.kind == "float"]
        first = data.with_special(dict.fromkeys(names, ()), self.roles)
        return [name for name in names if name not in (first, self.roles.cotangent)]

    def _some(
        self, family: str, rng: np.random.Generator, size: int, draw: Draw | None = None
    ) -> Iterator[Challenge]:
        draw = draw or FAMILIES[family]
        if self.roles.first is None and draw in (data.one_hot, data.two_valued, data.shifted):
            return
        if self.free:
            for _ in range(_TRIES):
                shapes = self._shapes(rng, size, exact=family == "exact")
                if challenges := list(self._drawn(family, draw, rng, shapes)):
                    yield from challenges
                    break
        if not self.free or (self._masks and not self.lengths):
            yield from self._on_case(family, draw, rng, size)

    def typical(self, rng: np.random.Generator, rows: int) -> Challenge:
        """An ordinary challenge, for the calls of one process."""
        for challenge in self._typical(rng, self._leading((rows,))):
            return challenge
        if self.lengths:
            raise ValueError(f"{self.op.name} has no inputs of {self.lengths}: give other lengths.")
        raise ValueError(
            f"{self.op.name} {self.direction} cannot be judged in {self.dtype}: neither its "
            "signature nor its cases say what shapes there are."
        )

    def typicals(self, rng: np.random.Generator, axes: int) -> list[Challenge]:
        """An ordinary challenge with this number of leading axes, if the op has one: the first
        question to a kernel. If the cases give the shapes, one for each case with the most inputs,
        so that no optional input is absent."""
        if self.free:
            return list(self._typical(rng, (*(2,) * (axes - 1), 5) if axes else ()))
        cases = [inputs for inputs, params in self._fitting(0) if params == dict(self.op.params)]
        most = max(map(len, cases), default=0)
        return [
            self._redrawn("typical", data.typical, rng, inputs, self.op.params)
            for inputs in cases
            if len(inputs) == most
        ] or list(self._typical(rng, ()))

    def _typical(self, rng: np.random.Generator, leading: tuple[int, ...]) -> Iterator[Challenge]:
        if not self.free:
            yield from self._on_case("typical", data.typical, rng, 0)
            return
        for _ in range(_TRIES):
            shapes = self._shapes(rng, 0, leading=leading)
            if challenges := list(self._drawn("calls", data.typical, rng, shapes)):
                yield from challenges
                return

    def large(
        self, rng: np.random.Generator, lengths: Mapping[str, int], rows: tuple[int, ...]
    ) -> Iterator[Challenge]:
        """Typical numbers in these lengths, or in one of the op's cases if only these have
        shapes."""
        if self.free:
            shapes = self._of_lengths(lengths, self._leading(rows))
            yield from self._drawn("timed", data.typical, rng, shapes)
        else:
            yield from self._on_case("timed", data.typical, rng, 1)

    def again(self, like: Challenge, family: str, rng: np.random.Generator) -> Challenge:
        """Other content in the shapes of a challenge; its integers in another order."""
        shapes = {name: array.shape for name, array in like.floats.items()}
        drawn = self._rounded(FAMILIES[family](rng, shapes, self.roles, self._format))
        moved = {
            name: rng.permutation(array.reshape(-1)).reshape(array.shape)
            for name, array in like.inputs.items()
            if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and name not in drawn
        }
        return self._challenge(family, {**like.inputs, **moved, **drawn}, like.params)

    @property
    def _format(self) -> formats.Format:
        return formats.get(self.dtype)

    def _shapes(
        self,
        rng: np.random.Generator,
        size: int,
        exact: bool = False,
        leading: tuple[int, ...] | None = None,
    ) -> Shapes:
        """Shapes for a family: lengths drawn by letter, with no more work than the round allows."""
        arguments = self._needed.values()
        letters = list(dict.fromkeys(x for argument in arguments for x in argument.own))
        longest = data.longest_exact(self._format) // 2 if exact else 1 << 30

        def drawn(size: int) -> tuple[tuple[int, ...], dict[str, int]]:
            """Rows of this size, and lengths of the round's."""
            rows = _ROWS[size][int(rng.integers(len(_ROWS[size])))] if leading is None else leading
            if self.roles.first is None and leading is None:
                rows = (*rows, int(rng.choice(LENGTHS[size])))
            return self._leading(rows), {x: self._length(x, rng, usual, longest) for x in letters}

        def shortened() -> tuple[tuple[int, ...], dict[str, int]]:
            """The same with few rows, and as many short lengths as the work needs."""
            rows, lengths = drawn(0)
            for letter in rng.permutation(letters):
                if _product(rows, lengths) > _WORK[size]:
                    lengths[str(letter)] = self._length(letter, rng, SHORT, longest)
            return rows, lengths

        usual = LENGTHS[size]
        rows, lengths = _within(_WORK[size], lambda: drawn(size), shortened)
        return self._of_lengths(lengths, rows)

    def _leading(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        """The lengths of the leading axes, for a number of axes that the kernel takes: axes are
        left out, or axes of length 2 added."""
        if not self.axes or len(rows) in self.axes:
            return rows
        number = min(self.axes, key=lambda count: (abs(count - len(rows)), count))
        return (*(2,) * (number - len(rows)), *rows[len(rows) - min(number, len(rows)) :])

    def _length(
        self, letter: str, rng: np.random.Generator, pool: Sequence[int], longest: int
    ) -> int:
        allowed = (self.lengths or {}).get(letter)
        fitting = [n for n in pool if n <= longest] or [max(min(longest, 4), 1)]
        return int(rng.choice(allowed or fitting))

    def _of_lengths(self, lengths: Mapping[str, int], rows: tuple[int, ...]) -> Shapes:
        return {
            name: (*(rows if argument.rows else ()), *(lengths[x] for x in argument.own))
            for name, argument in self._needed.items()
        }

    def _odd_shapes(self, rng: np.random.Generator, size: int) -> Iterator[Shapes]:
        """The length of each letter in turn 1, 0 and a large prime; no rows; a row without axis."""
        letters = list(dict.fromkeys(x for argument in self._needed.values() for x in argument.own))
        free = [x for x in letters if x not in (self.lengths or {})]
        two_rows, pool = self._leading((2,)), LENGTHS[0] if len(letters) < 4 else SHORT
        for _ in range(_TRIES):
            others = self._lengths({x: int(rng.choice(pool)) for x in letters}, rng)
            if self._takes(self._of_lengths(others, two_rows)):
                break
        for letter in free:
            yield self._of_lengths({**others, letter: 1}, two_rows)
        if any(argument.rows for argument in self._needed.values()):
            yield self._of_lengths(self._lengths(others, rng), self._leading((0,)))
            if 0 in self.axes:
                yield self._of_lengths(self._lengths(others, rng), ())
        for letter in free:
            large = (127, 1021, 8191)[size] if len(letters) < 3 else (67, 257, 1021)[size]
            yield self._of_lengths({**others, letter: large}, two_rows)
            yield self._of_lengths({**others, letter: 0}, two_rows)
        if not letters:
            yield self._of_lengths({}, self._leading(((127, 1021, 65537)[size],)))

    def _lengths(self, others: Mapping[str, int], rng: np.random.Generator) -> dict[str, int]:
        return {x: int(rng.choice((self.lengths or {}).get(x) or [n])) for x, n in others.items()}

    def _drawn(
        self, family: str, draw: Draw, rng: np.random.Generator, shapes: Shapes
    ) -> Iterator[Challenge]:
        """The challenge, unless the op refuses these shapes."""
        if self._takes(shapes):
            inputs = self._rounded(draw(rng, shapes, self.roles, self._format))
            yield self._challenge(family, inputs, self.op.params)

    def _takes(self, shapes: Shapes) -> bool:
        """Whether the op takes these shapes, asked without numbers: those of a refused convolution
        may be many."""
        zero = formats.round_to(np.zeros(()), self.dtype)
        zeros = {name: np.broadcast_to(zero, shape) for name, shape in shapes.items()}
        try:
            if self.op.definition is not None:
                self.op.definition.question(self.direction, zeros, self.op.params)
        except (ValueError, TypeError):
            return False
        return True

    def _rounded(self, drawn: Mapping[str, Any]) -> dict[str, Array]:
        return {
            name: formats.round_to(
                np.abs(array) if name in self.roles.positive else array, self.dtype
            )
            for name, array in drawn.items()
        }

    def _challenge(
        self, family: str, inputs: Mapping[str, Any], params: Mapping[str, Any], plain: bool = True
    ) -> Challenge:
        shapes = ", ".join(f"{name} {_shape(array)}" for name, array in inputs.items())
        arrays = [array for array in inputs.values() if isinstance(array, np.ndarray)]
        plain = plain and all(array.size for array in arrays) and family != "hard"
        exact = family == "exact"
        return Challenge(
            family, f"{family}: {shapes}", self.op, self.direction, inputs, params, exact, plain
        )

    def _laid_out(
        self, layout: Callable[[Array], Array | None], rng: np.random.Generator, size: int
    ) -> Iterator[Challenge]:
        """Typical numbers in arrays that are not dense."""
        for _ in range(_TRIES):
            shapes = self._shapes(rng, 0)
            for challenge in self._drawn("strides", data.typical, rng, shapes):
                laid = {name: layout(array) for name, array in challenge.floats.items()}
                changed = {name: array for name, array in laid.items() if array is not None}
                if changed:
                    arrays = {**challenge.inputs, **changed}
                    yield self._challenge("strides", arrays, challenge.params, plain=False)
                return

    def _cases(self) -> list[Any]:
        matching = [
            case
            for case in core(self.op.cases(), self.dtype)
            if self.dtype in case.dtypes and self.direction in case.directions
        ]
        cases = matching or [case for case in self.op.cases() if self.dtype in case.dtypes]
        return [case for case in cases if case.regime != "invalid"]  # a kernel may answer anything

    @in_default_mode
    def _built(self, case: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        arrays, params = case.build(self.dtype)
        takes = self.op.takes(self.direction)
        inputs = {n: arrays[n] for n in takes if n in arrays and n not in self.left_out}
        return inputs, {**self.op.params, **params}

    def _hard(self, size: int) -> Iterator[Challenge]:
        """The op's own cases of the round's size."""
        if self.lengths:
            return
        for case in self._cases():
            inputs, params = self._built(case)
            if _elements(inputs) <= _ELEMENTS[size] and (
                size == 0 or _elements(inputs) > _ELEMENTS[size - 1]
            ):
                yield self._challenge("hard", inputs, params)

    def _other_params(self, rng: np.random.Generator) -> Iterator[Challenge]:
        """For each param in turn, one of its other values in the cases, on ordinary arrays: so a
        kernel that declines a case because of its axes is still asked about the param."""
        params_of_cases = [self._built(case)[1] for case in self._cases()]
        for name, usual in self.op.params.items():
            values = [params[name] for params in params_of_cases if params[name] != usual]
            if values:
                value = values[int(rng.integers(len(values)))]
                for like in self.typicals(rng, 1):
                    inputs = _with_marker(like.inputs, like.params[name], value)
                    yield self._challenge("hard", inputs, {**like.params, name: value})

    def _on_case(
        self, family: str, draw: Draw, rng: np.random.Generator, size: int
    ) -> Iterator[Challenge]:
        """A case's shapes, integers and params, with other floats."""
        fitting = self._fitting(size)
        if self.free:
            fitting = [built for built in fitting if self._masks & built[0].keys()]
        if fitting:
            inputs, params = fitting[int(rng.integers(len(fitting)))]
            yield self._redrawn(family, draw, rng, inputs, params)

    def _fitting(self, size: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The cases that are no larger than a round's, with as many axes as the kernel takes."""
        built = [self._built(case) for case in self._cases()]
        return [
            (inputs, params)
            for inputs, params in built
            if 0 < _elements(inputs) <= _ELEMENTS[size]
            and (self.free or self.axes == AXES or first_axes(inputs) in self.axes)
        ]

    def _redrawn(
        self,
        family: str,
        draw: Draw,
        rng: np.random.Generator,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> Challenge:
        """A case's shapes and integers with other floats."""
        shapes = {n: a.shape for n, a in inputs.items() if _floats(a)}
        drawn = self._rounded(draw(rng, shapes, self.roles, self._format))
        return self._challenge(family, {**inputs, **drawn}, params)


def _within(
    most: int, *draws: Callable[[], tuple[tuple[int, ...], dict[str, int]]]
) -> tuple[tuple[int, ...], dict[str, int]]:
    """The first of some draws of rows and lengths, by each function in turn, whose product is at
    most `most`; if none is, that of the least. So a convolution of six letters, which has no
    product as small at its usual lengths, has short ones beside them."""
    drawn = []
    for draw in draws:
        for _ in range(_TRIES):
            drawn.append(draw())
            if _product(*drawn[-1]) <= most:
                return drawn[-1]
    return min(drawn, key=lambda shape: _product(*shape))


def _product(rows: Sequence[int], lengths: Mapping[str, int]) -> int:
    return math.prod(rows) * math.prod(lengths.values())


def _transposed(array: Array) -> Array | None:
    return np.asfortranarray(array) if array.ndim > 1 else None


def _gapped(array: Array) -> Array | None:
    if not array.ndim:
        return None
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    wide[..., 1::2] = array
    return wide[..., 1::2]


def _repeated(array: Array) -> Array | None:
    """The array's first row at all places, by a stride of 0."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim > 1 else None


def _padded_rows(array: Array) -> Array | None:
    """Rows of a wider matrix."""
    if array.ndim < 2:
        return None
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide[..., : array.shape[-1]]


_LAYOUTS = (_transposed, _gapped, _repeated, _padded_rows)


def _floats(array: Any) -> bool:
    return isinstance(array, np.ndarray) and formats.is_one(array.dtype)


def first_axes(inputs: Mapping[str, Any]) -> int:
    """How many axes the first input has, or the first array of a list."""
    value = next(iter(inputs.values()))
    return int(np.ndim(value[0] if isinstance(value, list | tuple) else value))


def _low(array: Array) -> float:
    wide = array.astype(np.float64)
    return float(np.min(wide, initial=0.0, where=np.isfinite(wide)))


def _elements(inputs: Mapping[str, Any]) -> int:
    arrays = [
        a for value in inputs.values() for a in (value if isinstance(value, list) else [value])
    ]
    return sum(np.asarray(array).size for array in arrays)


def _shape(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"of {len(value)}"
    return "(" + ", ".join(map(str, value.shape)) + ("," if value.ndim == 1 else "") + ")"


def _with_marker(inputs: Mapping[str, Any], before: Any, after: Any) -> dict[str, Any]:
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
