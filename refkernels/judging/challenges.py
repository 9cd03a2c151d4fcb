"""Challenges: inputs by families, in shapes that no kernel has seen (`shapes`).

If inputs are integers or lists, whose values mean more than a signature says, the op's own cases
give the shapes and those inputs, and only the floating ones are redrawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.judging import data
from refkernels.judging.data import Draw, InputRoles, Shapes
from refkernels.judging.questions import (
    ANYTHING,
    AXES,
    ELEMENTS,
    KernelDomain,
    OpCases,
    elements,
    first_axes,
    is_float,
    is_question,
    shape_of,
    with_marker,
)
from refkernels.judging.shapes import LONG, MOST, TRIES, WIDE, ShapeDrawer
from refkernels.judging.standard import Challenge
from refkernels.op import Direction, Op
from refkernels.ops.letters import ROWS

Array = npt.NDArray[Any]
Built = tuple[Mapping[str, Any], Mapping[str, Any]]
_NAMES = """typical exact one_hot powers two_valued positive scales ordered graded shifted negative
mixed special"""
FAMILIES: dict[str, Draw] = {
    name: data.integers if name == "exact" else getattr(data, name) for name in _NAMES.split()
}
_BY_ROWS = ("graded", "one_hot", "two_valued", "ordered", "shifted", "throughout")

TIMED = 1 << 18  # elements of the first input of a call that is timed
_TELLING = ("typical", "positive", "two_valued", "graded", "mixed")  # of long rows


@dataclass(frozen=True, eq=False)
class Drawer:
    """Draws the challenges of one op, of inputs that the kernel takes."""

    op: Op
    direction: Direction
    dtype: str
    domain: KernelDomain = ANYTHING

    @cached_property
    def roles(self) -> InputRoles:
        """Positive is an input that is never negative with the op's own params; if it is nowhere
        beside these, one that is never negative at all. Inputs of a fixed shape that no case has
        are left out: the parameters of a program, which have their own values."""
        given = {name for case in self.cases.all for name in self.cases.built(case)[0]}
        signs = dict[tuple[bool, str], bool]()
        for arrays, params in map(self.cases.built, self.cases.all[:16]):
            for key in ((params == self.op.params, n) for n, a in arrays.items() if is_float(a)):
                array = arrays[key[1]]
                signs[key] = signs.get(key, False) or bool(np.any((array < 0) & np.isfinite(array)))
        by_name = {name: negative for (_, name), negative in sorted(signs.items())}
        positive = frozenset(name for name, negative in by_name.items() if not negative)
        roles = data.roles_of(self.op, self.direction, positive)
        known = ((n, a, "".join(a.own)) for n, a in roles.arguments.items())
        taken = {n: a for n, a, own in known if n in given or not (a.optional and own.isdigit())}
        return replace(roles, arguments=taken)

    @cached_property
    def below_one(self) -> set[str]:
        """The floating inputs of which the op refuses numbers of 1 and more: draws."""
        built = map(self.cases.built, self.cases.all[:16])
        last = {n: case for case in built for n, a in case[0].items() if is_float(a)}
        return {
            name
            for name, (inputs, params) in last.items()
            if not is_question(
                self.op, self.direction, {**inputs, name: np.abs(inputs[name]) + 1}, params
            )
        }

    @cached_property
    def cases(self) -> OpCases:
        """The op's own cases."""
        return OpCases(self.op, self.direction, self.dtype, self.domain)

    @cached_property
    def shapes(self) -> ShapeDrawer:
        """Draws the shapes."""
        coupled = self.roles.first is not None
        return ShapeDrawer(self._needed, self.domain, coupled, self._format, self._takes)

    @property
    def summed(self) -> bool:
        """Whether every right kernel gives the same bits for integers."""
        return bool(self.op.sums) or (self.op.total == "sum" and self.direction == "forward")

    def round(self, rng: np.random.Generator, number: int) -> Iterator[Challenge]:
        """One challenge of each family, and several shapes and layouts; later rounds are larger."""
        size = min(number, 2)
        for family in FAMILIES:
            if family != "exact" or self.summed:
                yield from self.some(family, rng, size)
        for name in self._other_inputs:
            yield from self.some("special", rng, size, data.nan_in(name))
        if self.free:
            for shapes in self.shapes.odd(rng, size):
                yield from self._drawn("shapes", data.typical, rng, shapes)
            yield from self.alike(rng)
            for axes, alike, layout in data.LAYOUTS:
                yield from self._laid_out(axes, alike, layout, rng)
        yield from self.wide(rng)
        yield from self.long(rng, size)
        yield from self._hard(size)
        yield from self._other_params(rng)
        yield from self.some("throughout", rng, size, data.throughout)

    def alike(self, rng: np.random.Generator) -> Iterator[Challenge]:
        """Zeros, small and equal inputs and rows on scales of their own, all axes of one length."""
        for draw in (data.zeros, data.alike, data.scales, data.small(data.typical, 1.0)):
            axes = 2 if draw is data.alike else int(draw is data.scales)
            yield from self._drawn("shapes", draw, rng, self.shapes.alike(rng, axes))

    def wide(self, rng: np.random.Generator) -> Iterator[Challenge]:
        """More rows than 16 bits count, and a letter of such a length: indices overflow there."""
        if self.domain.lengths:
            return
        if self.free:
            for shapes in self.shapes.wide(rng):
                yield from self._drawn("wide", data.few_rows, rng, shapes)
        else:
            first = next(iter(self.roles.arguments.values()))
            for arrays, params in self._lengthened((ROWS, *first.own[:1]), WIDE):
                yield self._challenge("wide", arrays, params)

    def long(self, rng: np.random.Generator, size: int) -> Iterator[Challenge]:
        """A letter as long as in large models, in numbers that show a wrong row, and in sums that
        must be exact or have few terms."""
        own = rng.permutation(next(iter(self.roles.arguments.values())).own)
        related = self.roles.letters
        letters = sorted(map(str, own), key=lambda x: x not in related)
        plan: list[tuple[str, Draw, int | None]] = []
        if self.summed:
            plan += [("exact", data.integers, None)]
        elif related:
            plan += [("two_valued", data.small(data.two_valued, 0.5), 1)]
        telling = str(rng.choice(_TELLING))
        plan += [(telling, data.small(FAMILIES[telling], 0.5), None)]
        plan += [("few", data.few(void), 1) for void in data.VOIDS if len(related) == 1]
        for family, draw, most in plan:
            if self.free:
                shapes = itertools.islice(self.shapes.long(rng, size, related), most)
                found = [c for drawn in shapes for c in self._drawn(family, draw, rng, drawn)]
            else:
                lengthened = self._lengthened(letters, LONG)
                found = [self._redrawn(family, draw, rng, built) for built in lengthened]
            yield from (replace(c, family="long", name=f"long: {c.name}") for c in found)

    def own(self, rng: np.random.Generator, most: int) -> Iterator[Challenge]:
        """The kernel's own shapes; if the product of all lengths is more than `most`, each of their
        axes in turn at its own length, the others short."""
        for shapes in self.own_shapes(most):
            for family in ("typical", "exact", "scales", "mixed"):
                if family != "exact" or self.summed:
                    inputs = self.filled(family, rng, shapes)
                    own = self._challenge(family, inputs, self.op.params)
                    yield replace(own, family="own", name=f"own: {own.name}")

    def own_shapes(self, most: int) -> Iterator[Shapes]:
        """Raises ValueError for shapes that are not the op's."""
        given = self.domain.shapes or {}
        if not given:
            return
        lengths, rows = dict[str, int](), tuple[int, ...]()
        try:
            for name, shape in given.items():
                argument = self.roles.arguments[name]
                first = len(shape) - len(argument.own)
                lengths |= dict(zip(argument.own, shape[max(first, 0) :], strict=first >= 0))
                rows = max(rows, tuple(shape[:first]), key=len) if argument.rows else rows
            whole = self.shapes.of_lengths(lengths, rows) | {n: (*s,) for n, s in given.items()}
        except (KeyError, ValueError):
            whole = {}
        if not whole or not self._takes(whole):
            raise ValueError(
                f"{self.op.name} takes no inputs of these shapes, or they do not say how long each "
                f"axis of {', '.join(self._needed)} is: {dict(given)}."
            )
        if math.prod(rows) * math.prod(lengths.values()) <= most:
            yield whole
            return
        least = {x: min(n, 2) for x, n in lengths.items()}, tuple(min(n, 2) for n in rows)
        for letter, n in lengths.items():
            yield self.shapes.of_lengths({**least[0], letter: n}, least[1])
        for i, n in enumerate(rows):
            yield self.shapes.of_lengths(least[0], (*least[1][:i], n, *least[1][i + 1 :]))

    def filled(self, family: str, rng: np.random.Generator, shapes: Shapes) -> dict[str, Any]:
        """Numbers of a family; whole numbers below every length, which are classes and rows."""
        kinds = {n: self.roles.arguments[n].kind for n in shapes}
        floats = {n: shape for n, shape in shapes.items() if kinds[n] == "float"}
        drawn = self._rounded(FAMILIES[family](rng, floats, self.roles, self._format))
        least = min((n for shape in shapes.values() for n in shape if n), default=1)
        for name in shapes.keys() - drawn.keys():
            whole = rng.integers(0, 2 if kinds[name] == "bool" else min(least, 100), shapes[name])
            drawn[name] = whole.astype(self._dtypes[name])
        return {name: drawn[name] for name in shapes}

    @cached_property
    def _dtypes(self) -> dict[str, Any]:
        """Of the inputs, in the cases."""
        built = [self.cases.built(case)[0] for case in self.cases.all[:16]]
        return {n: a.dtype for arrays in built for n, a in arrays.items() if hasattr(a, "dtype")}

    def _lengthened(self, axes: Iterable[str], least: int) -> list[tuple[dict[str, Any], Any]]:
        """The smallest case of which one of these axes can be repeated until it is so long."""
        for inputs, params in sorted(self._fitting(0), key=lambda built: elements(built[0])):
            for axis in axes:
                longer = self._repeated(inputs, axis, least)
                if least <= elements(longer) <= MOST and is_question(
                    self.op, self.direction, longer, params
                ):
                    return [(longer, params)]
        return []

    def _repeated(self, inputs: Mapping[str, Any], axis: str, least: int) -> dict[str, Any]:
        """The inputs with an axis, the first leading one or a letter, repeated until it is so long,
        in all that have it; none if one of them had too many elements."""
        places, repeated = dict[str, int](), dict(inputs)
        for name, array in inputs.items():
            own = self.roles.arguments[name].own
            if isinstance(array, np.ndarray) and array.size and array.ndim >= len(own):
                first = array.ndim - len(own)  # fewer axes: one scale for all rows
                places |= {name: 0} if axis == ROWS and first else {}
                places |= {name: first + own.index(axis)} if axis in own else {}
        for name, place in places.items():
            n = inputs[name].shape[place]
            indices = np.arange(-(-least // n) * n) % n
            if inputs[name].size // n * indices.size > MOST:
                return {}
            repeated[name] = np.ascontiguousarray(np.take(inputs[name], indices, place))
        return repeated

    @property
    def ranked(self) -> bool:
        """Whether the signature leaves the number of leading axes open."""
        return self.free and self.shapes.ranked

    @cached_property
    def free(self) -> bool:
        """Whether the signature alone determines the possible shapes: there are no integers, lists
        and fixed shapes, and no length follows from others, as in a convolution's gradient."""
        needed = self._needed.values()
        if any(a.kind != "float" or a.several or "".join(a.own).isdigit() for a in needed):
            return False
        tried = self._tried("typical", data.typical, np.random.default_rng(0), 0)
        return bool(self.domain.lengths) or any(tried)

    @property
    def _masks(self) -> frozenset[str]:
        """The optional inputs of integers or booleans, which only the cases give."""
        arguments = self.roles.arguments.items()
        masks = {n for n, a in arguments if a.optional and a.kind != "float"}
        return frozenset(masks - self.domain.left_out)

    @property
    def _needed(self) -> dict[str, Any]:
        """The arrays that are drawn: all but optional ones of integers or booleans."""
        others = self.domain.left_out | self._masks
        return {n: a for n, a in self.roles.arguments.items() if n not in others}

    @property
    def _other_inputs(self) -> list[str]:
        """The floating inputs in which `special` has no special values."""
        names = [n for n, argument in self._needed.items() if argument.kind == "float"]
        first = data.with_special(dict.fromkeys(names, ()), self.roles)
        return [name for name in names if name not in (first, self.roles.cotangent)]

    def some(
        self, family: str, rng: np.random.Generator, size: int, draw: Draw | None = None
    ) -> Iterator[Challenge]:
        """A challenge of a family; on cases that have other params, or masks, one more."""
        draw = draw or FAMILIES[family]
        if self.roles.first is None and family in _BY_ROWS:
            return
        if self.free:
            yield from self._tried(family, draw, rng, size, exact=family == "exact")
        if not self.free or (self._masks and not self.domain.lengths):
            yield from self._on_case(family, draw, rng, size)

    def typical(self, rng: np.random.Generator, rows: int) -> Challenge:
        """An ordinary challenge, for the calls of one process: if the op has one, one that no
        kernel may decline, whose integers are not all equal, as where every class is ignored."""
        leading = self.shapes.leading((rows,)) if self.free else None
        usual = self.typicals(rng, 1, leading)
        varied = [c for c in usual if all(np.ptp(a) for a in c.inputs.values() if _is_whole(a))]
        if chosen := varied or usual:
            return chosen[int(rng.integers(len(chosen)))]
        raise ValueError(
            f"{self.op.name} has no inputs of {self.domain.lengths}: give other lengths."
            if self.domain.lengths
            else f"{self.op.name} {self.direction} cannot be judged in {self.dtype}: neither its "
            "signature nor its cases say what shapes there are."
        )

    def typicals(
        self, rng: np.random.Generator, axes: int, leading: tuple[int, ...] | None = None
    ) -> list[Challenge]:
        """An ordinary challenge with this number of leading axes, if the op has one: the first
        question to a kernel. If the cases give the shapes, one for each case with the most inputs,
        so that no optional input is absent."""
        if self.free:
            usual = leading if leading is not None else (*(2,) * (axes - 1), 5)[:axes]
            return [*self._tried("calls", data.typical, rng, 0, leading=usual)]
        cases = [inputs for inputs, params in self._fitting(0) if params == dict(self.op.params)]
        most = max(map(len, cases), default=0)
        return [
            self._redrawn("typical", data.typical, rng, (inputs, self.op.params))
            for inputs in cases
            if len(inputs) == most
        ] or [*self._on_case("typical", data.typical, rng, 0)]

    def timed(self, rng: np.random.Generator) -> list[Challenge]:
        """Typical numbers in the kernel's own shapes, else in large ones, or in those of one of the
        op's cases if only these have shapes; several times, each with other content."""
        letters = self.shapes.letters
        usual = min(1024, 2 ** (24 // max(len(letters), 1)))
        lengths = {x: max(self.domain.lengths.get(x, [usual])) for x in letters}
        rows = TIMED // math.prod(lengths.values()) if len(letters) < 2 else 0
        drawn = self._on_case("timed", data.typical, rng, 1)
        if self.free:
            large = self.shapes.of_lengths(lengths, self.shapes.leading((rows,) if rows else ()))
            drawn = self._drawn("timed", data.typical, rng, large)
        for first in itertools.chain(self.own(rng, TIMED), drawn):
            return [first, *(self.again(first, "typical", rng) for _ in range(5))]
        return []

    def again(self, like: Challenge, family: str, rng: np.random.Generator) -> Challenge:
        """Other content in the shapes of a challenge; its integers in another order."""
        moved = {
            name: rng.permutation(array.reshape(-1)).reshape(array.shape)
            for name, array in like.inputs.items()
            if _is_whole(array) and name not in like.floats
        }
        built = {**like.inputs, **moved}, like.params
        return self._redrawn(family, FAMILIES[family], rng, built)

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

    def _tried(
        self, family: str, draw: Draw, rng: np.random.Generator, size: int, **given: Any
    ) -> Iterator[Challenge]:
        """The challenge of the first drawn shapes that the op takes."""
        shapes = (self.shapes.drawn(rng, size, **given) for _ in range(TRIES))
        drawn = (challenge for s in shapes for challenge in self._drawn(family, draw, rng, s))
        yield from itertools.islice(drawn, 1)

    def _takes(self, shapes: Shapes) -> bool:
        """Whether the op takes these shapes, asked without numbers: those of a refused convolution
        may be many."""
        dtypes = {name: self._dtypes.get(name, self._format.dtype) for name in shapes}
        zeros = {n: np.broadcast_to(np.zeros((), dtypes[n]), shape) for n, shape in shapes.items()}
        return is_question(self.op, self.direction, zeros, self.op.params)

    def _rounded(self, drawn: Mapping[str, Any]) -> dict[str, Array]:
        positive = self.roles.positive
        finite = {
            n: np.nan_to_num(drawn[n], False, 0.0, 0.0, 0.0) for n in self.below_one & {*drawn}
        }
        below = {n: np.floor(128 * np.abs(array) % 128) / 128 for n, array in finite.items()}
        return {
            name: formats.round_to(np.abs(array) if name in positive else array, self.dtype)
            for name, array in {**drawn, **below}.items()
        }

    def _challenge(
        self, family: str, inputs: Mapping[str, Any], params: Mapping[str, Any]
    ) -> Challenge:
        parts = [f"{name} {shape_of(array)}" for name, array in inputs.items()]
        parts += [f"{k}={value}" for k, value in params.items() if value != self.op.params[k]]
        overflow = self.domain.allow_overflow
        question = self.op, self.direction, inputs, params, family == "exact", overflow
        return Challenge(family, f"{family}: {', '.join(parts)}", *question)

    def _laid_out(
        self, axes: int, alike: bool, layout: Callable[[Array], Array], rng: np.random.Generator
    ) -> Iterator[Challenge]:
        """Typical numbers in arrays that are not dense, or begin at an odd place."""
        square = self._drawn("strides", data.typical, rng, self.shapes.alike(rng))
        for challenge in square if alike else self._tried("strides", data.typical, rng, 0):
            changed = {n: layout(a) for n, a in challenge.floats.items() if a.ndim >= axes}
            if changed:
                arrays = {**challenge.inputs, **changed}
                yield self._challenge("strides", arrays, challenge.params)

    def _hard(self, size: int) -> Iterator[Challenge]:
        """The op's own cases of the round's size."""
        if self.domain.lengths:
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
                    inputs = with_marker(like.inputs, like.params[name], value)
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
            built = fitting[int(rng.integers(len(fitting)))]
            yield self._redrawn(family, draw, rng, built)
            own = [built for built in fitting if built[1] == dict(self.op.params)]
            fitting = [] if self.free or built[1] == dict(self.op.params) else own

    def _fitting(self, size: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The cases with as many axes as the kernel takes that are no larger than a round's, or
        else the smallest."""
        axes, built = self.domain.axes, [*map(self.cases.built, self.cases.all)]
        if not (self.free or axes == AXES):
            built = [one for one in built if first_axes(one[0]) in axes]
        sizes = [elements(inputs) for inputs, _ in built]
        most = max(ELEMENTS[size], min(filter(None, sizes), default=0))
        return [one for one, n in zip(built, sizes, strict=True) if 0 < n <= most]

    def _redrawn(
        self, family: str, draw: Draw, rng: np.random.Generator, built: Built
    ) -> Challenge:
        """A case's shapes and integers with other floats."""
        inputs, params = built
        shapes = {n: a.shape for n, a in inputs.items() if is_float(a)}
        drawn = self._rounded(draw(rng, shapes, self.roles, self._format))
        return self._challenge(family, {**inputs, **drawn}, params)


def _is_whole(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "iu"
