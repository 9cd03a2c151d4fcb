"""The search: the edits that come near a wrong output, answered by the oracle.

Edits whose predictions agree on all rows that were read, and on random inputs too, are one finding.
The nearest findings are answered by the oracle's ladder, with their bounds and plain algorithms,
like any formula. Evidence and ranking then treat them like any other question; each costs the
logarithm of all edits that were tried.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.formats import BINARY32
from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.diagnosis.edits import beside, combined, identities, ranges, recognised, reductions
from refkernels.diagnosis.edits.catalogue import Edit, Program, through
from refkernels.diagnosis.edits.names import axis_of, named
from refkernels.diagnosis.edits.rules import again
from refkernels.diagnosis.edits.screen import Screen, maxima
from refkernels.diagnosis.edits.solved import CONSTANT, KINDS, Knob, SoughtOutput, knobs, solve
from refkernels.diagnosis.edits.usual import worded
from refkernels.diagnosis.fit import fit
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import READABLE, Array, Arrays, Problem
from refkernels.diagnosis.variants import formulas
from refkernels.diagnosis.wrong import judged_wrong
from refkernels.ops import edits as editing
from refkernels.ops.formula import Whole

_SURVIVORS, _COMPARED = 4, 12  # of an output
_MANY = 8  # places that are alike: all of them first, then each
_FIRST = 16  # edits, of which every two are tried together
_SAME, _SOLVED = 1e-9, 1e-5  # relative difference of predictions of one program
_LEAST, _SAVED = 16.0, 0.5  # bits that an edit saves, in all and of each element
_SHARE = 2.0**-5  # of the bits that an output costs: it need not save more
_WORDY = 2  # times as long
_READINGS = 16  # about as many as solving for a number takes
_FEW, _OF_PARAM = 8.0, 16.0  # bits
_MOST = 4.0  # budgets: the search begins no stage when these are spent
_ROUNDINGS = 4.0  # a quotient of two ulp, as GPUs divide
_ROUNDING, _NEAR = 1.0, 4.0  # bits of an element, on average: merely rounded; to be certified


class NearEdits(NamedTuple):
    """A chain of one or two edits, and the bits that each output costs when it is known. `price`:
    the bits of what was solved for."""

    chain: tuple[Edit, ...]
    distances: Mapping[str, float]
    screen: Screen
    price: float = 0.0
    wrong: Mapping[str, int] = {}

    def fits(self, output: str) -> bool:
        """Whether what is left is little enough to ask the oracle."""
        return self._leaves(output, _NEAR, 2)

    def ends(self, output: str) -> bool:
        """Whether what is left is what rounding leaves: nothing is looked for any more."""
        return self._leaves(output, _ROUNDING, 32)

    def _leaves(self, output: str, bits: float, part: int) -> bool:
        """Whether no more than so many bits of an element are left, or so small a part of all of
        them, and of the wrong elements."""
        seen = self.screen.observed.get(output)
        if seen is None:
            return False
        before, wrong = (known[output] for known in self.screen.before)
        most = max(bits * seen.got.size, before / (2 * part))
        return self.distances[output] <= most and self.wrong[output] <= wrong // part

    def cost(self, output: str) -> tuple[float, bool, int]:
        """What one of several is chosen by: bits, up to a few, of which a param's own value is
        worth some; gradients that are lost; and the digits of its numbers."""
        params = sum(bool(edit.details.get("param")) for edit in self.chain)
        digits = sum(len(f"{abs(edit.details.get('value', 0)):.9g}") for edit in self.chain)
        bits = round((self.distances[output] + self.price - _OF_PARAM * params) / _FEW)
        return bits, self.chain[0].family != "gradient", digits

    def plainer(self, other: NearEdits, output: str) -> bool:
        """Whether it says the same program as another that costs as much, in far fewer words."""
        edit, its = self.chain[0], other.chain[0]
        if self.cost(output) != other.cost(output) or edit.place.op == "input":
            return False
        own, (cause, wordy) = _named(edit, self.screen)[1], _named(its, other.screen)
        lengths = (sum(len(str(text)) for text in told.values()) for told in (own, wordy))
        return cause == its.kind and _WORDY * next(lengths) < next(lengths)

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
            if not all(_alike(a[name], b[name], near) for name in a):
                return False
        return True


def _alike(a: Any, b: Any, near: float) -> bool:
    """Whether predictions agree, relative to their usual size: terms may cancel."""
    size = np.abs(a[np.isfinite(a)])
    usual = float(np.median(size)) if size.size and near == _SOLVED else 0.0
    return np.allclose(a, b, near, near * usual, equal_nan=True)


def explaining(
    problem: Problem, outputs: Arrays, block: Arrays | None = None, price: float = 0.0
) -> Iterator[Variant]:
    """The edits that explain wrong outputs: one; a number that is solved for; or two. `block`: the
    elements that they change, by output; `price`: the bits that say which."""
    if problem.size > READABLE or not outputs:
        return
    found: list[NearEdits] = []
    singles: list[NearEdits] = []
    first, others = _screens(problem, outputs, block)
    tried = 0
    for further, screens in (
        *((stage, first) for stage in (*_ONE, _both, _pairs)),
        *((stage, others) for stage in _ONE),
    ):
        open_outputs = [n for n in outputs if not any(finding.ends(n) for finding in found)]
        for screen in screens if open_outputs else ():
            if sum(s.spent for s in (*first, *others)) < _MOST and screen.has_a_program:
                more, trials = further(screen, singles, open_outputs)
                found.extend(more)
                tried += trials
    for finding in _simplest(_nearest(found, outputs), outputs):
        finding = finding._replace(price=finding.price + price)
        before, most = finding.screen.before[0], math.log2(max(tried, 1)) + finding.price
        saved = {n: before.get(n, 0.0) - finding.distances[n] for n in outputs if finding.fits(n)}
        if any(bits > most for bits in saved.values()):
            try:
                variant = _variant(finding, tried)
            except (ValueError, IndexError):
                continue  # it fits the rows that were read, and not all of them
            yield variant
            if not any(_explains(problem, outputs[name], variant, name) for name in saved):
                # Another program with the same edit rounds otherwise.
                twins = (t for t in found if t.screen is not finding.screen and t.is_same(finding))
                yield from (_variant(twin, tried) for twin in itertools.islice(twins, 1))


def _explains(problem: Problem, got: Array, variant: Variant, name: str) -> bool:
    """Whether what an edit leaves of an output is mere rounding."""
    if np.shape(variant.answer.reference[name]) != got.shape:
        return False
    result = fit(problem, name, got, variant.answer)
    return result is not None and result.ordinary


def _screens(
    problem: Problem, outputs: Arrays, block: Arrays | None
) -> tuple[list[Screen], list[Screen]]:
    """The programs that answer the question: its first form and the gradient of the forward pass's;
    then all other forms; then the first with variances by one pass."""
    formulas = problem.definition
    ways = [(formulas.of(problem.direction), False)]
    if problem.direction == "backward" and formulas.derive is not None:
        ways.append((formulas.forward, True))
    forms = [(list(way.forms), derived, set[Hashable]()) for way, derived in ways]
    program = functools.partial(Screen, problem, outputs, block=block)
    first = [program(names[0], derived, missed=missed) for names, derived, missed in forms]
    others = [program(n, d, missed=missed) for names, d, missed in forms for n in names[1:]]
    written = identities.one_pass
    others += [
        program(names[0], derived, written=written, missed=missed)
        for (names, derived, missed), screen in zip(forms, first, strict=True)
        if screen.has_a_program and written(screen.program.graph)
    ]
    return first, others


def _single(
    screen: Screen, singles: list[NearEdits], outputs: list[str], repeated: bool = False
) -> tuple[list[NearEdits], int]:
    """The nearest single edits, and their number; `singles` receives all that come nearer. Those of
    one of many places that are alike, as in a loop's steps, are `repeated`, like its variables."""
    late = ["variable"] * any(edit.alike > _MANY for edit in screen.edits)
    edits = [e for e in screen.edits if (e.alike > _MANY or e.family in late) == repeated]
    near = _findings(screen, edits)
    singles += near
    return _nearest(near, outputs), len(edits)


