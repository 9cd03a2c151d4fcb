"""The search: the edits that come near a wrong output, answered by the oracle.

The nearest findings are answered by the oracle's ladder, with their bounds and plain algorithms,
like any formula. Evidence and ranking then treat them like any other question; each costs the
logarithm of all edits that were tried.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from refkernels.arithmetic.formats import BINARY32
from refkernels.contexts.graph import Edits, Graph, Node, Replacement
from refkernels.diagnosis.edits import beside, identities, ranges, recognised, reductions
from refkernels.diagnosis.edits.catalogue import Edit, Program, affected, through
from refkernels.diagnosis.edits.findings import LEAST, NAMED, NearEdits, nearest, simplest, told
from refkernels.diagnosis.edits.rules import again
from refkernels.diagnosis.edits.screen import Screen, maxima
from refkernels.diagnosis.edits.solved import (
    CONSTANT,
    KINDS,
    WORSE,
    Knob,
    knobs,
    pointed,
    solve,
)
from refkernels.diagnosis.fit import fit
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import READABLE, Answer, Array, Arrays, Problem
from refkernels.diagnosis.variants import formulas
from refkernels.diagnosis.wrong import judged_wrong
from refkernels.ops import edits as editing
from refkernels.ops.formula import Formula, Whole, several
from refkernels.records.words import OR

_MANY = 8  # places that are alike: all of them first, then each
_FIRST = 16  # edits, of which every two are tried together
_SAVED = 0.5  # bits that an edit saves of each element
_SHARE = 2.0**-5  # of the bits that an output costs: it need not save more
_REPAIRED = 4.0  # bits of each wrong element: beside many right ones, a few are no such share
_SOLVING, _MOVING = 1.25, 0.25  # budgets for numbers, and for those of constants read elsewhere
_READINGS = 16  # about as many as solving for a number takes
_SHARPEST = 8  # limits that what is wrong points to, before those that few results depend on
_EACH = 1.5  # budgets for all single edits
_MOST, _OF_BLOCK = 5.0, 2.0  # budgets, when no stage begins any more; of a block, found in fewer
_ROUNDINGS = 4.0  # a quotient of two ulp, as GPUs divide


def explaining(
    problem: Problem, outputs: Arrays, block: Arrays | None = None, price: float = 0.0
) -> Iterator[Variant]:
    """The edits that explain wrong outputs: one; a number that is solved for; or two. `block`: the
    elements that they change, by output; `price`: the bits that say which."""
    return (variant for (variant,) in of_cases([(problem, outputs)], block, price) if variant)


def of_cases(
    cases: Sequence[tuple[Problem, Arrays]], block: Arrays | None = None, price: float = 0.0
) -> Iterator[list[Variant | None]]:
    """The edits that explain the outputs of several cases of one kernel together: by case."""
    (problem, outputs), *others = cases
    found, tried = _search(problem, outputs, block, others)
    for finding, saved in _worthwhile(found, outputs, tried, price):
        # Another program with the same edit rounds otherwise.
        twins = (t for t in found if t.screen is not finding.screen and t.is_same(finding))
        for alike in (finding, *twins):
            answers = [_answer(alike, case) for case, _ in cases]
            named = answers[0] and _name(alike, answers[0])
            variant = functools.partial(Variant, trials=tried, price=alike.price)
            yield [variant(*named, a) if named and a else None for a in answers]
            if any(_explains(alike, outputs[name], name) for name in saved):
                break


def formulas_of(
    problem: Problem, outputs: Arrays, least: float
) -> Iterator[tuple[str, dict[str, Any], Whole]]:
    """The edits that save so many bits of wrong outputs: cause, details, and edited formula."""
    found, tried = _search(problem, outputs)
    for finding, saved in _worthwhile(found, outputs, tried):
        if max(saved.values()) >= least:
            yield *_cause(finding), _formula(finding)[0]


def _worthwhile(
    found: list[NearEdits], outputs: Arrays, tried: int, price: float = 0.0
) -> Iterator[tuple[NearEdits, dict[str, float]]]:
    """The findings that save more than it costs to say which they are, with the bits that each
    saves of the outputs that it fits."""
    for finding in simplest(nearest(found, outputs), outputs):
        finding = finding._replace(price=finding.price + price)
        screen, cost = finding.screen, math.log2(max(tried, 1)) + finding.price
        before, all_rows = screen.before[0], screen.question.rows / max(len(screen.rows), 1)
        # Or an eighth of the wrong elements are right: its program may round the others worse.
        fitting = (n for n in outputs if finding.fits(n) or finding.leaves(n, math.inf, 8 / 7))
        bits = {n: (before.get(n, 0.0) - finding.distances[n]) * all_rows for n in fitting}
        saved = {name: gained - cost for name, gained in bits.items()}
        if any(bits > 0.0 for bits in saved.values()):
            yield finding, saved


@np.errstate(all="ignore")
def _search(
    problem: Problem,
    outputs: Arrays,
    block: Arrays | None = None,
    others: Sequence[tuple[Problem, Arrays]] = (),
) -> tuple[list[NearEdits], int]:
    """What all stages find, as far as the budget goes, and how many edits were tried. `others`:
    cases of the same kernel."""
    found: list[NearEdits] = []
    singles: list[NearEdits] = []
    tried = 0
    if problem.size > READABLE or not outputs:
        return found, tried
    of_cases = [_screens(problem, outputs, block), *(_screens(*case, None) for case in others)]
    first, further = (
        [one.beside(cases) for one, *cases in zip(*kind, strict=False)]
        for kind in zip(*of_cases, strict=True)
    )
    tell = {n for s in first if s.has_a_program for n, d in s.before[0].items() if d > LEAST}
    outputs = {name: got for name, got in outputs.items() if name in tell}
    for stage, screens in (
        *((one, first) for one in (*_ONE, _both, _pairs)),
        *((one, further) for one in _ONE),
    ):
        open_outputs = [name for name, got in outputs.items() if not _ended(found, got, name)]
        for screen in screens if open_outputs else ():
            spent = sum(each.spent for each in (*first, *further))
            if spent < (_OF_BLOCK if block else _MOST) and screen.has_a_program:
                more, trials = stage(screen, singles, open_outputs)
                found.extend(more)
                tried += trials
    return found, tried


def _ended(found: list[NearEdits], got: Array, name: str) -> bool:
    """Whether a finding leaves of an output what rounding leaves, and the nearest does so by the
    oracle's answer too: what is too little for the screen may be beyond the bound."""
    ending = [finding for finding in found if finding.ends(name)]
    return bool(ending) and _explains(min(ending, key=lambda one: one.cost(name)), got, name)


