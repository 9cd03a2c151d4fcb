"""Intermediate results, recovered from the elements that read them: statistics of rows, and what a
constant was added to last.

A mean, a reciprocal deviation or a sum of exponentials enters every element of its row, so least
squares gives it back, as t ± w; what it was made of follows, and how, in any order of summation:

- they are numbers of a 16-bit format, as the right ones are not: they were kept in it;
- m² + v are numbers of binary32, where v is a variance: it was E[x²] - m², also where no digit of
  it is left. (m² is rounded, or part of an FMA.)

exp(u) - 1 of any exponential is a number of binary32 less 1: all results are multiples of the last
digit of exp(u), which the right ones near 0 are not.

Where a kernel computes in its arrays' 16 bits, rounded after every operation, each row's sum is the
number of the format, near the right one, with which most elements have the kernel's bits. What the
forward pass saved is right, but for one rounding. A row earns the bits that the elements save over
the right answer, less those that tell its sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, Format, working_format
from refkernels.contexts.composed import Composed
from refkernels.contexts.graph import Edits, Node, Replacement, in_order
from refkernels.contexts.working import RoundedArithmetic
from refkernels.diagnosis import evidence
from refkernels.diagnosis.edits import identities
from refkernels.diagnosis.edits.catalogue import CONDITIONS, by, is_number, through
from refkernels.diagnosis.edits.names import named
from refkernels.diagnosis.edits.screen import Screen
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim, Evidence, Outcome, Prediction
from refkernels.diagnosis.problem import READABLE, Array, Arrays, Doubles, Problem
from refkernels.metrology import ulp

_MOST, _TRIED = 4, 32  # statistics of a row, and numbers that may be such: a loop has more
_STEPS = 5  # of Newton's method
_APART = 2.0**-10  # a share of what a statistic changes that no other changes alike
_WIDE = 3.0  # standard deviations
_DENSITY, _SQUARE = math.log2(2.0 * math.pi) / 2.0, math.log2(math.e) / 2.0  # of normal numbers
_ROUNDED = 2.0  # roundings of a statistic, from the number that it was made of
_LEAST, _ERROR = 0.3, 4.0  # ulps by which the elements of a row err, at least and at most
_ODD = 0.25  # of multiples, where a half is usual
_NEAR = 2.0  # spacings between a number that was kept in 16 bits and the right one
CAP = 12.0  # bits of a row
_ELEMENTS = 1 << 9, READABLE  # that are read, of some rows first
_SPACINGS = range(-40, 41)  # spacings between a sum and the right one
_TIES = 2.0**-8  # the share of saved numbers so near a tie that another exp rounds them otherwise


class Recovered(NamedTuple):
    """What statistics show of how they were made, the bits of each row, the row of each element,
    and the grids tried."""

    cause: str = ""
    details: Mapping[str, Any] = {}
    bits: Any = np.zeros(0)
    owner: Any = None
    tried: int = 0


class OnGrid(NamedTuple):
    """The bits of each row whose number lies on a grid; whether all are cut to it; its spacing."""

    bits: Any
    truncated: bool
    spacing: Any


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """What the statistics of an output's rows show; of an ordinary one, what they prove."""
    for name, got in outputs.items() if problem.size <= READABLE else ():
        program = partial(Screen, problem, {name: got}, elements=READABLE)
        if not np.any(got) or not (plain := program()).has_a_program:
            continue
        found = [*_shown(plain, name), *_differences(plain, name)]
        texts = [i.text for i in identities.identities(plain.program) if i.kind == "variance"]
        if texts and problem.format.p <= BINARY32.p:  # of float64, float64 tells nothing
            found += _shown(program(written=identities.one_pass), name, texts[0])
        found.sort(key=lambda shown: float(np.sum(shown.bits)))
        least = Evidence.PROVEN if fits[name].ordinary else 0.0  # what rounding explains too
        for shown in {shown.cause: shown for shown in found}.values():
            bits = np.sum(shown.bits) - math.log2(max(shown.tried, 1))  # the choice's
            if bits > max(least, np.sum(found[-1].bits) - Evidence.APART):
                yield claim(problem, name, got, plain, shown)