def _findings(screen: Screen, edits: list[Edit], first: Edit | None = None) -> list[NearEdits]:
    """The edits that come nearer to some output than the program does without them: the right one,
    or one with a first edit."""
    before = {} if first is None else first.changes
    base = screen.predicted(before)
    if base is None:
        return []
    sizes = {name: seen.got.size for name, seen in screen.observed.items()}
    most = {
        name: d - max(_LEAST, min(_SHARE * d, _SAVED * sizes[name]))
        for name, d in screen.costs(base)[0].items()
    }
    found = []
    for edit in edits:
        possible = first is None or _go_together(first, edit)
        finding = _read(screen, (edit,) if first is None else (first, edit)) if possible else None
        if finding and any(bits <= most[name] for name, bits in finding.distances.items()):
            found.append(finding)
        elif first is None:
            screen.missed.add(screen.key_of(edit))
    return found


def _nearest(findings: list[NearEdits], outputs: Iterable[str]) -> list[NearEdits]:
    """The nearest of each output, one of those that are the same program."""
    chosen: list[NearEdits] = []
    for name in outputs:
        of_output = [finding for finding in findings if name in finding.distances]
        of_output.sort(key=lambda finding: finding.cost(name))
        kept: list[NearEdits] = []
        for finding in of_output[:_COMPARED]:
            same = next((k for k, other in enumerate(kept) if finding.is_same(other)), None)
            if same is None and len(kept) < _SURVIVORS:
                kept.append(finding)
            elif same is not None and finding.plainer(kept[same], name):
                kept[same] = finding
        chosen += [finding for finding in kept if finding not in chosen]
    return chosen