def _explains(finding: NearEdits, got: Array, name: str) -> bool:
    """Whether what an edit leaves of an output is mere rounding."""
    answer = _answer(finding)
    result = answer and fit(finding.screen.problem, name, got, answer)
    return bool(result and result.ordinary)


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
    return nearest(near, outputs), len(edits)


def _findings(screen: Screen, edits: list[Edit], first: Edit | None = None) -> list[NearEdits]:
    """The edits that come nearer to some output than the program does without them: the right one,
    or one with a first edit."""
    before = {} if first is None else first.changes
    base = screen.predicted(before)
    if base is None:
        return []
    distances, wrong = screen.costs(base)
    most = {
        name: d - max(LEAST, min(_SHARE * d, _SAVED * seen.got.size, _REPAIRED * wrong[name] or d))
        for name, seen in screen.observed.items()
        for d in [distances[name]]
    }
    found, end = [], min(_MOST, screen.spent + _EACH) if first is None else _MOST
    for edit in itertools.takewhile(lambda _: screen.spent < end, edits):
        possible = first is None or _go_together(first, edit)
        finding = _read(screen, (edit,) if first is None else (first, edit)) if possible else None
        if finding and any(bits <= most[name] for name, bits in finding.distances.items()):
            found.append(finding)
        elif first is None:
            screen.missed.add(screen.key_of(edit))
    return found


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
    told = (edit.details[name] for edit in chain for name in NAMED if name in edit.details)
    finding = NearEdits(chain, {}, screen, price, alike=tuple(told))
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
    names = _several(screen, outputs)
    constants = [k for k in screen.kept(knobs) if k.kind == CONSTANT]
    tried = [
        (knob, edit)
        for knob, edit in itertools.product(constants, screen.edits)
        if knob.place not in edit.changes
        if any(
            knob.place in set(map(through, new.operands)).difference(map(through, node.operands))
            for node, new in edit.changes.items()
        )
    ]
    end = screen.spent + _MOVING
    affordable = itertools.takewhile(lambda _: screen.spent < end, tried)
    solved = (_solved(screen, knob, name, edit) for knob, edit in affordable for name in names)
    return [one for one in filter(None, solved) if any(map(one.fits, names))], len(tried)