def _differences(plain: Screen, name: str) -> Iterator[Recovered]:
    """The identities that end with a constant that is added, of which all results show the digits;
    what is merely narrower would mostly be an even multiple of the last one."""
    losing = [identity for identity in identities.identities(plain.program) if identity.text]
    for identity in losing if plain.problem.format is BINARY32 else ():
        taken = identities.taking(identity.kind, identity.number)
        screen = Screen(plain.problem, plain.outputs, elements=READABLE, written=taken)
        output = screen.program.graph.outputs[list(screen.question.shapes).index(name)]
        root = through(output) if output else None
        terms = [term for term in root.operands if not is_number(term)] if root else []
        if root and root.op in ("add", "subtract") and len(terms) == 1:
            got, right = screen.observed[name].got, screen.base[name]
            term = screen.value_of(terms[0]).reshape(-1)
            last = ulp(term * (1.0 - 2.0**-20), BINARY32)  # of a power of two, rounded down
            lost = np.log2(last / ulp(right, BINARY32)).clip(0.0, CAP)
            bits = np.where(formats.round_to(right, BINARY32) % last == 0.0, 0.0, lost)
            odd = np.count_nonzero((got / last)[bits > 0.0] % 2.0)
            if odd > _ODD * np.count_nonzero(bits) and not np.any(got % last):
                owner, details = np.arange(got.size), {"formula": identity.text}
                yield Recovered(identities.KIND, details, bits, owner, len(losing))


def _solved(screen: Screen, name: str) -> tuple[list[Node], Doubles, Doubles, Any] | None:
    """The statistics of the rows by least squares, their values and standard deviations (nodes x
    rows), and the row of each element; None where rounding does not leave the rest."""
    nodes, owner = shared(screen, name)
    elements = np.bincount(owner).max() if nodes else 0
    alone = elements == len(nodes) == 1 and screen.observed[name].format is BINARY32
    if not nodes or elements < len(nodes) + (not alone):
        return None
    seen, rows = screen.observed[name], int(owner.max()) + 1
    size, usable = np.abs(seen.got), np.isfinite(seen.got)
    if not usable.any():
        return None
    unit = ulp(np.fmax(size, np.median(size[usable])), seen.format)
    values = np.array([screen.value_of(node).reshape(-1) for node in nodes])
    free = np.bincount(owner, usable, rows) - len(nodes)  # degrees of freedom

    def error(values: Doubles) -> Doubles:
        predicted = screen.predicted(given(nodes, values))
        assert predicted is not None
        return np.where(usable, (seen.got - predicted[name]) / unit, 0.0)

    def slopes_at(values: Doubles, here: Doubles) -> Doubles:
        steps = np.maximum(np.abs(values) * 2.0**-20, 2.0**-100)
        own = np.eye(len(nodes))[:, :, None]
        return np.array([here - error(values + steps * one) for one in own]) / steps[:, owner]

    with np.errstate(all="ignore"):
        kept = _independent(slopes_at(values, error(values)), owner)
        if not kept:
            return None
        nodes, values = [nodes[k] for k in kept], values[kept]
        for _ in range(_STEPS):
            here = error(values)
            slopes = slopes_at(values, here)
            scale = np.array([np.sqrt(np.bincount(owner, s * s, rows)) for s in slopes])
            if not np.isfinite(scale).all() or not scale[:, free > 0].all() or not scale.any():
                return None
            scale = np.where(scale > 0.0, scale, 1.0)
            slopes /= scale[:, owner]
            normal = [[np.bincount(owner, a * b, rows) for a in slopes] for b in slopes]
            inverse = np.linalg.pinv(np.moveaxis(np.array(normal), -1, 0), hermitian=True)
            wanted = np.array([np.bincount(owner, s * here, rows) for s in slopes])
            values = values + np.einsum("rjk,kr->jr", inverse, wanted) / scale
        left = np.sqrt(np.bincount(owner, error(values) ** 2, rows) / np.maximum(free, 1))
    told = alone | (free > 0)  # the elements tell how much they err, but for one of each statistic
    if not told.any() or not (alone or np.median(left[free > 0]) <= _ERROR):
        return None
    variances = np.maximum(np.einsum("rjj->jr", inverse), 0.0)
    spread = np.sqrt(variances) / scale * np.maximum(left, 1.0 if alone else _LEAST)
    return nodes, values, np.where(told, spread, np.inf), owner


