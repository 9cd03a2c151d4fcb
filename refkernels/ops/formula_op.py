"""An op from its formulas: value, bound, condition number, plain algorithm, all read from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.enclosure import PARTS, Enclosure
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.arithmetic.mode import in_default_mode
from refkernels.arithmetic.question import Certify, Question
from refkernels.arithmetic.scalars import as_real
from refkernels.contexts.amplification import Amplification
from refkernels.contexts.bound import Bound
from refkernels.contexts.working import Working
from refkernels.op import Case, Direction, Invariant, Op
from refkernels.ops import readings
from refkernels.ops.canonical import Canonical, Prepared, canonical
from refkernels.ops.formula import Fault, Formula, derived
from refkernels.ops.letters import Argument, Signature
from refkernels.ops.readings import Reading
from refkernels.ops.settle import settle

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Forms = Mapping[str, Formula]
Prepare = Callable[[dict[str, Any], dict[str, Any], Direction], Prepared]


class Way(NamedTuple):
    """One direction of an op: what it takes and gives, and its formulas."""

    signature: Signature
    forms: Forms
    truth: Formula


@dataclass(frozen=True)
class Formulas:
    """The formulas of an op, and how they are read. `backward` is None where it has none."""

    name: str
    params: Mapping[str, Any]
    forward: Way
    backward: Way | None
    faults: tuple[Fault, ...] = ()
    prepare: Prepare | None = None
    scalars: str = "working"

    def way(self, direction: Direction) -> Way:
        """One direction. Raises ValueError where the op has no backward pass."""
        if direction == "forward":
            return self.forward
        if self.backward is None:
            raise ValueError(f"{self.name} has no backward pass.")
        return self.backward

    def question(
        self, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
    ) -> Canonical:
        """Inputs and params as formulas take them.

        Raises TypeError for dtypes that do not fit, ValueError for shapes that do not, and for
        inputs and params that the op does not have or that it needs.
        """
        way = self.way(direction)
        given: dict[str, Any] = {}
        for name, argument in way.signature.takes.items():
            array = inputs.get(name)
            if array is None and not argument.optional:
                raise ValueError(f"{self.name} {direction} needs {name!r} among its inputs.")
            given[name] = None if array is None else _array(argument, array)
        if unknown := [name for name in inputs if name not in given]:
            raise ValueError(f"{self.name} {direction} takes no {unknown[0]!r}.")
        told = {name: _param(name, params.get(name, d), d) for name, d in self.params.items()}
        if unknown := [name for name in params if name not in told]:
            raise ValueError(f"{self.name} has no parameter {unknown[0]!r}.")
        prepared = self.prepare(given, told, direction) if self.prepare else Prepared(given, told)
        return canonical(way.signature, prepared)

    def names(self, direction: Direction, question: Canonical) -> tuple[str, ...]:
        """The outputs that there are: no gradient of an input that is absent."""
        gives = self.way(direction).signature.gives
        if direction == "forward":
            return tuple(gives)
        return tuple(name for name in gives if question.arrays.get(name[1:]) is not None)

    @in_default_mode
    def evaluate(
        self,
        direction: Direction,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        certify: Certify = "enclosure",
    ) -> dict[str, Enclosure]:
        """The certified answer, by output."""
        asked, way = Question.parse(certify), self.way(direction)
        question = self.question(direction, inputs, params)
        names = self.names(direction, question)
        ieee = next(iter(way.forms.values()))
        found = settle(way.truth, question, names, asked, ieee)
        return {name: restored(question, name, one) for name, one in found.items()}

    @in_default_mode
    def form_bounds(
        self,
        direction: Direction,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        format: Format | str,
    ) -> dict[str, dict[str, Doubles]]:
        """How far a right kernel of each form may be off in that format: by form, by output."""
        question = self.question(direction, inputs, params)
        return {
            form: self._read(direction, formula, readings.bound(self._bound(format)), question)
            for form, formula in self.way(direction).forms.items()
        }

    def bound(
        self,
        direction: Direction,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        format: Format | str,
    ) -> dict[str, Doubles]:
        """The largest of the forms' bounds, elementwise."""
        every = self.form_bounds(direction, inputs, params, format).values()
        names = next(iter(every))
        return {n: functools.reduce(np.maximum, (one[n] for one in every)) for n in names}

    @in_default_mode
    def condition(
        self, direction: Direction, inputs: Mapping[str, Any], params: Mapping[str, Any]
    ) -> dict[str, Doubles]:
        """At least the condition number (`contexts.amplification`) of the first form."""
        xp = Amplification()
        reading = Reading(xp, lambda value: (xp.amplification(value),))
        return self._read(
            direction, self._first(direction), reading, self.question(direction, inputs, params)
        )

    @in_default_mode
    def plain(
        self,
        direction: Direction,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        format: Format | str,
    ) -> dict[str, Array]:
        """The first form computed in the format, sums in order."""
        return self.computed(direction, self._first(direction), inputs, params, format)

    @in_default_mode
    def computed(
        self,
        direction: Direction,
        formula: Formula,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        format: Format | str,
        **options: Any,
    ) -> dict[str, Array]:
        """What a kernel answers that computes a formula in the format, 16 bits in binary32;
        `options` are those of `contexts.Working`."""
        target = formats.get(format)
        working = Working(_working(target), target, **options)
        question = self.question(direction, inputs, params)
        return self._read(direction, formula, readings.working(working), question)

    @in_default_mode
    def certified(
        self,
        direction: Direction,
        formula: Formula,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        certify: Certify = "enclosure",
    ) -> dict[str, Enclosure]:
        """The certified value of another formula, a fault's."""
        question = self.question(direction, inputs, params)
        names = self.names(direction, question)
        found = settle(formula, question, names, Question.parse(certify))
        return {name: restored(question, name, one) for name, one in found.items()}

    @in_default_mode
    def bounded(
        self,
        direction: Direction,
        formula: Formula,
        inputs: Mapping[str, Any],
        params: Mapping[str, Any],
        format: Format | str,
    ) -> dict[str, Doubles]:
        """The bound of one formula in that format."""
        question = self.question(direction, inputs, params)
        return self._read(direction, formula, readings.bound(self._bound(format)), question)

    def _first(self, direction: Direction) -> Formula:
        return next(iter(self.way(direction).forms.values()))

    def _bound(self, format: Format | str) -> Bound:
        target = formats.get(format)
        return Bound(_working(target), target, scalars=self.scalars)  # type: ignore[arg-type]

    def _read(
        self, direction: Direction, formula: Formula, reading: Reading, question: Canonical
    ) -> dict[str, Any]:
        found = readings.read(formula, reading, question, self.names(direction, question))
        return {name: question.restore(name, parts[0]) for name, parts in found.items()}