def _numbers(
    screen: Screen, singles: list[NearEdits], outputs: list[str], constant: bool
) -> tuple[list[NearEdits], int]:
    """The constants of other values, or the limits and factors of a result, that explain an output,
    at their nearest values, as many as the budget allows; and how many were tried. Limits that what
    is wrong points to come first, then what few results depend on. A limit explains no output
    inside its bound: what saturates or cancels in a right form has a limit too."""
    names = _several(screen, outputs)
    beyond = {n for n in names if judged_wrong(screen.problem, n, screen.outputs[n]).any()}
    families = [
        (knob, key)
        for knob in screen.kept(knobs)
        if (knob.kind == CONSTANT or knob.begins) == constant
        and (key := screen.key_of(knob)) not in screen.missed
    ]
    families.sort(key=lambda known: len(affected(screen.program.users, known[0].changes(1.0))))
    errors = [screen.errors(name) for name in beyond if not screen.block]
    shown = [max((pointed(knob, e) for e in errors), default=0.0) for knob, _ in families]
    sharpest = sorted(range(len(shown)), key=lambda k: -shown[k])[:_SHARPEST]
    families = [families[k] for k in dict.fromkeys((*sharpest, *range(len(shown))))]
    found, most = list[NearEdits](), screen.spent + _SOLVING
    whole = any(np.array_equal(y, np.rint(y)) for y in screen.base.values())
    for tried, (knob, key) in enumerate(families):
        if screen.spent > most:
            return found, tried
        before = len(found)
        for name in _reached(screen, knob, names if knob.kind == CONSTANT else beyond, whole):
            finding = _solved(screen, knob, name)
            found += [finding] if finding is not None and finding.fits(name) else []
            if finding is None or finding.ends(name):
                break
        if len(found) == before:
            screen.missed.add(key)
    return found, len(families)


def _reached(screen: Screen, knob: Knob, names: set[str], whole: bool) -> list[str]:
    """The outputs whose wrong elements a knob changes, the least right one first."""
    strongest = float(knob.ordered[-1]) if knob.ordered.size else knob.starts[0]
    stepped = (knob.kind == CONSTANT or whole) and screen.predicted(knob.changes(knob.nudged))
    in_steps = stepped and all(np.array_equal(stepped[n], screen.base[n]) for n in stepped)
    grows = knob.begins or bool(knob.ordered.size or in_steps)
    far = (strongest, 1.0) if knob.kind == CONSTANT else (strongest,)
    ends = knob.starts if in_steps else far  # 2^10 times 1e-12 may change nothing
    touched = (screen.touched(knob.changes(end), names, grows) for end in ends)
    return next(filter(None, touched), [])


