"""The readings of an op's formulas: value, bound, condition number, plain algorithm, and cones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arguments import TextOrNumbers
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_array_of, as_float_array
from refkernels.arithmetic.enclosure import PARTS, Enclosure, moved, trusted
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.question import Certify, Question
from refkernels.arithmetic.scalars import as_eps, as_real
from refkernels.arithmetic.wording import shown
from refkernels.op import Direction
from refkernels.ops.canonical import Canonical, Prepared, canonical
from refkernels.ops.domains import NOT_NEGATIVE, REAL, Domain
from refkernels.ops.formula import Fault, Formula
from refkernels.ops.kept_questions import canonical_once
from refkernels.ops.letters import Argument, Signature

if TYPE_CHECKING:
    from refkernels.ops.draft import Drafted
    from refkernels.ops.readings import Reading

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Forms = Mapping[str, Formula]
Named = Mapping[str, Any]
Prepare = Callable[[dict[str, Any], dict[str, Any], Direction], Prepared]
Tier = Callable[[Direction, Canonical, Question], "Drafted | None"]
_DIGITS = 48  # of an element's number


class Pass(NamedTuple):
    """One direction of an op: its signature and its formulas."""

    signature: Signature
    forms: Forms
    truth: Formula


@dataclass(frozen=True)
class Formulas:
    """The formulas of an op, and how they are read. `backward` is None where the op has no backward
    pass. `widest`: a form whose bound holds for all forms; "": the bound is their maximum.
    `domains`: the values that restricted params may take. `conventions`: formulas that differ in
    special values alone, which a right kernel may give as well. `derive` gives the backward pass of
    a forward formula. `limited`: whether all that `prepare` does is to replace infinities, so that
    values are limits; the forms themselves may be NaN there. `tier`: a tuned first tier, which
    drafts answers to the questions that suit it."""

    name: str
    params: Named
    forward: Pass
    backward: Pass | None
    faults: tuple[Fault, ...] = ()
    prepare: Prepare | None = None
    scalars: str = "working"
    widest: str = ""
    domains: Mapping[str, Domain] = field(default_factory=dict)
    conventions: tuple[Fault, ...] = ()
    limited: bool = False
    derive: Callable[[Formula], Formula] | None = None
    tier: Tier | None = None

    def domain(self, param: str) -> Domain:
        """The values that a param, which is a float or None, may take."""
        return self.domains.get(param, NOT_NEGATIVE if param == "eps" else REAL)

    def of(self, direction: Direction) -> Pass:
        """One direction. Raises ValueError where the op has no backward pass."""
        if direction == "forward":
            return self.forward
        if self.backward is None:
            raise ValueError(f"{self.name} has no backward pass.")
        return self.backward

    def question(self, direction: Direction, inputs: Named, params: Named) -> Canonical:
        """Inputs and params in the form that formulas take.

        Raises TypeError for dtypes that do not fit, ValueError for shapes that do not fit, for
        unknown inputs and params, and for missing inputs.
        """
        find = functools.partial(self._question, direction, inputs, params)
        return canonical_once(find, (self.name, id(self), direction), inputs, params)

    def _question(self, direction: Direction, inputs: Named, params: Named) -> Canonical:
        way = self.of(direction)
        arrays: dict[str, Any] = {}
        for name, argument in way.signature.takes.items():
            array = inputs.get(name)
            if array is None and not argument.optional:
                raise ValueError(f"{self.name} {direction} needs {name!r} among its inputs.")
            arrays[name] = None if array is None else _array(argument, array)
        if unknown := [name for name in inputs if name not in arrays]:
            raise ValueError(f"{self.name} {direction} takes no {unknown[0]!r}.")
        values = {
            name: _param(name, params.get(name, default), default)
            for name, default in self.params.items()
        }
        for name, domain in self.domains.items():
            if values[name] is not None:
                domain.check(name, values[name])
        if unknown := [name for name in params if name not in values]:
            raise ValueError(f"{self.name} has no parameter {unknown[0]!r}.")
        if not self.prepare:
            return canonical(way.signature, Prepared(arrays, values))
        with np.errstate(invalid="ignore"):  # NaN is data here
            return canonical(way.signature, self.prepare(arrays, values, direction))

    def dependencies(
        self,
        direction: Direction,
        output: str,
        index: tuple[int, ...],
        inputs: Named,
        params: Named,
    ) -> dict[str, npt.NDArray[np.intp]]:
        """The flat indices of the elements of each input on which an output's element depends."""
        places = {  # above 0, which an op's `prepare` fills in, and below 1, as what is drawn is
            name: np.ldexp(np.arange(1.0, array.size + 1.0), -_DIGITS).reshape(array.shape)
            if self.of(direction).signature.takes[name].kind in ("float", "low")
            else array
            for name, array in inputs.items()
        }
        question = self.question(direction, places, params)
        shape = question.shapes[output]
        row, *places_of_letters = np.unravel_index(int(question.order(output)[index]), shape)
        argument = question.signature.gives[output]
        at = ((int(row),) if argument.rows else ()) + tuple(
            int(i) for i in places_of_letters[: len(argument.own)]
        )
        inside = {}
        for name, slices in question.signature.dependencies(
            output, at, question.lettered()
        ).items():
            array = question.arrays[name]
            if name in places and array is not None and array.dtype.kind not in "iub":
                rows = question.signature.takes[name].rows
                part = array[slices if rows else (slice(None), *slices)]
                inside[name] = np.ldexp(np.unique(part[part > 0]), _DIGITS).astype(np.intp) - 1
        return inside

    def names(self, direction: Direction, question: Canonical) -> tuple[str, ...]:
        """The outputs that exist: an absent input has no gradient, an absent state no new value."""
        way = self.of(direction).signature
        source_of = {name: name if direction == "forward" else name[1:] for name in way.gives}
        return tuple(
            name
            for name, source in source_of.items()
            if source not in way.takes or question.arrays.get(source) is not None
        )

    @with_default_fenv
    def evaluate(
        self, direction: Direction, inputs: Named, params: Named, certify: Certify = "enclosure"
    ) -> dict[str, Enclosure]:
        """The certified answer, by output."""
        goal, way = Question.parse(certify), self.of(direction)
        question = self.question(direction, inputs, params)
        names = self.names(direction, question)
        drafted, ieee = self.tier and self.tier(direction, question, goal), self.first(direction)
        answers = _evaluation().refine(way.truth, question, names, goal, ieee, drafted)
        return {name: restored(question, name, answer) for name, answer in answers.items()}

    @with_default_fenv
    def form_bounds(
        self,
        direction: Direction,
        inputs: Named,
        params: Named,
        format: Format | str,
        **options: Any,
    ) -> dict[str, dict[str, Doubles]]:
        """The bound on a right kernel's error for each form in that format: by form, by output.
        `options`: those of `contexts.Bound`."""
        question = self.question(direction, inputs, params)
        reading = self._bound(format, **options)
        return self._bounds(direction, self.of(direction).forms, reading, question)

    @with_default_fenv
    def attainable(
        self, direction: Direction, inputs: Named, params: Named, format: Format | str
    ) -> tuple[dict[str, dict[str, Doubles]], ...]:
        """The bounds of kernels that store nothing but their result, by form, by output: of the
        forms that take the inputs, then of those that take what the forward pass saved."""
        question, target = self.question(direction, inputs, params), formats.get(format)
        evaluation, inner = _evaluation(), formats.working_format(target)
        from_inputs: dict[str, dict[str, Doubles]] = {}
        from_saved: dict[str, dict[str, Doubles]] = {}
        for form, formula in self.of(direction).forms.items():
            xp = evaluation.Unstored(inner, target, scalars=self.scalars)
            reading = evaluation.bound(xp)
            bounds = self._read(direction, formula, reading, question)
            (from_saved if xp.from_saved else from_inputs)[form] = bounds
        return from_inputs, from_saved

    @with_default_fenv
    def reachable(
        self, direction: Direction, inputs: Named, params: Named, format: Format | str
    ) -> dict[str, dict[str, tuple[Any, ...]]]:
        """What a right kernel may compute where an intermediate result leaves its format's range:
        by form, by output, the least and the largest value, and whether NaN is one
        (`contexts.reachable`)."""
        question, target = self.question(direction, inputs, params), formats.get(format)
        names, evaluation = self.names(direction, question), _evaluation()
        xp = evaluation.Reachable(formats.working_format(target), target, scalars=self.scalars)
        reading = evaluation.reachable(xp)
        return {
            form: {
                name: tuple(question.restore(name, part) for part in parts)
                for name, parts in evaluation.read(formula, reading, question, names).items()
            }
            for form, formula in self.of(direction).forms.items()
        }

    def bound(
        self,
        direction: Direction,
        inputs: Named,
        params: Named,
        format: Format | str,
        extra: float = 0.0,
    ) -> dict[str, Doubles]:
        """The largest of the forms' bounds, elementwise; that of the widest form alone, where one
        covers the others. `extra`: as for `contexts.Bound`."""
        if self.widest:
            widest = self.of(direction).forms[self.widest]
            return self.bounded(direction, widest, inputs, params, format, extra=extra)
        bounds_of_forms = self.form_bounds(direction, inputs, params, format, extra=extra).values()
        names = next(iter(bounds_of_forms))
        return {
            n: functools.reduce(np.maximum, (bounds[n] for bounds in bounds_of_forms))
            for n in names
        }

    def least(self, ends: tuple[float, float], format: Format) -> tuple[float, float]:
        """A number that times |y| is at most `bound`, for x between these ends and no power of two,
        and one that is so itself. For an op of x alone; 0 where nothing is known."""
        if self.scalars != "working":
            return 0.0, 0.0
        forms = self.forward.forms
        read = (forms[self.widest],) if self.widest else tuple(forms.values())
        return _evaluation().least(read, ends, formats.working_format(format), format)

    @with_default_fenv
    def condition(self, direction: Direction, inputs: Named, params: Named) -> dict[str, Doubles]:
        """An upper bound on the condition number of the first form (`contexts.amplification`)."""
        question = self.question(direction, inputs, params)
        reading = _evaluation().amplification()
        return self._read(direction, self.first(direction), reading, question)

    @with_default_fenv
    def plain(
        self, direction: Direction, inputs: Named, params: Named, format: Format | str
    ) -> dict[str, Array]:
        """The first form computed in the format, sums in order."""
        return self.computed(direction, self.first(direction), inputs, params, format)

    @with_default_fenv
    def computed(
        self,
        direction: Direction,
        formula: Formula,
        inputs: Named,
        params: Named,
        format: Format | str,
        arithmetic: Any = "",
        **options: Any,
    ) -> dict[str, Array]:
        """The answer of a kernel that computes a formula in the format, 16 bits in binary32;
        `options` are those of `contexts.RoundedArithmetic`, and of the arithmetic: "narrow", every
        intermediate result rounded to a format of 16 bits; "composed", the same, but each op
        computes in binary32; "tensor cores", matrix products as matrix instructions add them;
        "signed zeros", in binary64 with `made` for zeros that have no sign. Or the arithmetic is a
        `RoundedArithmetic` context, whatever the format."""
        question, target = self.question(direction, inputs, params), formats.get(format)
        reading = _evaluation().working(arithmetic, target, self.scalars, **options)
        return self._read(direction, formula, reading, question)

    @with_default_fenv
    def certified(
        self,
        direction: Direction,
        formula: Formula,
        inputs: Named,
        params: Named,
        certify: Certify = "enclosure",
    ) -> dict[str, Enclosure]:
        """The certified value of another formula, such as a fault's."""
        question = self.question(direction, inputs, params)
        names = self.names(direction, question)
        enclosures = _evaluation().refine(formula, question, names, Question.parse(certify))
        return {name: restored(question, name, enclosure) for name, enclosure in enclosures.items()}

    @with_default_fenv
    def bounded(
        self,
        direction: Direction,
        formula: Formula,
        inputs: Named,
        params: Named,
        format: Format | str,
        working: Format | None = None,
        extra: float = 0.0,
    ) -> dict[str, Doubles]:
        """The bound of one formula in that format, computed in `working`: by default in binary32
        for 16 bits."""
        question = self.question(direction, inputs, params)
        reading = self._bound(format, working=working, extra=extra)
        return self._bounds(direction, {"": formula}, reading, question)[""]

    def first(self, direction: Direction) -> Formula:
        """The form that comes first."""
        return next(iter(self.of(direction).forms.values()))

    def _bound(self, format: Format | str, working: Format | None = None, **options: Any) -> Any:
        evaluation, target = _evaluation(), formats.get(format)
        inner = working or formats.working_format(target)
        return evaluation.bound(evaluation.Bound(inner, target, scalars=self.scalars, **options))

    def _bounds(
        self, direction: Direction, forms: Forms, reading: Reading, question: Canonical
    ) -> dict[str, dict[str, Any]]:
        """The formulas' bounds; with the errors of statistics as common where one says little."""
        names, evaluation = self.names(direction, question), _evaluation()
        read = evaluation.read_forms(forms, reading, question, names)
        if vague := [
            form
            for form, outputs in read.items()
            if any(evaluation.says_little(*parts) for parts in outputs.values())
        ]:
            reading = evaluation.bound(evaluation.CommonErrors.of(reading.xp))
            read |= evaluation.read_forms({f: forms[f] for f in vague}, reading, question, names)
        for form in (form for form, formula in forms.items() if hasattr(formula, "limited")):
            read[form] = forms[form].limited(read[form], reading.xp, question)  # type: ignore[attr-defined]
        return {
            form: {name: question.restore(name, parts[0]) for name, parts in outputs.items()}
            for form, outputs in read.items()
        }

    def _read(
        self, direction: Direction, formula: Formula, reading: Reading, question: Canonical
    ) -> dict[str, Any]:
        names = self.names(direction, question)
        outputs = _evaluation().read(formula, reading, question, names)
        return {name: question.restore(name, parts[0]) for name, parts in outputs.items()}