def _itself(screen: Screen, name: str) -> tuple[list[Node], Doubles, Doubles, Any] | None:
    """An output that is one number of each row, such as its variance, as `_solved` gives it."""
    seen, names = screen.observed[name], list(screen.question.shapes)
    node = screen.program.graph.outputs[names.index(name)]
    rows = [total.shape for total in screen.program.of("mean", "sum") if seen.format is BINARY32]
    if node is None or node.shape not in rows:  # numbers of 16 bits are on their grid anyway
        return None
    return [node], seen.got[None], _LEAST * ulp(seen.got, BINARY32)[None], np.arange(len(seen.got))


def _independent(slopes: Doubles, owner: Any) -> list[int]:
    """The statistics, without those that change their rows as the ones before them do."""
    basis: list[Doubles] = []
    kept = []
    for k, slope in enumerate(slopes):
        rest = slope
        for other in basis:
            rest = rest - other * np.bincount(owner, rest * other)[owner]
        size, whole = (np.sqrt(np.bincount(owner, part * part)) for part in (rest, slope))
        read = whole > 0
        if read.any() and np.median(size[read] / whole[read]) > _APART:
            basis.append(np.nan_to_num(rest / size[owner]))
            kept.append(k)
    return kept


def given(nodes: list[Node], values: Any) -> Edits:
    shaped = {n: np.reshape(v, n.shape) for n, v in zip(nodes, values, strict=True)}
    return {node: Replacement((), lambda xp, v=v: xp.array(v)) for node, v in shaped.items()}


def shared(screen: Screen, name: str) -> tuple[list[Node], Any]:
    """The numbers of a row that its elements read, and the row of each element: the bits of its
    number are found where they are NaN."""
    program, chosen = screen.program, list[Node]()
    owner: Any = None
    for node in program.statistics if len(program.statistics) <= _TRIED else ():
        value = screen.value_of(node).reshape(-1)
        numbers = np.arange(value.size)
        bits = [numbers >> k & 1 > 0 for k in range(max((value.size - 1).bit_length(), 1))]
        marked = (given([node], [np.where(m, np.nan, value)]) for b in bits for m in (b, ~b))
        found = [np.isnan(p[name]) if p else [True] for p in map(screen.predicted, marked)]
        one = all(
            np.array_equal(a, np.logical_not(b))
            for a, b in zip(found[::2], found[1::2], strict=True)
        )
        number = sum(np.asarray(a, int) << k for k, a in enumerate(found[::2]))
        if one and (owner is None or np.array_equal(owner, number)):
            owner = number
            chosen.append(node)
    return chosen if len(chosen) <= _MOST else [], owner


@np.errstate(divide="ignore", invalid="ignore")  # rows whose statistic reads nothing there
def _shown(screen: Screen, name: str, identity: str = "") -> list[Recovered]:
    """The grids on which numbers lie that the statistics were made of; binary32 too where the
    program is written with an `identity`."""
    statistics = _solved(screen, name) or _itself(screen, name)
    if statistics is None:
        return []
    working = formats.working_format(screen.problem.format)
    grids = [f for f in (BINARY32, BINARY16, BFLOAT16) if f.p < working.p or identity]
    nodes, values, spreads, owner = statistics
    right = np.array([screen.value_of(node).reshape(-1) for node in nodes])
    cancelling = {i.node for i in identities.identities(screen.program) if i.kind == "variance"}
    found: dict[Format, dict[int, OnGrid]] = {format: {} for format in grids}
    tried = 0
    for j, node in enumerate(nodes):
        own = np.arange(len(nodes))[:, None] == j
        for (part, terms), rounded in itertools.product(_made_of(node), (False, True)):
            number, slope = _part(screen, nodes, j, part, terms * rounded, values)
            if number is None:
                continue
            other, _ = _part(screen, nodes, j, part, terms * rounded, np.where(own, right, values))
            spread = (spreads[j] + _ROUNDED * working.u * np.abs(values[j])) / np.abs(slope)
            divided = terms > 1 and not (rounded and identity)  # n v + fl(n m²) is not, before v
            spread = terms * (spread + working.u * np.abs(number) * divided)
            summed = part.op in ("sum", "mean") and part not in cancelling
            count = part.operands[0].shape[part.option] if summed else 1  # roundings
            for format in grids:
                tried += 1
                near = _NEAR * count if format.p < working.p else np.inf
                on = _on_grid(number * terms, other * terms, spread, format, near)
                if _NEAR < near < np.inf:
                    on = on._replace(bits=on.bits * ~_on_any(screen, part, on.spacing / terms))
                found[format][j] = max(found[format].get(j, on), on, key=lambda on: np.sum(on.bits))
        snapped = formats.round_to(values[j], working)
        values[j] = np.where(_WIDE * spreads[j] < ulp(snapped, working) / 4.0, snapped, values[j])
    shown = list[Recovered]()
    for format, parts in found.items():
        kept = [on for on in parts.values() if np.sum(on.bits) > 0]  # some of the statistics
        cut = all(on.truncated for on in kept)
        cause = "truncated_statistics" if cut else "low_precision_statistics"
        details = {"format": format.name}
        if format.p == working.p:
            cause, details = "unstable_identity", {"formula": identity}
        bits = np.sum([on.bits for on in kept], 0)
        shown.append(Recovered(cause, details, bits, owner, tried << len(nodes)))
    return shown