def _solved(screen: Screen, knob: Knob, output: str, first: Edit | None = None) -> NearEdits | None:
    """A knob at the value that comes nearest, perhaps after a first edit."""
    before = {} if first is None else first.changes
    if knob.place in before:
        return None

    def predict(value: float | None) -> Any:
        changes = before if value is None else {**before, **knob.changes(value)}
        predicted = screen.predicted(changes) if changes else screen.base
        return None if predicted is None else predicted[output]

    seen = screen.observed[output]
    rounding = _ROUNDINGS * min(screen.problem.format_of(output).u, BINARY32.u)
    by_row = screen.question.rows_of[output] and knob.ordered.size
    of_row = math.prod(screen.shape_of(output)) / max(len(screen.rows), 1)
    alike = of_row if by_row else 1.0  # with a row's roundings
    most = screen.before[0][output]  # a first edit may make it worse
    solution = solve(knob, seen, predict, rounding, WORSE * alike, most)
    if solution is None:
        return None
    value = solution.told
    kind = CONSTANT if knob.holds(value) else knob.kind
    details = {**knob.details, "value": value, "interval": [solution.low, solution.high]}
    any_number = kind != knob.kind and "several" in solution.flags  # that rows may share
    details |= {"solved": "value", **solution.flags, **({"fitted": True} if any_number else {})}
    edit = Edit(kind, "constant", knob.place, KINDS[kind](knob.place)(value), details)
    return _read(screen, (edit,) if first is None else (first, edit), solution.price)


