"""The search: the edits that come near a wrong output, answered by the oracle.

Edits whose predictions agree on all rows that were read, and on random inputs too, are one finding.
The nearest findings are answered by the oracle's ladder, with their bounds and plain algorithms,
like any formula. Evidence and ranking then treat them like any other question; each costs the
logarithm of all edits that were tried.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.formats import BINARY32
from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.diagnosis.edits import beside, ranges, reductions
from refkernels.diagnosis.edits.catalogue import Edit, Program, by
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.edits.rules import edits_of
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.edits.solved import CONSTANT, KINDS, Knob, Target, knobs, solve
from refkernels.diagnosis.edits.usual import worded
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Arrays, Problem
from refkernels.diagnosis.variants import formulas
from refkernels.diagnosis.wrong import judged_wrong
from refkernels.ops import edits as editing
from refkernels.ops.formula import Formula, Whole, several

_LARGEST = 1 << 17  # elements of all inputs
_SURVIVORS, _COMPARED = 4, 12  # of an output
_SAME, _SOLVED = 1e-9, 1e-5  # relative difference of predictions of one program
_LEAST, _SHARE = 16.0, 2.0**-5  # bits that an edit saves, and of the bits that an output costs
_READINGS = 16  # about as many as solving for a number takes
_FEW, _OF_PARAM = 8.0, 16.0  # bits
_MOST = 3.0  # budgets: the search begins no stage when these are spent
_ROUNDINGS = 4.0  # a quotient of two ulp, as GPUs divide
_ROUNDING = 2.0  # bits of an element that is merely rounded, at most on average


_FIRST = 2  # programs in which two edits are looked for
Stage = Callable[["Screen", "list[NearEdits]", "list[str]"], "tuple[list[NearEdits], int]"]


class NearEdits(NamedTuple):
    """A chain of one or two edits, and the bits that each output costs when it is known. `price`:
    the bits of what was solved for."""

    chain: tuple[Edit, ...]
    distances: Mapping[str, float]
    screen: Screen
    price: float = 0.0

    def fits(self, output: str) -> bool:
        """Whether what is left is as much as rounding leaves."""
        seen = self.screen.observed.get(output)
        return seen is not None and self.distances[output] <= _ROUNDING * seen.got.size

    def cost(self, output: str) -> tuple[float, bool, int]:
        """What one of several is chosen by: bits, up to a few, of which a param's own value is
        worth some; gradients that are lost; and the digits of its numbers."""
        params = sum(bool(edit.details.get("param")) for edit in self.chain)
        digits = sum(len(f"{edit.details.get('value', 0):.9g}") for edit in self.chain)
        bits = round((self.distances[output] + self.price - _OF_PARAM * params) / _FEW)
        return bits, self.chain[0].family != "gradient", digits

    @property
    def changes(self) -> Edits:
        return {node: change for edit in self.chain for node, change in edit.changes.items()}

    def is_same(self, other: NearEdits) -> bool:
        """Whether both are one program: on the rows that are read, and on random numbers. Pairs
        with another number each stay apart: it would be told as the only one."""
        if len(self.chain) + len(other.chain) > 2 and (self.price or other.price):
            return False
        for elsewhere in (False, True):
            a, b = (e.screen.predicted(e.changes, elsewhere) for e in (self, other))
            if a is None or b is None:
                return False
            near = _SAME if not (self.price or other.price) else _SOLVED
            if not all(np.allclose(a[name], b[name], near, 0.0, equal_nan=True) for name in a):
                return False
        return True


def explaining(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The edits that explain wrong outputs: one; a number that is solved for; or two."""
    if problem.size > _LARGEST or not outputs:
        return
    found: list[NearEdits] = []
    singles: list[NearEdits] = []
    screens: list[Screen] = []
    tried = 0

    def search(further: Stage, among: list[Screen]) -> None:
        nonlocal tried
        open_outputs = [n for n in outputs if not any(finding.fits(n) for finding in found)]
        for screen in among if open_outputs and sum(s.spent for s in screens) < _MOST else ():
            more, trials = further(screen, singles, open_outputs)
            found.extend(more)
            tried += trials

    for forms in _screens(problem, outputs):
        if all(any(finding.fits(name) for finding in found) for name in outputs):
            break
        screens += forms
        for further in (_single, _ranges, _numbers):
            search(further, forms)
    search(_pairs, screens[:_FIRST])
    right = {screen: screen.distances(screen.predicted({}) or {}) for screen in screens}
    for finding in _nearest(found, outputs):
        before, price = right[finding.screen], math.log2(max(tried, 1)) + finding.price
        saved = {n: before.get(n, 0.0) - finding.distances[n] for n in outputs if finding.fits(n)}
        if any(bits > price for bits in saved.values()):
            yield _variant(finding, tried)


def _screens(problem: Problem, outputs: Arrays) -> Iterator[list[Screen]]:
    """The programs that answer the question: its first form and the gradient of the forward pass's;
    then all other forms."""
    formulas = problem.definition
    ways = [(formulas.way(problem.direction), False)]
    if problem.direction == "backward" and formulas.derive is not None:
        ways.append((formulas.forward, True))
    for chosen in (slice(0, 1), slice(1, None)):
        screens = (
            Screen(problem, outputs, form, derived)
            for way, derived in ways
            for form in list(way.forms)[chosen]
        )
        yield [screen for screen in screens if screen.has_a_program]