def restored(question: Canonical, name: str, one: Enclosure) -> Any:
    """An output in the shape that its users expect; a tuple of them where it is a list."""
    columns = [question.restore(name, getattr(one, part)) for part in PARTS]
    if isinstance(columns[0], tuple):
        return tuple(Enclosure(*parts) for parts in zip(*columns, strict=True))
    return Enclosure(*columns)


def _working(target: Format) -> Format:
    return target if target in (BINARY32, BINARY64) else BINARY32


def _array(argument: Argument, given: Any) -> Any:
    if argument.several:
        if not isinstance(given, list | tuple):
            raise TypeError(f"{argument.name} is a list of arrays, not a {type(given).__name__}.")
        return [as_float_array(one, f"{argument.name}[{i}]") for i, one in enumerate(given)]
    if argument.kind == "float":
        return as_float_array(given, argument.name)
    array = np.asarray(given)
    kinds = {"int": "iu", "bool": "b"}[argument.kind]
    if array.dtype.kind not in kinds:
        what = "integers" if argument.kind == "int" else "truth values"
        raise TypeError(f"{argument.name} is {array.dtype}: it is an array of {what}.")
    return array


def _param(name: str, value: Any, default: Any) -> Any:
    """A param: a number where its default is one; what else there is, the formula looks at."""
    return as_real(value, name) if isinstance(default, float) else value