def restored(question: Canonical, name: str, enclosure: Enclosure) -> Any:
    """An output in the shape that users expect; a tuple of arrays where it is a list."""
    if not question.signature.gives[name].several:
        return moved(enclosure, functools.partial(question.restore, name))
    columns = [question.restore(name, getattr(enclosure, part)) for part in PARTS]
    return tuple(trusted(*parts) for parts in zip(*columns, strict=True))


def _evaluation() -> Any:
    """The module `evaluation`, with all contexts, loaded when a formula is first read."""
    from refkernels.ops import evaluation

    return evaluation


def _array(argument: Argument, value: Any) -> Any:
    if argument.several:
        if not isinstance(value, list | tuple):
            raise TypeError(f"{argument.name} is a list of arrays, not a {type(value).__name__}.")
        return [as_float_array(array, f"{argument.name}[{i}]") for i, array in enumerate(value)]
    return as_array_of(argument.kind, value, argument.name)


def _param(name: str, value: Any, default: Any) -> Any:
    """A param, checked by its default: a number, a truth value or a string. The op's `prepare`
    checks which strings, and all other params."""
    if isinstance(default, float):
        return as_eps(value) if name == "eps" else as_real(value, name)
    if isinstance(default, TextOrNumbers):
        return value
    for kind, taken, wording in ((bool, bool, "True or False"), (str, str | bool, "a string")):
        if isinstance(default, kind) and not issubclass(type(value), taken):
            raise TypeError(f"{name} is {shown(value)}, but it must be {wording}.")
    return value