def _simplest(findings: list[NearEdits], outputs: Iterable[str]) -> list[NearEdits]:
    """The findings, without those of one output where another explains it, and more, as well; and
    without pairs that save fewer bits over a single edit than their second one costs."""

    def reach(finding: NearEdits) -> set[str]:
        base = finding.screen.before[0]
        return {n for n in outputs if finding.fits(n) and finding.distances[n] + _LEAST <= base[n]}

    reached = [(finding, reach(finding)) for finding in findings]

    def simpler(other: NearEdits, its: set[str], finding: NearEdits, mine: set[str]) -> bool:
        single = len(other.chain) < len(finding.chain)
        more = finding.price - other.price if single else _FEW
        near = all(other.distances[n] <= finding.distances[n] + more for n in mine)
        return (mine < its or (single and mine <= its)) and near

    return [
        finding
        for finding, mine in reached
        if not any(simpler(other, its, finding, mine) for other, its in reached)
    ]


def _ranges(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """The ranges of terms that come near to an output, and how many there are."""
    names = [name for name in screen.names if name in outputs]
    readings = (_read(screen, (edit,)) for edit in ranges.nearest(screen, names))
    found = [finding for finding in readings if finding is not None]
    singles += found
    return found, ranges.number(screen.program)


def _read(screen: Screen, chain: tuple[Edit, ...], price: float = 0.0) -> NearEdits | None:
    """A chain, and how near it comes."""
    finding = NearEdits(chain, {}, screen, price)
    predicted = screen.predicted(finding.changes)
    if predicted is None:
        return None
    distances, wrong = screen.costs(predicted)
    return finding._replace(distances=distances, wrong=wrong)


def _moved(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """The edits that read a constant elsewhere, with another value of it, and how many were tried:
    with the value that was asked for, such an edit may come no nearer by itself."""
    names = [n for n in set(outputs) & set(screen.names) if screen.observed[n].got.size > 1]
    constants = [k for k in knobs(screen.program, screen.value_of) if k.kind == CONSTANT]
    tried = [
        (knob, edit)
        for knob, edit in itertools.product(constants, screen.edits)
        if knob.place not in edit.changes
        if any(
            knob.place in set(map(through, new.operands)).difference(map(through, node.operands))
            for node, new in edit.changes.items()
        )
    ]
    solved = (_solved(screen, knob, name, edit) for knob, edit in tried for name in names)
    found = [finding for finding in solved if finding is not None]
    return [finding for finding in found if any(map(finding.fits, names))], len(tried)


def _numbers(
    screen: Screen, singles: list[NearEdits], outputs: list[str], constant: bool
) -> tuple[list[NearEdits], int]:
    """The constants of other values, or the limits and factors of a result, that explain an output,
    at their nearest values, as many as the budget allows; and how many were tried. A limit explains
    no output inside its bound: what saturates or cancels in a right form has a limit too."""
    names = set(outputs) & set(screen.names)
    beyond = {n for n in names if judged_wrong(screen.problem, n, screen.outputs[n]).any()}
    # Some value of any knob gives a single number.
    names = {name for name in names if screen.observed[name].got.size > 1}
    families = [
        (knob, key)
        for knob in knobs(screen.program, screen.value_of)
        if (knob.kind == CONSTANT or knob.begins) == constant
        and (key := screen.key_of(knob)) not in screen.missed
    ]
    most, tried = screen.readings + screen.affordable, 0
    whole = any(np.array_equal(y, np.rint(y)) for y in screen.base.values())
    found: list[NearEdits] = []
    for knob, key in families:
        if screen.readings > most:
            break
        tried += 1
        before = len(found)
        strongest = float(knob.ordered[-1]) if knob.ordered.size else knob.starts[0]
        stepped = (knob.kind == CONSTANT or whole) and screen.predicted(knob.nudged)
        in_steps = stepped and all(np.array_equal(stepped[n], screen.base[n]) for n in stepped)
        grows = knob.begins or bool(knob.ordered.size or in_steps)
        reached = names if knob.kind == CONSTANT else beyond
        ends = knob.starts if in_steps else (strongest,)
        touched = (screen.touched(knob.changes(end), reached, grows) for end in ends)
        affected = next(filter(None, touched), [])
        for name in affected:
            finding = _solved(screen, knob, name)
            found += [finding] if finding is not None and finding.fits(name) else []
            if finding is None or all(finding.ends(other) for other in affected):
                break
        if len(found) == before:
            screen.missed.add(key)
    return found, tried


def _solved(screen: Screen, knob: Knob, output: str, first: Edit | None = None) -> NearEdits | None:
    """A knob at the value that comes nearest, perhaps after a first edit."""
    before = {} if first is None else first.changes
    if knob.place in before:
        return None

    def predict(changes: Edits) -> Any:
        changes = {**before, **changes}
        predicted = screen.predicted(changes) if changes else screen.base
        return None if predicted is None else predicted[output]

    seen = screen.observed[output]
    rounding = _ROUNDINGS * min(screen.problem.format_of(output).u, BINARY32.u)
    by_row = screen.question.rows_of[output]
    alike = seen.got.size / max(len(screen.rows), 1) if by_row else 1.0
    solution = solve(knob, SoughtOutput(seen, predict, rounding, alike))
    if solution is None:
        return None
    value = solution.told
    kind = CONSTANT if knob.holds(value) else knob.kind
    details = {**knob.details, "value": value, "interval": [solution.low, solution.high]}
    details |= {"solved": "value", **({} if solution.name is not None else {"several": True})}
    details |= {"in_steps": True} if solution.stepped else {}
    edit = Edit(kind, "constant", knob.place, KINDS[kind](knob.place)(value), details)
    return _read(screen, (edit,) if first is None else (first, edit), solution.price)


def _both(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """Two edits, each of which shortens the code by itself."""
    pairs = [
        both
        for name in set(outputs) & set(screen.names)
        for (first,), (second,) in itertools.combinations(_firsts(screen, singles, name), 2)
        if _go_together(first, second)
        if (both := _read(screen, (first, second))) is not None
    ]
    return _fitting(pairs, outputs, len(screen.edits)), 0


def _pairs(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """Two edits, the first of which shortens the code by itself; and how many pairs there are."""
    names = set(outputs) & set(screen.names)
    families = [k for k in knobs(screen.program, screen.value_of) if k.kind == CONSTANT]
    edits = [edit for edit in screen.edits if edit.alike <= _MANY]
    each = len(edits) + _READINGS * len(families) * len(names)
    pairs: list[NearEdits] = []
    for name in names:
        for (first,) in _firsts(screen, singles, name)[: screen.affordable // max(each, 1)]:
            pairs += _findings(screen, edits, first)
            solved = (_solved(screen, knob, name, first) for knob in families)
            pairs += [finding for finding in solved if finding is not None]
    number = len(edits) + len(families)
    return _fitting(pairs, outputs, number), number


def _go_together(first: Edit, second: Edit) -> bool:
    """Whether two edits have places of their own. Two arrays that are read alike are a view."""
    index = first.family == second.family == "index"
    return not (index or first.changes.keys() & second.changes.keys())


def _fitting(pairs: list[NearEdits], outputs: list[str], number: int) -> list[NearEdits]:
    """The nearest pairs that fit; the second edit was chosen from this number."""
    fitting = [
        finding._replace(price=finding.price + math.log2(number))
        for finding in pairs
        if any(finding.fits(name) for name in outputs)
    ]
    return _nearest(fitting, outputs)


def _firsts(screen: Screen, singles: list[NearEdits], output: str) -> list[tuple[Edit, ...]]:
    """The nearest edits of an output, one of each kind at each place."""
    chosen: dict[tuple[str, Node], tuple[Edit, ...]] = {}
    of_screen = (finding for finding in singles if finding.screen is screen)
    for finding in sorted(of_screen, key=lambda finding: finding.cost(output)):
        chosen.setdefault((finding.chain[0].kind, finding.chain[0].place), finding.chain)
    return list(chosen.values())[:_FIRST]


def _variant(finding: NearEdits, tried: int) -> Variant:
    """The finding as a question of its own, under the first of its chains."""
    chain, screen = finding.chain, finding.screen
    rule = functools.partial(_again, chain, screen, screen.depends_on_pivot(finding.changes))
    formula = editing.edited(screen.formula, rule)
    right, changed = (screen.derive(f) if screen.derive else f for f in (screen.whole, formula))
    wanted = [name in screen.outputs for name in screen.question.shapes]
    if screen.formula is not screen.whole or not all(wanted):
        changed = combined.filled(changed, right, wanted)
    if screen.block:
        masks = [screen.block.get(name) for name in screen.question.shapes]
        changed = combined.in_block(changed, right, masks)
    (cause, details), *others = (_named(edit, screen) for edit in chain)
    for other_cause, other_details in others:
        details |= {"with": other_cause, "with_details": other_details}
    if any(edit.family == "arithmetic" for edit in chain):
        answer = beside.answer(screen.problem, Whole(changed), Whole(right))
    else:
        answer = formulas.answer(screen.problem, Whole(changed))
    return Variant(cause, details, answer, trials=tried, price=finding.price)


def _named(edit: Edit, screen: Screen) -> tuple[str, dict[str, Any]]:
    """An edit's cause, and the details that its words need."""
    edited = "forward" if screen.derive else screen.direction
    where = {"op": screen.problem.op.name, "direction": screen.direction, "pass": edited}
    details, array = worded(edit), screen.problem.inputs.get(str(edit.place.option))
    if edit.place.op == "input" and "axis" in details and array is not None:
        details["axis"] = axis_of(np.shape(array), edit.place.shape, details["axis"])
    return named(edit.kind, details, where)


def _first(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """Single edits, and other values of constants: in what changes in steps, either may do."""
    stages = _single, functools.partial(_numbers, constant=True)
    found, tried = zip(*(stage(screen, singles, outputs) for stage in stages), strict=True)
    return [*found[0], *found[1]], sum(tried)


_limits = functools.partial(_numbers, constant=False)
_repeated = functools.partial(_single, repeated=True)
_ONE = (_first, _ranges, _repeated, _moved, _limits)  # stages that look for one fault


def _again(chain: tuple[Edit, ...], screen: Screen, with_maxima: bool, graph: Graph) -> Edits:
    """The same edits in another graph of the formula. Where the result then depends on a pivot,
    kernels take the maximum."""
    program, places = Program(graph), screen.program.places
    changes: dict[Node, Replacement] = {}
    for edit in chain:
        place = graph.nodes[places[edit.place]]
        if "value" in edit.details:
            changes |= KINDS[edit.kind](place)(edit.details["value"])
        elif edit.kind == recognised.KIND:
            for node, new in edit.changes.items():
                own, argument = (graph.nodes[places[n]] for n in (node, new.operands[0]))
                changes |= recognised.changes(own, argument, edit.details["other"])
        elif "twice" in edit.details:
            alike = (nodes for nodes in reductions.over_one_length(program) if nodes[0] is place)
            nodes = next(nodes for nodes in alike if len(nodes) == edit.details["every"])
            how = (edit.details[name] for name in ("start", "stop", "counted", "twice"))
            changes |= reductions.with_terms(nodes, *how)[0]
        else:
            changes |= again(edit, screen.program, graph)
    return maxima(program, changes) if with_maxima else changes