def formula_op(
    name: str,
    signature: str,
    coupled: str = "",
    *,
    forms: Forms,
    backward: Forms | None = None,
    truth: Formula | None = None,
    backward_truth: Formula | None = None,
    cotangents: Sequence[str] = (),
    gradients: Sequence[str] | None = None,
    faults: tuple[Fault, ...] = (),
    prepare: Prepare | None = None,
    params: Mapping[str, Any] | None = None,
    scalars: str = "working",
    invariants: tuple[Invariant, ...] = (),
    cases: Callable[[], list[Case]] = list,
) -> Op:
    """The op that these formulas are.

    signature       "x[... n], weight[n]? -> y[... n]" (`letters`); coupled: its coupled letters
    forms           the stable ways to compute it, by name, the definition first
    backward        those of the backward pass; left out, the gradients of the forms. They take the
                    cotangents in front of the inputs
    truth           what is certified, where that is not the definition: a form whose structure
                    shows exact zeros; backward_truth likewise
    cotangents      the outputs that have one: the first by default
    gradients       the inputs that get one: all of floating point by default; () for an op that has
                    no backward pass
    faults          the wrong and unstable ways to compute it
    prepare         see `canonical.Prepared`
    params          defaults by name; a float is a number of the formula's context
    scalars         "binary64" where kernels hold params in it and combine them there
    """
    way = Signature.parse(signature, coupled)
    above = {f"d{output}": output for output in cotangents or list(way.gives)[:1]}
    floats = [one.name for one in way.takes.values() if one.kind == "float"]
    below = {f"d{one}": one for one in (floats if gradients is None else gradients)}
    definition = truth or next(iter(forms.values()))
    reverse = None
    if below:
        turn = functools.partial(
            derived,
            outputs=tuple(way.gives),
            cotangents=above,
            inputs=tuple(below.values()),
        )
        ways = backward or {form: turn(formula) for form, formula in forms.items()}
        exact = backward_truth or (next(iter(ways.values())) if backward else turn(definition))
        reverse = Way(way.backward(above, below), ways, exact)
    formulas = Formulas(
        name, params or {}, Way(way, forms, definition), reverse, faults, prepare, scalars
    )
    return Op(
        name=name,
        inputs=tuple(way.takes),
        optional=tuple(one.name for one in way.takes.values() if one.optional),
        outputs=tuple(way.gives),
        cotangent=next(iter(above)),
        gradients=tuple(below),
        params=dict(params or {}),
        **{
            f"{direction}{suffix}": _reading(formulas, direction, method, options)
            for direction in ("forward", "backward")
            for suffix, (method, options) in _READINGS.items()
        },  # type: ignore[arg-type]
        cases=cases,
        invariants=invariants,
        elementwise=not {x for one in way.takes.values() for x in one.own},
        row_inputs=tuple(one.name for one in way.takes.values() if one.rows),
        row_gradients=tuple(g for g, one in below.items() if way.takes[one].rows),
        signature=way,
        formulas=formulas,
    )


_READINGS = {
    "": ("evaluate", ("certify",)),
    "_bound": ("bound", ("format",)),
    "_condition": ("condition", ()),
    "_plain": ("plain", ("format",)),
}


def _reading(
    formulas: Formulas, direction: Any, method: str, options: tuple[str, ...]
) -> Callable[..., dict[str, Any]]:
    """One of the callables of an `Op`: inputs and params by name."""

    def read(**given: Any) -> dict[str, Any]:
        asked = {name: given.pop(name) for name in options if name in given}
        params = {name: given.pop(name) for name in formulas.params if name in given}
        found: dict[str, Any] = getattr(formulas, method)(direction, given, params, **asked)
        return found

    return read
