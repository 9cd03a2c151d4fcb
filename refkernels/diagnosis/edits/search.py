"""The search: the edits that come near a wrong output, answered by the oracle.

Edits whose predictions agree on all rows that were read, and on random inputs too, are one finding.
The nearest findings are answered by the oracle's ladder, with their bounds and plain algorithms,
like any formula. Evidence and ranking then treat them like any other question; each costs the
logarithm of all edits that were tried.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.formats import BINARY32
from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.diagnosis.edits.catalogue import Edit, Program, by
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.edits.rules import edits_of
from refkernels.diagnosis.edits.screen import Predicted, Screen
from refkernels.diagnosis.edits.solved import CONSTANT, KINDS, Knob, Target, knobs, solve
from refkernels.diagnosis.edits.usual import worded
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants import formulas
from refkernels.diagnosis.wrong import judged_wrong
from refkernels.ops import edits as editing
from refkernels.ops.formula import Whole

_LARGEST = 1 << 17  # elements of all inputs
_SURVIVORS = 4  # of an output
_LEAST, _SHARE = 16.0, 2.0**-5  # bits that an edit saves, and of the bits that an output costs
_READINGS = 40  # about as many as solving for a number takes
_ROUNDINGS = 4.0  # a quotient of two ulp, as GPUs divide
_ROUNDING = 2.0  # bits of an element that is merely rounded, at most on average


class NearEdits(NamedTuple):
    """Chains of one or two edits that are one and the same program, and the bits that each output
    costs when that is known. `price`: the bits of what was solved for."""

    chains: list[tuple[Edit, ...]]
    distances: Mapping[str, float]
    screen: Screen
    price: float = 0.0

    def fits(self, output: str) -> bool:
        """Whether what is left is as much as rounding leaves."""
        return self.distances[output] <= _ROUNDING * self.screen.observed[output].got.size


def explaining(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The edits that explain wrong outputs: one; a number that is solved for; or two."""
    if problem.size > _LARGEST or not outputs:
        return
    screens = [Screen(problem, outputs)]
    if problem.direction == "backward" and problem.definition.derive is not None:
        screens.append(Screen(problem, outputs, derived=True))
    screens = [screen for screen in screens if screen.has_a_program]
    tried = sum(len(screen.edits) for screen in screens)
    singles = [finding for screen in screens for finding in _findings(screen)]
    found = _nearest(singles, outputs)
    for further in (_numbers, _pairs):
        open_outputs = [n for n in outputs if not any(finding.fits(n) for finding in found)]
        for screen in screens if open_outputs else ():
            more, trials = further(screen, singles, open_outputs)
            found += more
            tried += trials
    right = {screen: screen.distances(screen.predicted({}) or {}) for screen in screens}
    for finding in found:
        before, price = right[finding.screen], math.log2(max(tried, 1)) + finding.price
        saved = {n: before.get(n, 0.0) - finding.distances[n] for n in outputs if finding.fits(n)}
        if any(bits > price for bits in saved.values()):
            yield _variant(finding, tried)


def _findings(screen: Screen, first: Edit | None = None) -> list[NearEdits]:
    """The edits that come nearer to some output than the program does without them: the right one,
    or one with a first edit."""
    before = {} if first is None else first.changes
    base = screen.predicted(before)
    if base is None:
        return []
    most = {name: d - max(_LEAST, _SHARE * d) for name, d in screen.distances(base).items()}
    found: dict[tuple[bytes, bytes], NearEdits] = {}
    for edit in screen.edits:
        changes = {**before, **edit.changes}
        predicted = None if before.keys() & edit.changes.keys() else screen.predicted(changes)
        if predicted is None:
            continue
        distances = screen.distances(predicted)
        if any(bits <= most[name] for name, bits in distances.items()):
            key = _key(predicted), _key(screen.predicted(changes, elsewhere=True) or {})
            chain = (edit,) if first is None else (first, edit)
            found.setdefault(key, NearEdits([], distances, screen)).chains.append(chain)
    return list(found.values())


def _key(predicted: Predicted) -> bytes:
    """Equal for predictions that differ by rounding alone."""
    with np.errstate(all="ignore"):
        return b"".join(array.astype(np.float32).tobytes() for array in predicted.values())


def _nearest(findings: list[NearEdits], outputs: Iterable[str]) -> list[NearEdits]:
    """The nearest of each output, each once."""
    chosen: dict[int, NearEdits] = {}
    for name in outputs:
        of_output = [finding for finding in findings if name in finding.distances]
        of_output.sort(key=lambda finding: finding.distances[name])
        chosen |= {id(finding): finding for finding in of_output[:_SURVIVORS]}
    return list(chosen.values())