def _single(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """The nearest single edits, and their number; `singles` receives all that come nearer."""
    near = _findings(screen)
    singles += near
    return _nearest(near, outputs), len(screen.edits)


def _findings(screen: Screen, first: Edit | None = None) -> list[NearEdits]:
    """The edits that come nearer to some output than the program does without them: the right one,
    or one with a first edit."""
    before = {} if first is None else first.changes
    base = screen.predicted(before)
    if base is None:
        return []
    most = {name: d - max(_LEAST, _SHARE * d) for name, d in screen.distances(base).items()}
    found = []
    for edit in screen.edits:
        disjoint = not before.keys() & edit.changes.keys()
        finding = _read(screen, (edit,) if first is None else (first, edit)) if disjoint else None
        if finding and any(bits <= most[name] for name, bits in finding.distances.items()):
            found.append(finding)
    return found


def _nearest(findings: list[NearEdits], outputs: Iterable[str]) -> list[NearEdits]:
    """The nearest of each output, one of those that are the same program."""
    chosen: list[NearEdits] = []
    for name in outputs:
        of_output = [finding for finding in findings if name in finding.distances]
        of_output.sort(key=lambda finding: finding.cost(name))
        kept: list[NearEdits] = []
        for finding in of_output[:_COMPARED]:
            if len(kept) < _SURVIVORS and not any(map(finding.is_same, kept)):
                kept.append(finding)
        chosen += [finding for finding in kept if finding not in chosen]
    return chosen


def _ranges(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """The ranges of terms that come near to an output, and how many there are."""
    found = [
        finding
        for name in set(outputs) & set(screen.names)
        for edit in ranges.nearest(screen, name, {})
        if (finding := _read(screen, (edit,))) is not None
    ]
    singles += found
    return found, ranges.number(screen.program)


def _read(screen: Screen, chain: tuple[Edit, ...], price: float = 0.0) -> NearEdits | None:
    """A chain, and how near it comes."""
    finding = NearEdits(chain, {}, screen, price)
    predicted = screen.predicted(finding.changes)
    if predicted is None:
        return None
    return finding._replace(distances=screen.distances(predicted))


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
    details = {**knob.details, "value": value, "interval": [solution.low, solution.high]}
    edit = Edit(knob.kind, "constant", knob.place, changes, details)
    return _read(screen, (edit,) if first is None else (first, edit), solution.price)


def _pairs(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """Two edits, the first of which shortens the code by itself; and how many pairs there are."""
    nearest = _nearest([finding for finding in singles if finding.screen is screen], outputs)
    names = set(outputs) & set(screen.names)
    families = [k for k in knobs(screen.program, screen.value_of) if k.kind == CONSTANT]
    each = len(screen.edits) + _READINGS * len(families) * len(names)
    pairs: list[NearEdits] = []
    for (first,) in (near.chain for near in nearest[: screen.affordable // max(each, 1)]):
        pairs += _findings(screen, first)
        for name in names:
            solved = (_solved(screen, knob, name, first) for knob in families)
            pairs += [finding for finding in solved if finding is not None]
    fitting = [finding for finding in pairs if any(finding.fits(name) for name in outputs)]
    number = len(screen.edits) + len(families)
    return _nearest(fitting, outputs), number * number


def _variant(finding: NearEdits, tried: int) -> Variant:
    """The finding as a question of its own, under the first of its chains."""
    chain, screen = finding.chain, finding.screen
    rule = functools.partial(_again, chain, screen, screen.depends_on_pivot(finding.changes))
    formula = editing.edited(screen.formula, rule)
    right, changed = (screen.derive(f) if screen.derive else f for f in (screen.formula, formula))
    if screen.formula is not screen.whole:
        right, changed = screen.whole, _filled(changed, screen.whole)
    (cause, details), *others = (_named(edit, screen) for edit in chain)
    for other_cause, other_details in others:
        details |= {"with": other_cause, "with_details": other_details}
    if any(edit.family == "arithmetic" for edit in chain):
        answer = beside.answer(screen.problem, Whole(changed), Whole(right))
    else:
        answer = formulas.answer(screen.problem, Whole(changed))
    return Variant(cause, details, answer, trials=tried, price=finding.price)


def _filled(formula: Formula, right: Formula) -> Formula:
    """The formula, with the right outputs where it gives none."""

    def outputs(xp: Any, /, **arguments: Any) -> Any:
        both = (several(part(xp, **arguments)) for part in (formula, right))
        pairs = zip(*both, strict=True)
        return tuple(whole if part is None else part for part, whole in pairs)

    return outputs


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
        place = graph.nodes[screen.program.graph.nodes.index(edit.place)]
        if "value" in edit.details:
            changes |= KINDS[edit.kind](place)(edit.details["value"])
        elif "twice" in edit.details:
            alike = (nodes for nodes in reductions.over_one_length(program) if nodes[0] is place)
            nodes = next(nodes for nodes in alike if len(nodes) == edit.details["every"])
            how = (edit.details[name] for name in ("start", "stop", "counted", "twice"))
            changes |= reductions.with_terms(nodes, *how)[0]
        else:
            identity = _identity(edit, screen.program)
            same = (e.changes for e in edits_of(program) if _identity(e, program) == identity)
            changes |= next(same)
    if not with_maxima:
        return changes
    maxima = {
        node: by(*node.operands)(lambda xp, a, axis=node.option: xp.stop(xp.max(a, axis)))
        for node in program.of("pivot")
        if node not in changes
    }
    return {**maxima, **changes}
