"""Challenges: inputs by families, in shapes that no kernel has seen.

Lengths are drawn for each letter of the op's signature: 1, primes, a tile and one more or less, and
0. If inputs are integers or lists, whose values mean more than a signature says, the op's own cases
give the shapes and those inputs, and only the floating ones are redrawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.judging import data
from refkernels.judging.cases import ELEMENTS, OpCases, elements, first_axes
from refkernels.judging.data import Draw, InputRoles, Shapes
from refkernels.judging.layouts import LAYOUTS
from refkernels.judging.shapes import AXES, TRIES, WIDE, ShapeDrawer
from refkernels.judging.standard import Challenge
from refkernels.op import Direction, Op
from refkernels.ops.letters import ROWS

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
    "negative": data.negative,
    "mixed": data.mixed,
    "special": data.special,
}
"""By name. The families "shapes", "wide", "strides" and "hard" are drawn in other ways."""

_BY_ROWS = (data.one_hot, data.two_valued, data.shifted, data.negative)


@dataclass(frozen=True, eq=False)
class Drawer:
    """Draws the challenges of one op. `left_out`: optional inputs that the kernel does not take;
    `lengths`: the only lengths that it takes, by letter; `dtypes`: the only formats of an input of
    integers or 8-bit numbers; `axes`: the numbers of leading axes that
    it takes or, if the op's cases give the shapes, the numbers of axes of the first input;
    `allow_overflow`: as for `judge`."""

    op: Op
    direction: Direction
    dtype: str
    left_out: frozenset[str] = frozenset()
    lengths: Mapping[str, Sequence[int]] | None = None
    dtypes: Mapping[str, Sequence[str]] | None = None
    axes: frozenset[int] = AXES
    allow_overflow: bool | None = None

    @cached_property
    def roles(self) -> InputRoles:
        built = [self.cases.built(case) for case in self.cases.all[:8]]
        takes = self.op.takes(self.direction)
        signed = {n for arrays, _ in built for n, a in arrays.items() if _floats(a) and _low(a) < 0}
        floating = {n for arrays, _ in built for n, a in arrays.items() if _floats(a)}
        positive = {n for n in takes if n in floating and n not in signed}
        if not self.op.elementwise:  # one element whose answer is NaN may spoil the whole output
            usual = [arrays for arrays, params in built if params == dict(self.op.params)]
            smallest = min(usual, key=elements, default={})
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

    @cached_property
    def cases(self) -> OpCases:
        """The op's own cases."""
        return OpCases(self.op, self.direction, self.dtype, self.left_out, self.dtypes)

    @cached_property
    def shapes(self) -> ShapeDrawer:
        """Draws the shapes."""
        coupled = self.roles.first is not None
        return ShapeDrawer(
            self._needed, self.lengths, self.axes, coupled, self._format, self._takes
        )

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
            for shapes in self.shapes.odd(rng, size):
                yield from self._drawn("shapes", data.typical, rng, shapes)
            for layout in LAYOUTS:
                yield from self._laid_out(layout, rng, size)
        yield from self.wide(rng)
        yield from self._hard(size)
        yield from self._other_params(rng)

    def negative(self, rng: np.random.Generator) -> Iterator[Challenge]:
        """All scores far below 0."""
        yield from self._some("negative", rng, 0)

    def wide(self, rng: np.random.Generator) -> Iterator[Challenge]:
        """More rows than 16 bits count, and a letter of such a length: indices overflow there."""
        if self.lengths:
            return
        if self.free:
            drawn = (self._drawn("wide", data.typical, rng, s) for s in self.shapes.wide(rng))
            found = [challenge for challenges in drawn for challenge in challenges]
        else:
            fitting = sorted(self._fitting(0), key=lambda built: elements(built[0]))
            repeated = ((self._repeated(arrays), params) for arrays, params in fitting)
            wide = ((arrays, params) for arrays, params in repeated if elements(arrays) >= WIDE)
            found = [self._challenge("wide", *asked) for asked in itertools.islice(wide, 1)]
        yield from (replace(challenge, plain=False) for challenge in found)

    def _repeated(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs with the first axis of the first one repeated until it is wide, in all inputs
        that have this axis."""
        axes = {
            name: ROWS if np.ndim(inputs[name]) > len(argument.own) else argument.own[:1]
            for name, argument in self.roles.arguments.items()
            if isinstance(inputs.get(name), np.ndarray)
        }
        first = next(iter(axes))
        times = -(-WIDE // (np.shape(inputs[first]) or (WIDE,))[0])
        return {
            name: np.tile(array, (times, *(1,) * (array.ndim - 1)))
            if axes.get(name) == axes[first] != () and array.size
            else array
            for name, array in inputs.items()
        }

    @property
    def ranked(self) -> bool:
        """Whether the signature leaves the number of leading axes open."""
        return self.free and any(argument.rows for argument in self._needed.values())

    @cached_property
    def free(self) -> bool:
        """Whether the signature alone determines the possible shapes: there are no integers, lists
        and fixed shapes, and no length follows from others, as in a convolution's gradient."""
        needed = self._needed.values()
        if any(a.kind != "float" or a.several or "".join(a.own).isdigit() for a in needed):
            return False
        rng = np.random.default_rng(0)
        shapes = (self.shapes.drawn(rng, 0) for _ in range(TRIES))
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
        if self.roles.first is None and draw in _BY_ROWS:
            return
        if self.free:
            for _ in range(TRIES):
                shapes = self.shapes.drawn(rng, size, exact=family == "exact")
                if challenges := list(self._drawn(family, draw, rng, shapes)):
                    yield from challenges
                    break
        if not self.free or (self._masks and not self.lengths):
            yield from self._on_case(family, draw, rng, size)

    def typical(self, rng: np.random.Generator, rows: int) -> Challenge:
        """An ordinary challenge, for the calls of one process: if the op has one, one that no
        kernel may decline."""
        if not self.free and (usual := self.typicals(rng, 1)):
            return usual[int(rng.integers(len(usual)))]
        for challenge in self._typical(rng, self.shapes.leading((rows,))):
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
        for _ in range(TRIES):
            shapes = self.shapes.drawn(rng, 0, leading=leading)
            if challenges := list(self._drawn("calls", data.typical, rng, shapes)):
                yield from challenges
                return

    def large(
        self, rng: np.random.Generator, lengths: Mapping[str, int], rows: tuple[int, ...]
    ) -> Iterator[Challenge]:
        """Typical numbers in these lengths, or in one of the op's cases if only these have
        shapes."""
        if self.free:
            shapes = self.shapes.of_lengths(lengths, self.shapes.leading(rows))
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
        positive = self.roles.positive
        return {
            name: formats.round_to(np.abs(array) if name in positive else array, self.dtype)
            for name, array in drawn.items()
        }

    def _challenge(
        self, family: str, inputs: Mapping[str, Any], params: Mapping[str, Any], plain: bool = True
    ) -> Challenge:
        parts = [f"{name} {_shape(array)}" for name, array in inputs.items()]
        usual = self.op.params
        parts += [f"{name}={value}" for name, value in params.items() if value != usual[name]]
        arrays = [array for array in inputs.values() if isinstance(array, np.ndarray)]
        plain = plain and all(array.size for array in arrays) and family != "hard"
        exact = family == "exact"
        name = f"{family}: {', '.join(parts)}"
        question = self.op, self.direction, inputs, params, exact, plain, self.allow_overflow
        return Challenge(family, name, *question)

    def _laid_out(
        self, layout: Callable[[Array], Array | None], rng: np.random.Generator, size: int
    ) -> Iterator[Challenge]:
        """Typical numbers in arrays that are not dense."""
        for _ in range(TRIES):
            shapes = self.shapes.drawn(rng, 0)
            for challenge in self._drawn("strides", data.typical, rng, shapes):
                laid = {name: layout(array) for name, array in challenge.floats.items()}
                changed = {name: array for name, array in laid.items() if array is not None}
                if changed:
                    arrays = {**challenge.inputs, **changed}
                    yield self._challenge("strides", arrays, challenge.params, plain=False)
                return

    def _hard(self, size: int) -> Iterator[Challenge]:
        """The op's own cases of the round's size."""
        if self.lengths:
            return
        for case in self.cases.all:
            inputs, params = self.cases.built(case)
            if elements(inputs) <= ELEMENTS[size] and (
                size == 0 or elements(inputs) > ELEMENTS[size - 1]
            ):
                yield self._challenge("hard", inputs, params)

    def _other_params(self, rng: np.random.Generator) -> Iterator[Challenge]:
        """For each param in turn, one of its other values in the cases, on ordinary arrays: so a
        kernel that declines a case because of its axes is still asked about the param."""
        params_of_cases = [self.cases.built(case)[1] for case in self.cases.all]
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
        """A case's shapes, integers and params, with other floats; if these params are not the op's
        own, which a kernel may decline, and the cases alone give shapes, also one with its own."""
        fitting = self._fitting(size)
        if self.free:
            fitting = [built for built in fitting if self._masks & built[0].keys()]
        while fitting:
            inputs, params = fitting[int(rng.integers(len(fitting)))]
            yield self._redrawn(family, draw, rng, inputs, params)
            own = [built for built in fitting if built[1] == dict(self.op.params)]
            fitting = [] if self.free or params == dict(self.op.params) else own

    def _fitting(self, size: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The cases that are no larger than a round's, with as many axes as the kernel takes."""
        axes = AXES if self.free else self.axes
        return [
            built
            for built in self.cases.within(size)
            if axes == AXES or first_axes(built[0]) in axes
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


def _floats(array: Any) -> bool:
    return isinstance(array, np.ndarray) and formats.is_one(array.dtype)


def _low(array: Array) -> float:
    wide = array.astype(np.float64)
    return float(np.min(wide, initial=0.0, where=np.isfinite(wide)))


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