def _numbers(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """The knobs that explain an output, at their nearest values, and how many were tried:
    constants first, as many as the budget allows. A limit explains no output inside its bound: what
    saturates or cancels in a right form has a limit too."""
    names = set(outputs) & set(screen.names)
    beyond = {n for n in names if judged_wrong(screen.problem, n, screen.outputs[n]).any()}
    families = sorted(knobs(screen.program, screen.value_of), key=lambda k: k.kind != CONSTANT)
    families = families[: screen.affordable // (_READINGS * max(len(names), 1))]
    found = [
        finding
        for name in names
        if screen.observed[name].got.size > 1  # some value of any knob gives a single number
        for knob in families
        if name in beyond or knob.kind == CONSTANT
        if (finding := _solved(screen, knob, name)) is not None and finding.fits(name)
    ]
    return found, len(families)


def _solved(screen: Screen, knob: Knob, output: str, first: Edit | None = None) -> NearEdits | None:
    """A knob at the value that comes nearest, perhaps after a first edit."""
    before = {} if first is None else first.changes
    if knob.place in before:
        return None

    def predict(changes: Edits) -> Any:
        predicted = screen.predicted({**before, **changes})
        return None if predicted is None else predicted[output]

    seen = screen.observed[output]
    rounding = _ROUNDINGS * min(screen.problem.format_of(output).u, BINARY32.u)
    solution = solve(knob, Target(seen.got, predict, seen.distance, rounding))
    if solution is None:
        return None
    value = solution.told
    changes = knob.changes(value)
    predicted = screen.predicted({**before, **changes})
    if predicted is None:
        return None
    details = {**knob.details, "value": value, "interval": [solution.low, solution.high]}
    edit = Edit(knob.kind, "constant", knob.place, changes, details)
    chain = (edit,) if first is None else (first, edit)
    return NearEdits([chain], screen.distances(predicted), screen, solution.price)


def _pairs(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """Two edits, the first of which shortens the code by itself; and how many pairs there are."""
    nearest = _nearest([finding for finding in singles if finding.screen is screen], outputs)
    names = set(outputs) & set(screen.names)
    families = [k for k in knobs(screen.program, screen.value_of) if k.kind == CONSTANT]
    each = len(screen.edits) + _READINGS * len(families) * len(names)
    pairs: list[NearEdits] = []
    for (first,), *_ in (near.chains for near in nearest[: screen.affordable // max(each, 1)]):
        pairs += _findings(screen, first)
        for name in names:
            solved = (_solved(screen, knob, name, first) for knob in families)
            pairs += [finding for finding in solved if finding is not None]
    fitting = [finding for finding in pairs if any(finding.fits(name) for name in outputs)]
    number = len(screen.edits) + len(families)
    return _nearest(fitting, outputs), number * number


def _variant(finding: NearEdits, tried: int) -> Variant:
    """The finding as a question of its own, under the first of its chains."""
    chain, screen = finding.chains[0], finding.screen
    changes = {node: change for edit in chain for node, change in edit.changes.items()}
    rule = functools.partial(_again, chain, screen, screen.depends_on_pivot(changes))
    formula = editing.edited(screen.formula, rule)
    if screen.derive is not None:
        formula = screen.derive(formula)
    (cause, details), *others = (_named(edit, screen) for edit in chain)
    for other_cause, other_details in others:
        details |= {"with": other_cause, "with_details": other_details}
    answer = formulas.answer(screen.problem, Whole(formula))
    return Variant(cause, details, answer, trials=tried, price=finding.price)


def _named(edit: Edit, screen: Screen) -> tuple[str, dict[str, Any]]:
    """An edit's cause, and the details that its words need."""
    edited = "forward" if screen.derive else screen.direction
    where = {"op": screen.problem.op.name, "direction": screen.direction, "pass": edited}
    return named(edit.kind, worded(edit), where)


def _identity(edit: Edit, program: Program) -> tuple[Any, ...]:
    """What makes an edit known in the same formula's graph at other shapes."""
    number = {node: k for k, node in enumerate(program.graph.nodes)}
    details = tuple(
        (name, number.get(value) if isinstance(value, Node) else value)
        for name, value in edit.details.items()
    )
    return edit.kind, number[edit.place], details


def _again(chain: tuple[Edit, ...], screen: Screen, with_maxima: bool, graph: Graph) -> Edits:
    """The same edits in another graph of the formula. Where the result then depends on a pivot,
    kernels take the maximum."""
    program = Program(graph)
    changes: dict[Node, Replacement] = {}
    for edit in chain:
        if "value" in edit.details:
            place = graph.nodes[screen.program.graph.nodes.index(edit.place)]
            changes |= KINDS[edit.kind](place)(edit.details["value"])
        else:
            identity = _identity(edit, screen.program)
            same = (e.changes for e in edits_of(program) if _identity(e, program) == identity)
            changes |= next(same)
    if not with_maxima:
        return changes
    maxima = {
        node: by(*node.operands)(lambda xp, a, axis=node.option: xp.max(a, axis))
        for node in program.of("pivot")
        if node not in changes
    }
    return {**maxima, **changes}