def claim(problem: Problem, name: str, got: Array, screen: Screen, shown: Recovered) -> Claim:
    """The claim about the elements of the rows that show it."""
    bits_gained: Any = np.zeros(got.size)
    bits_gained[screen.places(name)] = (shown.bits / np.bincount(shown.owner))[shown.owner]
    bits_gained = bits_gained.reshape(got.shape)
    outcome = Outcome(True, int(np.count_nonzero(bits_gained == 0.0)), got.size)
    prediction = Prediction(wrong=bits_gained > 0.0, bits_gained=bits_gained, outcome=outcome)
    cause, details = named(shown.cause, shown.details, {"op": problem.op.name})
    return Claim(cause, name, prediction, details, shown.details.get("formula"), shown.tried)


def _made_of(node: Node) -> Iterator[tuple[Node, int]]:
    """The numbers of a row that a statistic was made of, itself first; the sum of a mean too."""
    parts, size = [node], math.prod(node.shape)
    for part in parts:
        yield part, 1
        if part.op == "mean":
            yield part, part.operands[0].shape[part.option]
        operands = (o for o in dict.fromkeys(part.operands) if math.prod(o.shape) == size)
        parts += [o for o in operands if not (o in parts or o.op in CONDITIONS or is_number(o))]


def _on_any(screen: Screen, part: Node, spacing: Doubles) -> Array:
    """The rows of which all terms are multiples of the spacing: so are sums of any of them."""
    terms = np.moveaxis(screen.value_of(part.operands[0]), part.option, -1)
    return (terms / spacing.reshape(*terms.shape[:-1], 1) % 1.0 == 0.0).all(axis=-1).reshape(-1)


def _part(
    screen: Screen, nodes: list[Node], j: int, part: Node, rounded: int, values: Doubles
) -> tuple[Any, Any]:
    """The part's number that makes the statistic j what it is, and the statistic's slope there;
    products of other parts, times `rounded`, in binary32. None where there is none."""
    if part is nodes[j]:
        return (None, None) if rounded else (values[j], np.ones(values[j].size))
    others = [k for k in range(len(nodes)) if k != j]
    changes = dict(given([nodes[k] for k in others], values[others]))
    products = [
        node
        for node in (n for n, _ in _made_of(nodes[j]))
        if node.op in ("square", "multiply") and node is not part and node not in changes
    ]
    if rounded and not products:
        return None, None
    if rounded:
        changes |= {
            n: by(n)(lambda xp, v: xp.narrow(v * rounded, "float32") / rounded) for n in products
        }

    def at(number: Any) -> Any:
        return screen.value_of(nodes[j], {**changes, **given([part], [number])}).reshape(-1)

    number = np.asarray(screen.value_of(part), float).reshape(-1)
    with np.errstate(all="ignore"):
        for _ in range(3 * _STEPS):
            step = np.maximum(np.abs(number), 2.0**-60) * 2.0**-26
            here = at(number)
            slope = (at(number + step) - here) / step
            number = number + (values[j] - here) / slope
    return number, slope


