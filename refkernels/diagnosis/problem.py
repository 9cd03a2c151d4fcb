"""A kernel's question, its right answer, and the right answers to other questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.edits.usual import faults_of
from refkernels.metrology import outputs
from refkernels.op import Direction, Op
from refkernels.ops.formula import Fault
from refkernels.range_limits import RangeLimits

if TYPE_CHECKING:
    from refkernels.ops.formulas import Formulas

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
Doubles = npt.NDArray[np.float64]
T = TypeVar("T")
READABLE = 1 << 17  # elements of all inputs, up to which hundreds of formulas are read whole
_KEPT = 1 << 16  # elements of the inputs, up to which answers to other questions are kept
_SMALL = 1 << 14  # elements of a function's x, whose axes are seen


class Later(Mapping[str, Array]):
    """Arrays by output name, computed when one of them is first read: most are never needed."""

    def __init__(self, find: Callable[[], Arrays]) -> None:
        self._find = find

    @cached_property
    def _arrays(self) -> Arrays:
        return self._find()

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


@dataclass(frozen=True)
class Answer:
    """The certified answer to a question, by output name: reference, bound, and the plain
    algorithm's answer. `invariant`: whether the op's invariants hold for it (3 sin exceeds 1).
    `format`: that of the answers, where it is narrower than the problem's."""

    reference: Mapping[str, Enclosure]
    bound: Mapping[str, Doubles]
    plain: Mapping[str, Array]
    invariant: bool = True
    limits: Mapping[str, RangeLimits] = field(default_factory=dict)
    format: Format | None = None

    def taken(self, name: str, places: Array) -> Answer:
        """One output, each element of which is the one at its flat place."""
        reference, bound, plain = (
            {name: part[name].reshape(-1)[places.reshape(-1)].reshape(places.shape)}
            for part in (self.reference, self.bound, self.plain)
        )
        return Answer(reference, bound, plain, invariant=False)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Problem:
    """One op on its inputs (with the cotangent for backward), in the format of its first output.
    `formats`: the formats of outputs that have another one. `hidden`: by output, how far a kernel's
    numbers may be from those that are given, where they were printed."""

    op: Op
    direction: Direction
    inputs: dict[str, Array]
    params: dict[str, Any]
    format: Format
    formats: Mapping[str, Format] = field(default_factory=dict)
    hidden: Arrays = field(default_factory=dict)

    def once(self, about: Hashable, find: Callable[[], T]) -> T:
        """`find()`; for a small question, its result is kept and returned again: several kernels,
        and the parts of an answer with two causes, are tried with the same hypotheses."""
        if self.size > _KEPT:
            return find()
        if about not in self._found:
            self._found[about] = find()
        result: T = self._found[about]
        return result

    @cached_property
    def _found(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def read(self) -> Counter[str]:
        """How many edited programs were read, and parts that nothing explains."""
        return Counter()

    @cached_property
    def faults(self) -> tuple[Fault, ...]:
        """The wrong ways to compute the pass that have a name, if its formulas are models."""
        if self.op.formulas is None and self.formulas is not None:  # edits find the usual ones
            return tuple(f for f in self.formulas.faults if getattr(f, self.direction) is not None)
        asked = self.formulas, self.direction, self.inputs, self.params
        return self.once(faults_of, lambda: faults_of(*asked))

    @property
    def formulas(self) -> Formulas | None:
        """The formulas whose forms are models of kernels; sums of products and functions of one
        number have models of their own."""
        modelled = self.op.sums or self.op.function
        return self.op.formulas if modelled else self.op.definition

    @cached_property
    def every_form(self) -> dict[str, Any]:
        """The forms of the formulas by name."""
        return {} if self.formulas is None else dict(self.formulas.of(self.direction).forms)

    @cached_property
    def right_forms(self) -> dict[str, Any]:
        """Those forms that do not lose digits, which are faults."""
        faulty = [getattr(fault, self.direction) for fault in self.faults]
        return {name: form for name, form in self.every_form.items() if form not in faulty}

    @cached_property
    def size(self) -> int:
        """The number of elements of all inputs."""
        values = self.inputs.values()
        lists = (value if isinstance(value, list | tuple) else (value,) for value in values)
        return sum(array.size for arrays in lists for array in arrays)

    @property
    def floats(self) -> Arrays:
        """The inputs that hold floats."""
        return {name: x for name, x in self.inputs.items() if x.dtype.kind not in "biu"}

    @cached_property
    def definition(self) -> Formulas:
        """The formulas of the op; a function's see the axes of a small x."""
        from refkernels.ops.function_formulas import definition

        axes = self.inputs["x"].ndim if self.op.function and self.size <= _SMALL else 0
        return definition(self.op, axes)

    def judging(self, answers: Arrays) -> Problem:
        """The same question, with each output judged in its format in `answers`."""
        own = {name: formats.of(array) for name, array in answers.items()}
        others = {name: format for name, format in own.items() if format != self.format}
        return self if others == self.formats else replace(self, formats=others)

    def known(self, asked: outputs.Asked | None) -> Problem:
        """The same question with its answer, where that is about every output in its format."""
        formats_of = {name: truth.format for name, truth in asked.truths.items()} if asked else {}
        if formats_of == {name: self.format_of(name) for name in self.op.names(self.direction)}:
            vars(self)["_asked"] = asked
        return self

    def format_of(self, output: str) -> Format:
        """The format that an output is judged in."""
        return self.formats.get(output, self.format)

    @cached_property
    def truth(self) -> Answer:
        """The right answer to the question."""
        return _answer(self._asked)

    def right(self, output: str, answer: Answer) -> Array | Iterator[Array] | None:
        """What an output's error about an answer is compared with; None where nothing is known."""
        return self._asked.right(output) if answer is self.truth else answer.plain.get(output)

    def attainable(self, output: str) -> Sequence[Arrays]:
        """The bounds by which an output's errors are avoidable."""
        return self._asked.attainable(output)

    def bound_in(self, output: str, format: Format) -> Doubles:
        """The error bound of stable kernels that answer the question in another format."""
        return self._asked.truths[output].bound(format)[output]

    @cached_property
    def plain(self) -> dict[str, Array]:
        """The plain algorithm's answer, every output in the problem's format."""
        return self.op.plain(self.direction, self.inputs, self.params, self.format)

    @cached_property
    def worked(self) -> tuple[Arrays, ...]:
        """The answers of the plain algorithm and, for a formula, of its other forms; every output
        in its own format."""
        return self.truth.plain, *map(self._worked, list(self.right_forms.values())[1:])

    def computed(
        self, formula: Any, arithmetic: Any = "", format: Format | None = None, **options: Any
    ) -> dict[str, Array]:
        """A formula's answer in the question's format or another (see `Formulas.computed`)."""
        question = self.direction, formula, self.inputs, self.params, format or self.format
        return (self.formulas or self.definition).computed(*question, arithmetic, **options)

    def _worked(self, form: Any) -> dict[str, Array]:
        names = self.op.names(self.direction)
        answers: dict[str, Array] = {}
        for format in dict.fromkeys(map(self.format_of, names)):
            computed = self.computed(form, format=format)
            answers |= {n: y for n, y in computed.items() if self.format_of(n) == format}
        return answers

    @property
    def first(self) -> tuple[str, ...]:
        return self.op.names(self.direction)[:1]

    @cached_property
    def forms(self) -> dict[str, Doubles]:
        """The first output's bound for each named form of the op, sharpest first."""
        return dict(self._asked.truths[self.first[0]].forms)

    def sharp(self, output: str) -> Doubles:
        """The bound of the sharpest named form; without several forms, the op's. A form that loses
        every digit is a cause of its own."""
        has_forms = self.forms and output in self.first
        return next(iter(self.forms.values())) if has_forms else self.truth.bound[output]

    @cached_property
    def condition(self) -> dict[str, Doubles]:
        """Condition numbers, by output name."""
        return self._asked.condition

    @cached_property
    def _asked(self) -> outputs.Asked:
        return self._ask(self.op, self.inputs, self.params)

    def ask(
        self,
        inputs: Arrays | None = None,
        params: Mapping[str, Any] | None = None,
        op: str | Op | None = None,
    ) -> Answer:
        """The answer with some inputs and params replaced (None leaves an input out), or the answer
        of another op."""
        chosen = self.op if op is None else registry.get(op)
        arrays = {**self.inputs, **(inputs or {})}
        arrays = {name: array for name, array in arrays.items() if array is not None}
        settings = {**self.params, **(params or {})}
        settings = {name: value for name, value in settings.items() if name in chosen.params}
        return _answer(self._ask(chosen, arrays, settings))

    def _ask(self, op: Op, inputs: Arrays, params: Mapping[str, Any]) -> outputs.Asked:
        judged = {name: self.format_of(name) for name in op.names(self.direction)}
        return outputs.ask(op, self.direction, inputs, params, judged)


def _answer(asked: outputs.Asked) -> Answer:
    return Answer(
        asked.reference, Later(lambda: asked.bound), Later(lambda: asked.plain), limits=asked.limits
    )