def _both(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """Two edits, each of which shortens the code by itself."""
    pairs = [
        both
        for name in _several(screen, outputs)
        for (first,), (second,) in itertools.combinations(_firsts(screen, singles, name), 2)
        if _go_together(first, second)
        if (both := _read(screen, (first, second))) is not None
    ]
    return _fitting(pairs, outputs, len(screen.edits)), 0


def _pairs(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """Two edits, the first of which shortens the code by itself; and how many pairs there are."""
    names = _several(screen, outputs)
    families = [k for k in screen.kept(knobs) if k.kind == CONSTANT]
    edits = [edit for edit in screen.edits if edit.alike <= _MANY]
    each = len(edits) + _READINGS * len(families) * len(names)
    pairs: list[NearEdits] = []
    for name in names:
        for (first,) in _firsts(screen, singles, name)[: screen.affordable // max(each, 1)]:
            pairs += _findings(screen, edits, first)
            pairs += filter(None, (_solved(screen, knob, name, first) for knob in families))
    number = len(edits) + len(families)
    return _fitting(pairs, outputs, number), number


def _several(screen: Screen, outputs: Iterable[str]) -> set[str]:
    """The outputs of several numbers. One has few bits: some value of any knob gives it, and many a
    pair of edits."""
    seen = screen.observed
    return {name for name in outputs if name in seen and seen[name].got.size > 1}


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
    return nearest(fitting, outputs)


def _firsts(screen: Screen, singles: list[NearEdits], output: str) -> list[tuple[Edit, ...]]:
    """The nearest edits of an output, one of each kind at each place."""
    chosen: dict[tuple[str, Node], tuple[Edit, ...]] = {}
    of_screen = (finding for finding in singles if finding.screen is screen)
    for finding in sorted(of_screen, key=lambda finding: finding.cost(output)):
        chosen.setdefault((finding.chain[0].kind, finding.chain[0].place), finding.chain)
    return list(chosen.values())[:_FIRST]


def _name(finding: NearEdits, answer: Answer) -> tuple[str, dict[str, Any]]:
    """The cause and details of an op's own fault that is the same question, or of the edits."""
    screen, asked = finding.screen, answer.reference
    for fault in formulas.other_formulas(screen.problem, screen.outputs):
        other = fault.answer.reference
        if all(n in other and np.array_equal(asked[n].hi, other[n].hi) for n in screen.names):
            return fault.cause, dict(fault.details)
    return _cause(finding)


def _answer(finding: NearEdits, case: Problem | None = None) -> Answer | None:
    """The oracle's answer with the finding's edits, or that of another case of the kernel; None
    where they fit the rows that were read, and not all of them."""
    problem, answers, chain = case or finding.screen.problem, finding.screen.answers, finding.chain
    key = chain, id(problem)
    if key not in answers:
        answers[key] = None
        with contextlib.suppress(ValueError, IndexError):
            formula, right = _formula(finding)
            if any(edit.family == "arithmetic" for edit in chain):
                answers[key] = beside.answer(problem, formula, right)
            else:
                answers[key] = formulas.answer(problem, formula)
    return answers[key]


def _formula(finding: NearEdits) -> tuple[Whole, Whole]:
    """The edited formula, with the right outputs, or elements, where it is not edited; and the
    right one."""
    chain, screen = finding.chain, finding.screen
    rule = functools.partial(_again, chain, screen, screen.depends_on_pivot(finding.changes))
    formula = editing.edited(screen.formula, rule)
    right, changed = (screen.derive(f) if screen.derive else f for f in (screen.whole, formula))
    names = screen.question.shapes
    chosen = [screen.block.get(name, True) if name in screen.outputs else False for name in names]
    if screen.formula is not screen.whole or any(mask is not True for mask in chosen):
        changed = _beside(changed, right, chosen)
    return Whole(changed), Whole(right)


def _beside(formula: Formula, right: Formula, chosen: Sequence[Array | bool]) -> Formula:
    """The formula, and the right one for the outputs that it does not give or that are not chosen,
    and outside of a mask."""

    def part(xp: Any, edited: Any, whole: Any, mask: Any) -> Any:
        if edited is None or mask is False:
            return whole
        return edited if mask is True else xp.where(mask, edited, whole)

    def outputs(xp: Any, /, **arguments: Any) -> Any:
        both = (several(each(xp, **arguments)) for each in (formula, right))
        return tuple(part(xp, *of_output) for of_output in zip(*both, chosen, strict=False))

    return outputs


def _cause(finding: NearEdits) -> tuple[str, dict[str, Any]]:
    """The cause of a chain's first edit, with that of another."""
    (cause, details), *others = (told(edit, finding.screen) for edit in finding.chain)
    for name in details.keys() & NAMED if len(finding.chain) == 1 else ():
        details[name] = OR.join(finding.alike)
    for other_cause, other_details in others:
        details |= {"with": other_cause, "with_details": other_details}
    return cause, details


def _first(
    screen: Screen, singles: list[NearEdits], outputs: list[str]
) -> tuple[list[NearEdits], int]:
    """Single edits, and other values of constants: in what changes in steps, either may do."""
    stages = _single, functools.partial(_numbers, constant=True)
    found, tried = zip(*(stage(screen, singles, outputs) for stage in stages), strict=True)
    return [*found[0], *found[1]], sum(tried)


_limits = functools.partial(_numbers, constant=False)
_repeated = functools.partial(_single, repeated=True)
_ONE = (_first, _ranges, _limits, _repeated, _moved)  # stages that look for one fault


def _again(chain: tuple[Edit, ...], screen: Screen, with_maxima: bool, graph: Graph) -> Edits:
    """The same edits in another graph of the formula. Where the result then depends on a pivot,
    kernels take the maximum."""
    program, places = Program(graph), screen.program.places
    changes: dict[Node, Replacement] = {}
    for edit in chain:
        place = graph.nodes[places[edit.place]]
        if "value" in edit.details:
            changes |= KINDS[edit.kind](place)(edit.details["value"])
        elif edit.kind in {known.kind for known in screen.recognised}:
            known = recognised.there(screen.recognised, places, graph)
            changes |= again(edit, screen.program, graph, known)
        elif "twice" in edit.details:
            alike = (nodes for nodes in reductions.over_one_length(program) if nodes[0] is place)
            nodes = next(nodes for nodes in alike if len(nodes) == edit.details["every"])
            how = (edit.details[name] for name in ("start", "stop", "counted", "twice"))
            changes |= reductions.with_terms(nodes, *how)[0]
        else:
            changes |= again(edit, screen.program, graph)
    return maxima(program, changes) if with_maxima else changes
