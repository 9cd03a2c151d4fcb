"""Challenges: inputs by families, in shapes that no kernel has seen (`questions`).

If inputs are integers or lists, whose values mean more than a signature says, the op's own cases
give the shapes and those inputs, and only the floating ones are redrawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.judging import questions
from refkernels.judging.data import LAYOUTS, VOIDS, Filling, InputRoles, Numbers, Rng, Shapes
from refkernels.judging.questions import ANYTHING, Built, KernelDomain, elements, is_float
from refkernels.judging.standard import Challenge
from refkernels.op import Direction, Op
from refkernels.ops.canonical import lengths_of
from refkernels.ops.function_formulas import definition
from refkernels.ops.letters import ROWS, Argument, Signature

Array = npt.NDArray[Any]
Named = Mapping[str, Any]
_NAMES = """typical exact one_hot powers two_valued positive scales ordered graded shifted negative
mixed special"""
FAMILIES = {name: Numbers(name, name) for name in _NAMES.split()}
_BY_ROWS = ("graded", "one_hot", "two_valued", "ordered", "shifted")

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
    def cases(self) -> list[Built]:
        """The op's own cases."""
        return questions.cases_of(self.op, self.direction, self.dtype, self.domain)

    @property
    def signature(self) -> Signature:
        return definition(self.op).of(self.direction).signature

    @cached_property
    def roles(self) -> InputRoles:
        """Positive is an input that is never negative with the op's own params; if it is nowhere
        beside these, one that is never negative at all. Inputs of a fixed shape that no case has
        are left out: the parameters of a program, which have their own values."""
        given = {name for inputs, _ in self.cases for name in inputs}
        signs = sorted(
            (params == self.op.params, name, bool(np.any(array[np.isfinite(array)] < 0)))
            for inputs, params in self.cases[:16]
            for name, array in inputs.items()
            if is_float(array)
        )
        negative = {name: sign for _, name, sign in signs}  # the last is the one that counts
        positive = frozenset(name for name, sign in negative.items() if not sign)
        out, takes, gives = self.domain.left_out, self.signature.takes, self.signature.gives
        known = ((n, a, "".join(a.own)) for n, a in takes.items() if n not in out)
        taken = {n: a for n, a, own in known if n in given or not (a.optional and own.isdigit())}
        first, letters = next(iter(gives)), {x for a in takes.values() for x in a.own}
        related = frozenset(x for x in letters if self.signature.role(first, x) != "free")
        cotangent = self.op.cotangent if self.direction == "backward" else None
        return InputRoles(taken, related, positive, cotangent)

    @cached_property
    def below_one(self) -> set[str]:
        """The floating inputs of which the op refuses numbers of 1 and more: draws."""
        last = {n: case for case in self.cases[:16] for n, a in case[0].items() if is_float(a)}
        larger = {n: ({**a, n: np.abs(a[n]) + 1}, params) for n, (a, params) in last.items()}
        return {name for name, built in larger.items() if not self._takes(*built)}

    @cached_property
    def shapes(self) -> questions.ShapeDrawer:
        """Draws the shapes."""
        coupled = self.roles.first is not None
        question = self._needed, self.domain, coupled, self._format
        return questions.ShapeDrawer(*question, lambda shapes: self._takes(self._empty(shapes)))

    @cached_property
    def families(self) -> list[Numbers]:
        """Those that say something about the op: `exact` where every right kernel gives the same
        bits for integers."""
        summed = bool(self.op.sums) or (self.op.total == "sum" and self.direction == "forward")
        left_out = () if self.roles.first else _BY_ROWS
        told = (family for family in FAMILIES.values() if family.name not in left_out)
        return [family for family in told if summed or family.name != "exact"]

    def round(self, rng: Rng, number: int) -> Iterator[Challenge]:
        """One challenge of each family, and several shapes and layouts; later rounds are larger."""
        size = min(number, 2)
        for family in self.families:
            yield from self.some(family, rng, size)
        for name in self._other_inputs:
            yield from self.some(Numbers("special", "nan_in", (name,)), rng, size)
        if self.free:
            yield from self._drawn(Numbers("shapes", "typical"), rng, self.shapes.odd(rng, size))
            yield from self.alike(rng)
            strides = Numbers("strides", "typical")
            for axes, alike, layout in LAYOUTS:
                square = self._drawn(strides, rng, [self.shapes.alike(rng)])
                for like in square if alike else self._tried(strides, rng, 0):
                    laid = {n: layout(a) for n, a in like.floats.items() if a.ndim >= axes}
                    if laid:
                        yield self._challenge("strides", {**like.inputs, **laid}, like.params)
        yield from self.wide(rng)
        yield from self.long(rng, size)
        yield from self._hard(size)
        yield from self._other_params(rng)
        if self.roles.first:
            yield from self.some(Numbers("throughout", "throughout"), rng, size)

    def alike(self, rng: Rng) -> Iterator[Challenge]:
        """Zeros, small and equal inputs and rows on scales of their own, all axes of one length."""
        small = "small", ("typical", 1.0)
        for axes, *numbers in (0, "zeros"), (2, "alike"), (1, "scales"), (0, *small):
            shapes = [self.shapes.alike(rng, axes)]
            yield from self._drawn(Numbers("shapes", *numbers), rng, shapes)

    def wide(self, rng: Rng) -> Iterator[Challenge]:
        """More rows than 16 bits count, and a letter of such a length: indices overflow there."""
        if not self.domain.lengths:
            axes = ROWS, *next(iter(self.roles.arguments.values())).own[:1]
            family, shapes = Numbers("wide", "few_rows"), self.shapes.wide(rng)
            yield from self._of_length(family, rng, shapes, axes, questions.WIDE)

    def long(self, rng: Rng, size: int) -> Iterator[Challenge]:
        """A letter as long as in large models, in numbers that show a wrong row, and in sums that
        must be exact or have few terms."""
        own = rng.permutation(next(iter(self.roles.arguments.values())).own)
        related = self.roles.letters
        letters = sorted(map(str, own), key=lambda x: x not in related)
        plan: list[tuple[Numbers, int | None]] = []
        if FAMILIES["exact"] in self.families:
            plan += [(FAMILIES["exact"], None)]
        elif related:
            plan += [(Numbers("two_valued", "small", ("two_valued", 0.5)), 1)]
        telling = str(rng.choice(_TELLING))
        plan += [(Numbers(telling, "small", (telling, 0.5)), None)]
        plan += [(Numbers("few", "few", (void,)), 1) for void in VOIDS if len(related) == 1]
        for family, most in plan:
            shapes = itertools.islice(self.shapes.long(rng, size, related), most)
            for c in self._of_length(family, rng, shapes, letters, questions.LONG):
                yield replace(c, family="long", name=f"long: {c.name}")

    def _of_length(
        self, family: Numbers, rng: Rng, shapes: Iterable[Shapes], axes: Sequence[str], least: int
    ) -> Iterator[Challenge]:
        """In these shapes; if the cases give them, in those of the smallest case of which one of
        these axes, the first leading one or a letter, can be repeated until it is so long."""
        yield from self._drawn(family, rng, shapes) if self.free else ()
        fitting = [] if self.free else sorted(self._fitting(0), key=lambda one: elements(one[0]))
        for (inputs, params), axis in itertools.product(fitting, axes):
            longer = self._repeated(inputs, axis, least)
            if least <= elements(longer) <= questions.MOST and self._takes(longer, params):
                yield self._redrawn(family, rng, longer, params)
                return

    def _repeated(self, inputs: Named, axis: str, least: int) -> dict[str, Any]:
        """The inputs with an axis repeated, in all that have it; none if one of them had too many
        elements."""
        repeated = dict(inputs)
        for name, array in inputs.items():
            own = self.roles.arguments[name].own
            first = np.ndim(array) - len(own)  # fewer axes: one scale for all rows
            if not isinstance(array, np.ndarray) or not array.size or first < 0:
                continue
            if (axis == ROWS and first) or axis in own:
                place = 0 if axis == ROWS else first + own.index(axis)
                n = array.shape[place]
                indices = np.arange(-(-least // n) * n) % n
                if array.size // n * indices.size > questions.MOST:
                    return {}
                repeated[name] = np.take(array, indices, place)
        return repeated

    def own(self, rng: Rng, most: int) -> Iterator[Challenge]:
        """The kernel's own shapes; if the product of all lengths is more than `most`, each of their
        axes in turn at its own length, the others short."""
        for shapes in self.own_shapes(most):
            for family in self.families:
                if family.name in ("typical", "exact", "scales", "mixed"):
                    own = self._challenge(family.name, self.filled(family, rng, shapes))
                    yield replace(own, family="own", name=f"own: {own.name}")

    def own_shapes(self, most: int) -> Iterator[Shapes]:
        """Raises ValueError for shapes that are not the op's."""
        given = {name: tuple(shape) for name, shape in (self.domain.shapes or {}).items()}
        if not given:
            return
        try:
            lengths, rows = lengths_of(self.signature, self._empty(given))
            whole = self.shapes.of_lengths(lengths, rows) | given
        except (KeyError, ValueError):
            whole = {}
        if not whole or not self._takes(self._empty(whole)):
            raise ValueError(
                f"{self.op.name} takes no inputs of these shapes, or they do not say how long each "
                f"axis of {', '.join(self._needed)} is: {dict(self.domain.shapes or {})}."
            )
        if math.prod(rows) * math.prod(lengths.values()) <= most:
            yield whole
            return
        least = {x: min(n, 2) for x, n in lengths.items()}, tuple(min(n, 2) for n in rows)
        for letter, n in lengths.items():
            yield self.shapes.of_lengths({**least[0], letter: n}, least[1])
        for i, n in enumerate(rows):
            yield self.shapes.of_lengths(least[0], (*least[1][:i], n, *least[1][i + 1 :]))

    def filled(self, family: Numbers, rng: Rng, shapes: Shapes) -> dict[str, Any]:
        """Numbers of a family; whole numbers below every length, which are classes and rows."""
        kinds = {n: self.roles.arguments[n].kind for n in shapes}
        floats = {n: shape for n, shape in shapes.items() if kinds[n] == "float"}
        drawn = self._rounded(Filling(rng, floats, self.roles, self._format).of(family))
        least = min((n for shape in shapes.values() for n in shape if n), default=1)
        for name in shapes.keys() - drawn.keys():
            whole = rng.integers(0, 2 if kinds[name] == "bool" else min(least, 100), shapes[name])
            drawn[name] = whole.astype(self._dtypes[name])
        return {name: drawn[name] for name in shapes}

    @cached_property
    def _dtypes(self) -> dict[str, Any]:
        """Of the inputs, in the cases."""
        arrays = (item for inputs, _ in self.cases[:16] for item in inputs.items())
        return {name: array.dtype for name, array in arrays if hasattr(array, "dtype")}

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
        tried = self._tried(FAMILIES["typical"], np.random.default_rng(0), 0)
        return bool(self.domain.lengths) or any(tried)

    @property
    def _needed(self) -> dict[str, Argument]:
        """The arrays that are drawn: all but optional ones of integers or booleans."""
        arguments = self.roles.arguments.items()
        return {n: a for n, a in arguments if not a.optional or a.kind == "float"}

    @property
    def _other_inputs(self) -> list[str]:
        """The floating inputs in which `special` has no special values."""
        names = [n for n, argument in self._needed.items() if argument.kind == "float"]
        first = self.roles.with_special(names)
        return [name for name in names if name not in (first, self.roles.cotangent)]

    def some(self, family: Numbers, rng: Rng, size: int) -> Iterator[Challenge]:
        """A challenge of a family; on cases that have other params, or masks, one more."""
        if self.free:
            yield from self._tried(family, rng, size, exact=family.name == "exact")
        if not self.free or (self._needed != self.roles.arguments and not self.domain.lengths):
            yield from self._on_case(family, rng, size)

    def typical(self, rng: Rng, rows: int) -> Challenge:
        """An ordinary challenge, for the calls of one process: if the op has one, one that no
        kernel may decline, whose integers are not all equal, as where every class is ignored."""
        usual = self.typicals(rng, (rows,))
        whole = [filter(questions.is_whole, c.inputs.values()) for c in usual]
        if chosen := [c for c, a in zip(usual, whole, strict=True) if all(map(np.ptp, a))] or usual:
            return chosen[int(rng.integers(len(chosen)))]
        raise ValueError(
            f"{self.op.name} has no inputs of {self.domain.lengths}: give other lengths."
            if self.domain.lengths
            else f"{self.op.name} {self.direction} cannot be judged in {self.dtype}: neither its "
            "signature nor its cases say what shapes there are."
        )

    def typicals(self, rng: Rng, leading: tuple[int, ...] = (5,)) -> list[Challenge]:
        """An ordinary challenge with these leading axes, if the op has one: the first question to a
        kernel. If the cases give the shapes, one for each case with the most inputs, so that no
        optional input is absent."""
        if self.free:
            return [*self._tried(Numbers("calls", "typical"), rng, 0, leading=leading)]
        own = [inputs for inputs, params in self._fitting(0) if params == self.op.params]
        most = max(map(len, own), default=0)
        full = [inputs for inputs in own if len(inputs) == most]
        drawn = [self._redrawn(FAMILIES["typical"], rng, inputs) for inputs in full]
        return drawn or [*self._on_case(FAMILIES["typical"], rng, 0)]

    def timed(self, rng: Rng) -> list[Challenge]:
        """Typical numbers in the kernel's own shapes, else in large ones, or in those of one of the
        op's cases if only these have shapes; several times, each with other content."""
        family = Numbers("timed", "typical")
        drawn = self._on_case(family, rng, 1)
        if self.free:
            drawn = self._drawn(family, rng, [self.shapes.large(TIMED)])
        for first in itertools.chain(self.own(rng, TIMED), drawn):
            return [first, *(self.again(first, "typical", rng) for _ in range(5))]
        return []

    def again(self, like: Challenge, family: str, rng: Rng) -> Challenge:
        """Other content in the shapes of a challenge; its integers in another order."""
        return self._redrawn(FAMILIES[family], rng, _moved(like.inputs, rng), like.params)

    def changed(self, like: Challenge, which: int, rng: Rng) -> Challenge:
        """The challenge with an element of the first or the last floating input changed, in its
        middle half, where a sample of both ends does not see it; if there is none, another one."""
        if not like.floats:
            return self.again(like, "typical", rng)
        name, array = list(like.floats.items())[which]
        changed = np.array(array, order="C")
        if changed.size:
            place = int(rng.integers(changed.size // 4, changed.size - changed.size // 4))
            changed.reshape(-1)[place] += np.asarray(3.0, changed.dtype)
        changed = np.where(changed < 1, changed, 0) if name in self.below_one else changed
        return like.given({name: changed})

    @property
    def _format(self) -> formats.Format:
        return formats.get(self.dtype)

    def _drawn(self, family: Numbers, rng: Rng, shapes: Iterable[Shapes]) -> Iterator[Challenge]:
        """The challenges in those of these shapes that the op takes."""
        for drawn in shapes:
            if self._takes(self._empty(drawn)):
                yield self._challenge(family.name, self.filled(family, rng, drawn))

    def _tried(self, family: Numbers, rng: Rng, size: int, **given: Any) -> Iterator[Challenge]:
        """The challenge of the first drawn shapes that the op takes."""
        shapes = (self.shapes.drawn(rng, size, **given) for _ in range(questions.TRIES))
        yield from itertools.islice(self._drawn(family, rng, shapes), 1)

    def _empty(self, shapes: Shapes) -> dict[str, Array]:
        """Arrays without memory of their own: those of a refused convolution may be large."""
        dtypes = {name: self._dtypes.get(name, self._format.dtype) for name in shapes}
        return {n: np.broadcast_to(np.zeros((), dtypes[n]), shape) for n, shape in shapes.items()}

    def _takes(self, inputs: Named, params: Named | None = None) -> bool:
        """Whether the op takes these inputs, by default with its own params."""
        given = self.op.params if params is None else params
        return questions.is_question(self.op, self.direction, inputs, given)

    def _rounded(self, drawn: Named) -> dict[str, Array]:
        positive = self.roles.positive
        names = self.below_one & {*drawn}
        finite = {n: np.nan_to_num(drawn[n], False, 0.0, 0.0, 0.0) for n in names}
        below = {n: np.floor(128 * np.abs(array) % 128) / 128 for n, array in finite.items()}
        return {
            name: formats.round_to(np.abs(array) if name in positive else array, self.dtype)
            for name, array in {**drawn, **below}.items()
        }

    def _challenge(self, family: str, inputs: Named, params: Named | None = None) -> Challenge:
        """By default with the op's own params."""
        params = self.op.params if params is None else params
        parts = [f"{name} {questions.shape_of(array)}" for name, array in inputs.items()]
        parts += [f"{k}={value}" for k, value in params.items() if value != self.op.params[k]]
        overflow = self.domain.allow_overflow
        question = self.op, self.direction, inputs, params, family == "exact", overflow
        return Challenge(family, f"{family}: {', '.join(parts)}", *question)

    def _hard(self, size: int) -> Iterator[Challenge]:
        """The op's own cases of the round's size."""
        least = questions.ELEMENTS[size - 1] if size else -1
        for inputs, params in self.cases if not self.domain.lengths else ():
            if least < elements(inputs) <= questions.ELEMENTS[size]:
                yield self._challenge("hard", inputs, params)

    def _other_params(self, rng: Rng) -> Iterator[Challenge]:
        """For each param in turn, one of its other values in the cases, on ordinary arrays: so a
        kernel that declines a case because of its axes is still asked about the param."""
        for name, usual in self.op.params.items():
            values = [params[name] for _, params in self.cases if params[name] != usual]
            if values:
                value = values[int(rng.integers(len(values)))]
                for like in self.typicals(rng):
                    inputs = questions.with_marker(like.inputs, like.params[name], value)
                    yield self._challenge("hard", inputs, {**like.params, name: value})

    def _on_case(self, family: Numbers, rng: Rng, size: int) -> Iterator[Challenge]:
        """A case's shapes, integers and params, with other floats; if these params are not the op's
        own, which a kernel may decline, and the cases alone give shapes, also one with its own."""
        fitting = self._fitting(size)
        if self.free:
            fitting = [built for built in fitting if built[0].keys() - self._needed.keys()]
        while fitting:
            built = fitting[int(rng.integers(len(fitting)))]
            yield self._redrawn(family, rng, *built)
            own = [built for built in fitting if built[1] == self.op.params]
            fitting = [] if self.free or built[1] == self.op.params else own

    def _fitting(self, size: int) -> list[Built]:
        """The cases with as many axes as the kernel takes that are no larger than a round's, or
        else the smallest."""
        axes, built = self.domain.axes, self.cases
        if not (self.free or axes == questions.AXES):
            built = [one for one in built if questions.first_axes(one[0]) in axes]
        sizes = [elements(inputs) for inputs, _ in built]
        most = max(questions.ELEMENTS[size], min(filter(None, sizes), default=0))
        return [one for one, n in zip(built, sizes, strict=True) if 0 < n <= most]

    def _redrawn(
        self, family: Numbers, rng: Rng, inputs: Named, params: Named | None = None
    ) -> Challenge:
        """The shapes and integers of these inputs with other floats; integers alone are moved."""
        shapes = {n: a.shape for n, a in inputs.items() if is_float(a)}
        drawn = self._rounded(Filling(rng, shapes, self.roles, self._format).of(family))
        inputs = {**inputs, **drawn} if shapes else _moved(inputs, rng)
        return self._challenge(family.name, inputs, params)


def _moved(inputs: Named, rng: Rng) -> dict[str, Any]:
    """The inputs, their integers in another order."""
    whole = {n: a for n, a in inputs.items() if questions.is_whole(a) and not is_float(a)}
    return {**inputs, **{name: rng.permuted(array) for name, array in whole.items()}}
