"""The screen: every edit of a program, read in float64 on some rows, and how near it comes.

The distance of a prediction p from the kernel's answer is sum log2(1 + |got - p| / unit): about the
bits of the answer when p is known, where a unit is an ulp of p times the plain algorithm's usual
error. What merely rounds costs a bit or less, and a few large errors do not decide.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.bits import EXPONENT
from refkernels.contexts.doubles import on_plain_arrays
from refkernels.contexts.gradient import Gradient, Taped
from refkernels.contexts.graph import Edits, Graph, Node, Reader, in_order, needed, read, values_of
from refkernels.contexts.value import Value
from refkernels.contexts.working import RoundedArithmetic, data
from refkernels.diagnosis import code_lengths
from refkernels.diagnosis.edits import arithmetic, catalogue, recognised
from refkernels.diagnosis.edits.catalogue import XP, Derive, Edit, Program, affected, by
from refkernels.diagnosis.edits.rules import edits_of
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.metrology import ulp
from refkernels.ops.canonical import Canonical
from refkernels.ops.edits import Rule, edited
from refkernels.ops.formula import Formula, PerOutput, several
from refkernels.ops.readings import Reading

_ELEMENTS = 1 << 14
_BUDGET = 1 << 28  # elements of nodes: about a second
_READING, _OVERHEAD, _TAPE = 1 << 15, 1 << 11, 2  # of a reading, and a node, in elements; gradients
RIGHT, WRONG = 3.0, 8.0  # bits of an element that merely rounds, and of one that does not
CHANGE, CHANCE = 2.0**-12, 0.25  # relative, that shows; of elements, that are right by chance
_FEW, _LEANING = 64, 2.0  # signs; deviations of their mean by chance
_SPECIAL = 64.0  # bits of a special value that the prediction lacks
Doubles64 = npt.NDArray[np.float64]
Predicted = Mapping[str, Doubles64]
Costs = tuple[dict[str, float], dict[str, int]]


class _Tape(Gradient):
    """Of the same value, it has the same leaf; of a movement that comes often, the same indices.
    What was repeated is pulled back as any share of a smaller argument is."""

    def __init__(self, below: Any) -> None:
        super().__init__(below)
        self.leaves: dict[int, Taped] = {}
        self.moved = functools.lru_cache(256)(super().moved)  # type: ignore[method-assign]

    def pull(self, output: Value, cotangent: Any, inputs: Sequence[Value]) -> list[Value]:
        return super().pull(output, cotangent.data, inputs)

    def broadcast(self, a: Any, shape: Any) -> Taped:
        return Taped(self, self.below.broadcast(a.value, shape), (a,), lambda g: (g,))

    def reshape(self, a: Any, shape: Any) -> Taped:
        reshape = self.below.reshape
        return Taped(self, reshape(a.value, shape), (a,), lambda g: (reshape(g, a.shape),))

    def leaf(self, value: Any) -> Taped:
        return self.leaves.setdefault(id(value), Taped(self, value.data))


@dataclass(frozen=True)
class Observation:
    """The kernel's answer at some rows, in the formula's axes, flat. `units`: ulps of an element's
    usual error."""

    got: Doubles64
    format: Any
    units: Doubles64

    def bits(self, predicted: Doubles64) -> Doubles64:
        """What each element of the answer costs when the prediction, in a narrow format a rounded
        one, is known: at most its digits, if both are finite."""
        with np.errstate(all="ignore"):
            if self.format.p < formats.BINARY32.p:
                predicted = formats.round_to(predicted, self.format).astype(float)
            size = np.fmax(np.abs(self.got), np.abs(predicted))
            powers = (size.view(np.int64) & EXPONENT).view(float) * 2.0 ** (1 - self.format.p)
            unit = np.maximum(powers, self.format.min_subnormal) * self.units
            bits = np.log2(1.0 + np.abs(self.got - predicted) / unit)
        if math.isfinite(bits.sum()):
            return bits
        same = (self.got == predicted) | (np.isnan(self.got) & np.isnan(predicted))
        return np.where(same, 0.0, np.where(np.isfinite(bits), bits, _SPECIAL))

    def apart(self, predicted: Doubles64, other: Doubles64, right: Doubles64) -> float:
        """The root mean square of what is between two predictions, in usual errors: those of what
        is right, as far as elements cancel that do not there."""
        with np.errstate(all="ignore"):
            alike = np.abs(right) * np.median(np.nan_to_num(np.abs(predicted / right)))
            sizes = np.fmax(np.abs(predicted), alike)
            errors = (predicted - other) / (ulp(sizes, self.format) * self.units)
        errors = errors[np.isfinite(errors)]
        return float(np.sqrt(np.mean(np.square(errors)))) if errors.size else np.inf


def usual_units(problem: Problem, name: str) -> Doubles64:
    """The usual error of each element of an output, in ulp; or what is hidden of it."""
    plain, format = problem.truth.plain[name], problem.format_of(name)
    reference = problem.truth.reference[name]
    steps = code_lengths.steps(plain.reshape(-1).astype(format.storage), reference.reshape(-1))
    widths = code_lengths.widths(np.asarray(reference), problem.truth.bound[name], format)
    usual = code_lengths.spread(steps / widths.reshape(-1)) * widths
    if name in problem.hidden:
        usual = np.maximum(usual, problem.hidden[name] / ulp(np.asarray(reference), format))
    return usual


class Screen:
    """A question at some of its rows, one program that answers it, and its edits."""

    def __init__(
        self,
        problem: Problem,
        outputs: Arrays,
        form: str = "",
        derived: bool = False,
        elements: int = _ELEMENTS,
        written: Rule | None = None,
        missed: set[Hashable] | None = None,
        block: Arrays | None = None,
    ) -> None:
        """`form`: of the op's forms, the one whose graph is edited, the first by default.
        `derived`: the program is the forward pass, read for its gradient. `elements`: of all inputs
        of the rows that are read, if they are many. `written`: edits the program first. `missed`:
        by their keys, the edits that came no nearer in other programs of the same pass. `block`:
        masks of the elements that are looked at, by output."""
        self.problem, self.definition, self.outputs = problem, problem.definition, outputs
        self.wrong = RIGHT if problem.hidden else WRONG  # digits that are hidden end somewhere
        definition = self.definition
        self.derive = definition.derive if derived else None
        forms = definition.of("forward" if derived else problem.direction).forms
        formula: Formula = forms[form or next(iter(forms))]
        self.direction = problem.direction
        self.question = definition.question(self.direction, problem.inputs, problem.params)
        names = definition.names(self.direction, self.question)
        given = {name: outputs[name] for name in names if name in outputs}
        self.names = tuple(n for n, y in given.items() if y.size > 1 or y.any())
        formula = self.whole = formula if written is None else edited(formula, written)
        if isinstance(formula, PerOutput) and not derived:  # the others may need rows not taken
            formula = formula.restricted(name in self.names for name in self.question.shapes)
        self.formula, self.spent = formula, 0.0
        self._cost_of = functools.cache(lambda n: self._cost(affected(self.program.users, n)))
        self.answers: dict[Hashable, Answer | None] = {}  # the oracle's, by chain of edits
        self.missed = set[Hashable]() if missed is None else missed
        self.key_of, self._kept = catalogue.KeyOf(self.value_of), dict[Any, list[Any]]()
        self.rows = _rows(problem, self.question, outputs, self.names, elements)
        self.block = {n: self.question.in_axes(n, mask) for n, mask in (block or {}).items()}
        self.looked_at = {name: self._at_rows(name, mask) for name, mask in self.block.items()}
        self.observed = {name: self._observed(name) for name in self.names}
        self.arrays = self.question.take(self.rows)
        self.others: list[Screen] = []

    def beside(self, others: Iterable[Screen]) -> Screen:
        """This screen, with the outputs of other cases of the kernel after its own: one number,
        which many edits give, says little. Edits are at the same places of their programs."""
        self.others = [case for case in others if case._form == self._form]
        for name, seen in self.observed.items() if self.others else ():
            each = [seen, *(case.observed[name] for case in self.others)]
            of_all = {p: np.concatenate([getattr(s, p) for s in each]) for p in ("got", "units")}
            self.observed[name] = replace(seen, **of_all)
        return self

    @cached_property
    def _form(self) -> Any:
        """What the programs of cases that are read together have in common."""
        nodes = self.program.graph.nodes if self.has_a_program else ()
        formats = [seen.format for seen in self.observed.values()]
        return self.names, formats, [(node.op, node.shape) for node in nodes]

    def _in(self, case: Screen, changes: Edits) -> Edits:
        """The edits in another case's program."""
        nodes, places = case.program.graph.nodes, self.program.places

        @functools.cache
        def there(node: Node) -> Node:  # or an edit's own
            own = None if node in places else tuple(map(there, node.operands))
            return nodes[places[node]] if own is None else replace(node, operands=own)

        moved = {
            n: new._replace(operands=(*map(there, new.operands),)) for n, new in changes.items()
        }
        return {there(node): new for node, new in moved.items()}

    @cached_property
    def program(self) -> Program:
        return catalogue.program_of(self.formula, self.arguments(self.arrays), self.derive)

    @property
    def has_a_program(self) -> bool:
        """Whether the formula has a graph: not where it asks what no graph holds, nor where an op
        prepares the arrays of its backward pass in a way that its forward formula does not take."""
        try:
            return bool(self.names and self.program)
        except (ValueError, TypeError, IndexError):
            return False

    @cached_property
    def reader(self) -> _Reader:
        return _Reader(self.program, self.arguments(self.arrays), self.derive)

    @cached_property
    def elsewhere(self) -> _Reader:
        """On random numbers, of many sizes where formats may differ: what agrees is one program."""
        random = np.random.default_rng(0)
        octaves = 12 if any(node.op == "step" for node in self.program.nodes) else 0
        drawn = {
            name: random.uniform(0.5, 2.0, a.shape)
            * 2.0 ** random.integers(-octaves, octaves + 1, a.shape)
            for name, a in self.arrays.items()
            if a is not None and a.dtype.kind not in "iub"
        }
        return _Reader(self.program, self.arguments({**self.arrays, **drawn}), self.derive)

    def arguments(self, arrays: Mapping[str, Any], xp: RoundedArithmetic = XP) -> dict[str, Any]:
        """Arrays of some rows and the params, as values of a context."""
        return Reading(xp, lambda value: ()).arguments(arrays, self.question.params)

    @property
    def recognised(self) -> list[Edit]:
        """Edits of what is recognised by its values: functions, and sums of whole numbers."""
        return [*self.kept(recognised.others), *self.kept(arithmetic.sums_in_few_bits)]

    def kept(self, find: Callable[..., Iterable[Any]]) -> list[Any]:
        """What is found in the program and its values, once."""
        if find not in self._kept:
            self._kept[find] = list(find(self.program, self.value_of))
        return self._kept[find]

    @cached_property
    def edits(self) -> list[Edit]:
        """All, but for formats that are no narrower than what the kernel computes in, the rounding
        of a result that nothing else reads, and gradients that are stopped where none is taken."""
        edits = edits_of(self.program, None, self.recognised)
        edits = [edit for edit in edits if self.derive or edit.family != "gradient"]
        through, nodes = catalogue.through, self.program.nodes
        read = {through(a) for n in nodes if through(n) is n for a in n.operands}
        results = {through(node) for node in self.program.graph.outputs if node} - read
        results |= {through(a) for node in results if node.op == "either" for a in node.operands}
        own, working = self.problem.format, formats.working_format(self.problem.format)

        def narrows(edit: Edit) -> bool:
            wide = own if edit.details.get("part") in results else working
            return "format" not in edit.details or formats.get(edit.details["format"]).p < wide.p

        missed = self.missed
        return [e for e in edits if narrows(e) and not (missed and self.key_of(e) in missed)]

    @cached_property
    def affordable(self) -> int:
        """How many readings the budget of a stage of the search allows: elements of nodes, so that
        no answer depends on how fast a machine is."""
        return int(1.0 / self._cost(self.program.nodes))

    def _cost(self, nodes: Collection[Node]) -> float:
        """Of reading nodes, in budgets; a gradient goes through all of them."""
        nodes = self.program.nodes if self.derive else nodes
        elements = sum(_OVERHEAD + math.prod(node.shape) for node in nodes)
        return (_READING + elements * (_TAPE if self.derive else 1)) / _BUDGET

    def depends_on_pivot(self, changes: Edits) -> bool:
        """Whether a result changes with a pivot, which mathematically it must not."""
        pivots = [node for node in self.program.of("pivot") if node not in changes]
        shifted = {node: by(node)(lambda xp, v: v + 1) for node in pivots}
        here, there = self.predicted(changes), self.predicted({**shifted, **changes})
        if here is None or there is None:
            return bool(pivots)
        pairs = zip(here.values(), there.values(), strict=True)
        return not all(np.allclose(a, b, 1e-9, 0.0, equal_nan=True) for a, b in pairs)

    def predicted(self, changes: Edits, elsewhere: bool = False) -> Predicted | None:
        """The outputs of the edited program, by name; None where its shapes do not fit."""
        self._count(tuple(changes))
        reader = self.elsewhere if elsewhere else self.reader
        try:
            with np.errstate(all="ignore"):
                own = self._named(reader.outputs(changes))
        except (ValueError, IndexError, TypeError):
            return None  # an axis of another length has no place here
        if elsewhere or not self.others:
            return own
        each = [own]
        for case in self.others:
            if (there := case.predicted(self._in(case, changes))) is None:
                return None
            each.append(there)
        return {name: np.concatenate([one[name] for one in each]) for name in self.names}

    def _count(self, edited: tuple[Node, ...]) -> None:
        self.spent += self._cost_of(edited)
        self.problem.read["edits"] += 1

    def _named(self, values: list[Any]) -> Predicted:
        outputs = dict(zip(self.question.shapes, values, strict=False))
        return {
            name: (y if y.shape == shape else np.broadcast_to(y, shape)).reshape(-1)[
                self.looked_at.get(name, ...)
            ]
            for name in self.names
            for y, shape in [(outputs[name], self.shape_of(name))]
        }

    def computed(self, graph: Graph, xp: RoundedArithmetic, changes: Edits) -> Predicted:
        """The outputs of an edited graph of some form, in another arithmetic."""
        values = graph.read(xp, self.arguments(self.arrays, xp), changes)
        return self._named([value if value is None else data(xp.store(value)) for value in values])

    def asked(self, inputs: Arrays, params: Mapping[str, Any], xp: Any = XP) -> Predicted:
        """What the formula of some other inputs and params gives, without edits; nothing where
        these do not fit."""
        given, settings = {**self.problem.inputs, **inputs}, {**self.problem.params, **params}
        try:
            asked = self.definition.question(self.direction, given, settings)
            regrouped = len(self.rows) == self.question.rows != asked.rows
            rows = np.arange(asked.rows) if regrouped else self.rows
            arguments = Reading(xp, lambda value: ()).arguments(asked.take(rows), asked.params)
            with np.errstate(all="ignore"):  # anew: a graph holds what was made of index arrays
                outputs = several(self.formula(xp, **arguments))
            stored = [value if value is None else data(xp.store(value)) for value in outputs]
            shapes = map(self.shape_of, self.question.shapes)
            values = [
                y.reshape(to) if y is not None and y.size == math.prod(to) else y
                for y, to in zip(stored, shapes, strict=False)
            ]
            return self._named(values)
        except (ValueError, IndexError, TypeError):
            return {}

    def touched(self, changes: Edits, names: Iterable[str], limits: bool = False) -> list[str]:
        """The outputs of these of which the edits change most wrong elements, mostly to their side
        or mostly to the other, and few right ones beside them, unless they are limits at their
        strongest; the least right output first."""
        predicted, touched = self.predicted(changes), []
        if predicted is None:
            return []
        for name in names:
            base, seen = self.base[name], self.observed[name]
            bits = seen.bits(base)
            changed = replace(seen, got=base).bits(predicted[name]) > self.wrong
            most = CHANCE * np.count_nonzero(changed)
            wrong = np.count_nonzero(bits > self.wrong)
            reached = np.count_nonzero(changed & (bits > self.wrong)) >= (1.0 - CHANCE) * wrong
            spoilt = 0 if limits else np.count_nonzero(changed & (bits <= RIGHT))
            with np.errstate(all="ignore"):
                along = (predicted[name] - base) * (self.observed[name].got - base)
            signs = np.sign(along[(bits > self.wrong) & np.isfinite(along) & (along != 0.0)])
            leans = signs.size < _FEW or abs(np.sum(signs)) >= _LEANING * signs.size**0.5
            if np.any(changed) and spoilt <= most and reached and leans:
                touched.append(name)
        return sorted(touched, key=lambda name: -self.before[0][name])

    def value_of(self, node: Node, changes: Edits | None = None) -> Array:
        """A node's value in the program, or in the edited one."""
        if not changes and self.base is not None:
            known = getattr(held := self.reader.known[node], "value", held)  # on a tape, or not
            if getattr(known, "dtype", None) != np.float64:
                raise TypeError(f"{node} is not a number.")
            return np.asarray(known)
        inputs = dict(values_of(self.arguments(self.arrays)))
        return data(read([node], XP, self.program.graph.arrays, inputs, changes)[0])

    def places(self, name: str) -> Array:
        """Where in an output the elements stand that are read."""
        every = self.question.in_axes(name, np.arange(self.question.order(name).size))
        return self._at_rows(name, every)[self.looked_at.get(name, ...)]

    def _at_rows(self, name: str, array: Array) -> Array:
        """An output's elements, in the formula's axes, that are read; flat."""
        return (array[self.rows] if self.question.rows_of[name] else array).reshape(-1)

    def _observed(self, name: str) -> Observation:
        """The kernel's answer there."""
        seen, units = (
            self._at_rows(name, self.question.in_axes(name, part))[self.looked_at.get(name, ...)]
            for part in (self.outputs[name], usual_units(self.problem, name))
        )
        return Observation(seen.astype(np.float64), self.problem.format_of(name), units)

    def shape_of(self, name: str) -> tuple[int, ...]:
        shape = self.question.shapes[name]
        return (len(self.rows), *shape[1:]) if self.question.rows_of[name] else shape

    def costs(self, predicted: Predicted) -> Costs:
        """The distance of each output, and how many of its elements are not merely rounded."""
        bits = {name: seen.bits(predicted[name]) for name, seen in self.observed.items()}
        return (
            {name: float(np.sum(cost)) for name, cost in bits.items()},
            {name: int(np.count_nonzero(cost > self.wrong)) for name, cost in bits.items()},
        )

    def errors(self, name: str) -> Array:
        """What each element of the first case's output costs without edits."""
        shape, bits = self.shape_of(name), self.observed[name].bits(self.base[name])
        return np.minimum(bits[: math.prod(shape)], _SPECIAL / 2.0).reshape(shape)

    @cached_property
    def before(self) -> Costs:
        """Those of the program without edits."""
        return self.costs(self.base)

    @cached_property
    def base(self) -> Predicted:
        """What the program without edits predicts."""
        base = self.predicted({})
        assert base is not None
        return base