@np.errstate(all="ignore")  # a row may have no number
def _on_grid(
    number: Doubles, right: Doubles, spread: Doubles, format: Format, near: float
) -> OnGrid:
    """The bits of each row; none where some row's number is not `near` the right one, in spacings.
    A row earns log2 of how much denser numbers are there than anywhere between those of the grid,
    unless its right number is on the grid too, or another row has the same one."""
    nearest, beside = (to_float64(formats.round_to(array, format)) for array in (number, right))
    spacing = ulp(nearest, format)
    clear, apart = spread < spacing / 4.0, np.abs(number - right)
    far = (clear & (apart > near * spacing)).any()
    once = np.zeros(number.size, bool)
    once[np.unique(nearest, return_index=True)[1]] = True
    off = np.square((number - nearest) / spread)
    bits = np.log2(spacing / spread) - _DENSITY - off * _SQUARE
    shown = clear & (np.abs(right - beside) > _WIDE * spread) & once & ~far
    below = (np.abs(number) <= np.abs(right) + _WIDE * spread).all()
    once_cut = (apart <= spacing + _WIDE * spread).all()  # and not at each of many terms
    truncated = bool(below and once_cut and (apart > 0.55 * spacing).any())
    return OnGrid(np.where(shown, np.clip(bits, -CAP, CAP), 0.0), truncated, spacing)


def of_narrow_sums(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """For each output that is not ordinary, the first form whose sums can be solved for."""
    if problem.format not in (BINARY16, BFLOAT16) or problem.size > READABLE:
        return
    for name, got in outputs.items():
        seen, lengths = evidence.observe(problem, got, fits[name]), np.zeros(got.size)
        lengths[seen.units.places] = seen.lengths
        forms = () if fits[name].ordinary else problem.definition.of(problem.direction).forms
        for form in forms:
            some, every = (Screen(problem, {name: got}, form, elements=n) for n in _ELEMENTS)
            shown = _in_16_bits(some, name, lengths) and _in_16_bits(every, name, lengths)
            if shown:
                yield claim(problem, name, got, every, shown)
                break


def _in_16_bits(screen: Screen, name: str, lengths: Doubles) -> Recovered | None:
    """The bits of each row: its elements' code lengths, where no wider arithmetic gives them with
    the same sums, less those of its sums; an element that is not equal costs what a row may earn.
    None where too few are equal."""
    if not screen.has_a_program:
        return None
    program, seen, format = screen.program, screen.observed[name], screen.problem.format
    known = {n: _rounded(screen.value_of(n), format) for n in program.of("saved")}
    live = in_order([node for node in program.graph.outputs if node], known=known)
    sums = [node for node in live if node.op in ("sum", "mean", "norm")]
    _, owner = shared(screen, name)
    if owner is None or not sums or any(math.prod(n.shape) != owner.max() + 1 for n in sums):
        return None

    def computed(values: Mapping[Node, Doubles], xp: RoundedArithmetic) -> Doubles:
        numbers = {**known, **values}
        edits = given([*numbers], numbers.values())
        return to_float64(screen.computed(program.graph, xp, edits)[name])

    best: dict[Node, Doubles] = {}
    for node in sums:
        right, most = _rounded(screen.value_of(node), format), np.full(math.prod(node.shape), -1.0)
        for step in sorted(_SPACINGS, key=abs):
            number = _rounded(right + step * ulp(right, format), format)
            equal = computed({**best, node: number}, Composed(format)) == seen.got
            count = np.bincount(owner, equal, most.size)
            better = np.reshape(count > most, node.shape)
            best[node] = np.where(better, number, best.get(node, number))
            most = np.maximum(most, count)
    model = computed(best, Composed(format))
    wide = computed(best, RoundedArithmetic(working_format(format), format))
    equal = model == seen.got
    if np.mean(equal) < 1.0 - _TIES:
        return None
    told = np.where(model != wide, lengths[screen.places(name)], 0.0)
    bits = np.bincount(owner, np.where(equal, told, -CAP))
    bits = np.minimum(bits - len(sums) * math.log2(len(_SPACINGS)), CAP)
    return Recovered("narrow_intermediates", {"format": format.name}, bits, owner, 1)


def _rounded(values: Any, format: Format) -> Doubles:
    return to_float64(formats.round_to(np.asarray(values, float), format))