def _rows(
    problem: Problem, question: Canonical, outputs: Arrays, names: tuple[str, ...], elements: int
) -> npt.NDArray[np.intp]:
    """The rows that are read: all, where an output sums over them or they are few."""
    most = max(elements // max(question.size_of_row, 1), 2)
    if question.rows <= most or not all(question.rows_of[name] for name in names):
        return np.arange(question.rows)
    wrong = np.zeros(question.rows, bool)
    for name in names:
        mask = question.in_axes(name, wrong_elements(problem, name, outputs[name]))
        wrong |= mask.reshape(question.rows, -1).any(axis=1)
    chosen = [np.flatnonzero(wrong), np.flatnonzero(~wrong)]
    share = (most + 1) // 2
    first = _spread(chosen[0], max(share, most - len(chosen[1])))
    return np.sort(np.concatenate([first, _spread(chosen[1], most - len(first))]))


def _spread(places: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """At most so many of the places, evenly."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(int)]


class _Reader:
    """A formula's graph, read in float64; what an edit leaves alone is computed once. `derive`: of
    a forward formula, its backward pass, which is read."""

    def __init__(self, program: Program, given: Mapping[str, Any], derive: Derive | None) -> None:
        self.program, self.arguments, self.derive = program, given, derive
        self.xp, self.known = on_plain_arrays(), dict[Node, Any]()
        self.xp.tape = functools.cache(_Tape)
        inputs = {name: data(value) for name, value in values_of(given)}
        self.reader = Reader(self.xp, program.graph.arrays, inputs)
        self.plans: dict[Any, list[Node]] = {}  # by what is edited, and what edits read

    def outputs(self, changes: Edits) -> list[Any]:
        def formula(xp: Any, /, **given: Any) -> Any:
            if not self.known:
                self.reader = Reader(xp, self.program.graph.arrays, dict(values_of(given)))
            return tuple(self._read(changes))

        derived = self.derive and self.derive(formula)(self.xp, **self.arguments)
        return self._read(changes) if derived is None else list(derived)

    def _read(self, changes: Edits) -> list[Any]:
        graph = self.program.graph
        self.known = self.known or self.reader.read(graph.nodes, {}, {})
        key = *changes, *(change.operands for change in changes.values())
        if key not in self.plans:
            known = self.known.keys() - affected(self.program.users, changes)
            wanted = (node for node in graph.outputs if node)
            self.plans[key] = in_order(wanted, lambda n: needed(n, changes), known)
        values = self.reader.read(self.plans[key], self.known, changes)
        return [None if node is None else values[node] for node in graph.outputs]


def maxima(program: Program, changes: Edits) -> Edits:
    """The edits, and every pivot as the maximum, which kernels take."""
    pivots = (node for node in program.of("pivot") if node not in changes)
    highest = {
        node: by(*node.operands)(lambda xp, a, axis=node.option: xp.stop(xp.max(a, axis)))
        for node in pivots
    }
    return {**highest, **changes}
