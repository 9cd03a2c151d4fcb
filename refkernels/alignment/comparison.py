"""The same step of two runs, value by value, where both began with the same weights and batch.

Values are compared in the order in which a step makes them: layers forward, the loss, cotangents
backward, gradients, changes of weights. A place is suspected where more than half of the format's
digits differ (in norm), or of those that a layer before it leaves, and everything before it agrees.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from refkernels.alignment.clipping import LEAST_SCALE, clipping, scaling
from refkernels.alignment.local import LocalTruth
from refkernels.alignment.matching import Matched, equal, oriented, unequal
from refkernels.alignment.parts import SUMMED, cause, coefficients
from refkernels.alignment.run import Rank, Run, StepLine, StepTensors
from refkernels.alignment.suspect import Suspect
from refkernels.alignment.tensors import Array, norm
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64

_HUGE, _FAR, _ABOUT = 1e30, 64.0, 1.0 - 2.0**-5  # infinity; how far, and how alike, masks are
_CHANGED = 4.0  # roundings of a weight, by which its change may be off
_CANCELLED = 16.0  # roundings of a sum's terms, by which it may err
Stage = Literal["forward", "loss", "backward", "gradient", "clip", "update"]


@dataclass(frozen=True)
class _Comparison:
    stage: Stage
    where: str
    what: str
    apart: float
    factor: float | None
    digits: float  # 2^-p/2


_Coarse = Mapping[tuple[int, str, str], float]  # relative errors by step, stage and A's layer


def coarse_places(local: Sequence[LocalTruth], matched: Matched) -> _Coarse:
    """The relative errors of layers that are known to compute their definition worse."""
    back = {name_b: name_a for name_a, name_b in matched.layers.items()}
    found = [
        (j.apart, j.place, k) for k, side in enumerate(local) for j in side.judgements if j.coarse
    ]
    known = sorted((one for one in found if math.isfinite(one[0])), key=operator.itemgetter(0))
    return {
        (place.step, str(place.stage), back.get(place.name, place.name) if k else place.name): apart
        for apart, place, k in known  # of several, the largest
    }


def departure(run_a: Run, run_b: Run, matched: Matched, coarse: _Coarse) -> Suspect | None:
    """The first place where the runs diverge in a step that both captured and began alike, except
    for values that depend on random numbers. `coarse`: those of `coarse_places`. Of the suspect,
    `apart`: the norm of the difference over that of A's value; `factor`: B's value over A's, if one
    is a multiple of the other; `parted`: how many of the `places` in this stage diverge likewise;
    `last`: the layer whose outputs agree before it;
    `cause`: other weights of whole parts of the batch, a `FactorCause`."""
    a, b = run_a.first, run_b.first
    lines = [{line.step: line for line in rank.lines} for rank in (a, b)]
    for step in sorted(set(a.steps) & set(b.steps)):
        tensors = a.tensors(step), b.tensors(step)
        line_a, line_b = (lines_by_step[step] for lines_by_step in lines)
        if sum(count for *_, count in unequal(*tensors, matched.parameters)) > 1:
            continue  # one that a perturbation moved is let pass
        drawn = a.draws.outside or b.draws.outside
        if drawn and (line_a.loss is None or line_a.loss != line_b.loss):
            continue
        found = None
        if line_a.batch_hash == line_b.batch_hash:
            found = _departure(run_a, run_b, tensors, matched, line_a, line_b, coarse)
        if found is not None and found.topic == "forward":
            return found
        if found is not None or max(a.world_size, b.world_size) > 1:
            batch_cause = cause(run_a, run_b, step, matched)
            factor = None
            if batch_cause is not None and batch_cause.word == "multiple":  # of no known reason
                factor, batch_cause = batch_cause.details["factor"], None
            if found is None and (factor or batch_cause):
                update = _Comparison("clip", a.model, "update", math.nan, factor, 0.0)
                found = _suspect(step, update, 1, 1)
            if found is not None:
                why = None if batch_cause is None else asdict(batch_cause)
                return replace(found, details={**found.details, "cause": why})
    return None


def _departure(
    run_a: Run, run_b: Run, tensors: tuple[StepTensors, StepTensors], matched: Matched,
    line_a: StepLine, line_b: StepLine, coarse: _Coarse,
) -> Suspect | None:  # fmt: skip
    a, b = run_a.first, run_b.first
    scale: float | None = 1.0
    parted = None
    while scale is not None:
        of_loss = scale if parted is not None and parted.stage == "loss" else 1.0
        compared = _comparisons(a, b, tensors, matched, line_a, line_b, scale, of_loss)
        pairs = list(_resolved(compared, line_a.step, coarse))
        real = (pair for pair in pairs if pair.apart > pair.digits and pair.what != "ids")
        parted = next(real, None)  # ids alone may be told otherwise, as what is no label
        scale = None if parted is None or scale != 1.0 else _removed_factor(parted, pairs)
        if scale and (max(scale, 1 / scale) < LEAST_SCALE or math.frexp(scale)[0] != 0.5):
            # Clipping by the norm removes any factor. Only where one run leaves its gradients as
            # they are or divides them, and the updates agree, has the other removed it itself.
            by_ranks = a.world_size > 1 and max(scale, 1 / scale) == a.world_size  # a sum of theirs
            clipped = _clips(run_a, line_a.step) and _clips(run_b, line_b.step)
            scale = None if clipped and not by_ranks else scale
    if parted is None:
        return None
    same_stage = [pair for pair in pairs if pair.stage == parted.stage]
    same = [pair for pair in same_stage if pair.apart > pair.digits and _same_factor(pair, parted)]
    received = (pair for pair in pairs if (pair.where, pair.what) == (parted.where, "ids"))
    parted = next((pair for pair in received if pair.apart), parted)
    before = [pair.where for pair in pairs[: pairs.index(parted)] if pair.what == "outputs"]
    last = before[-1] if before and parted.what in ("inputs", "loss") else ""
    return _suspect(line_a.step, parted, len(same), len(same_stage), last)


def _suspect(step: int, parted: _Comparison, alike: int, places: int, last: str = "") -> Suspect:
    details = {"what": parted.what, "apart": parted.apart, "factor": parted.factor, "cause": None}
    details |= {"parted": alike, "places": places, "last": last}
    return Suspect(parted.stage, parted.where, step=step, kind="parted", details=details)


def _resolved(pairs: Iterable[_Comparison], step: int, coarse: _Coarse) -> Iterator[_Comparison]:
    """The comparisons, each with half of the digits that the coarsest layer before it leaves."""
    error = 0.0
    for pair in pairs:
        error = max(error, coarse.get((step, pair.stage, pair.where), 0.0))
        yield replace(pair, digits=max(pair.digits, math.sqrt(error)))


def _removed_factor(parted: _Comparison, pairs: list[_Comparison]) -> float | None:
    """The factor that scales a backward pass, or the loss too, and is removed before the update: a
    sum over ranks in place of a mean, say. None if there is none."""
    factor, updates = parted.factor, [pair for pair in pairs if pair.stage == "clip"]
    if parted.stage not in ("loss", "backward", "gradient") or factor is None or factor <= 0.0:
        return None
    power = 2.0 ** round(math.log2(factor))
    scales = math.isclose(factor, power, rel_tol=2 * parted.digits)
    if not updates or any(_same_factor(pair, parted) for pair in updates):
        return None
    return power if scales else factor


def _clips(run: Run, step: int) -> bool:
    """Whether gradients are changed between the backward pass and the update, except by one
    division by a whole number, and by their sum or mean over ranks."""
    rank = run.first
    if rank.world_size > 1:
        weights = coefficients(run, [one.tensors(step) for one in run.ranks if step in one.steps])
        sums = (1.0, 1.0 / rank.world_size)
        return not any(np.allclose(weights or math.nan, one, SUMMED, 0.0) for one in sums)
    found = scaling(rank, step, rank.tensors(step))
    clip = None if found is None else clipping([found])
    return clip is not None and clip.scope != "none" and not clip.divisors


def _same_factor(first: _Comparison, second: _Comparison) -> bool:
    """Whether two comparisons have the same factor, or neither has one."""
    if first.factor is None or second.factor is None:
        return first.factor is second.factor
    return math.isclose(first.factor, second.factor, rel_tol=2 * first.digits)


def _comparisons(
    a: Rank, b: Rank, tensors: tuple[StepTensors, StepTensors], matched: Matched, line_a: StepLine,
    line_b: StepLine, scale: float = 1.0, of_loss: float = 1.0,
) -> Iterator[_Comparison]:  # fmt: skip
    """The comparisons of a step, up to the first random numbers that differ: values that depend on
    these cannot be compared. `scale`: the scale of B's backward pass; `of_loss`: of its loss."""
    layers = [name for name in a.layers if name in matched.layers and not a.contains(name)]
    both = ((n, tensors[0].calls(n), tensors[1].calls(matched.layers[n])) for n in layers)
    # unequal where one run accumulates over parts of the batch
    calls = {n: [*zip(x, y, strict=True)] for n, x, y in both if len(x) == len(y)}
    drawn = a.draws.before or b.draws.before
    for name in layers:
        draws_numbers = name in a.draws.layers or matched.layers[name] in b.draws.layers
        for call_a, call_b in calls.get(name, ()):
            inputs = zip(call_a.inputs.values(), call_b.inputs.values(), strict=False)
            if drawn and any(a.dtype.kind in "biu" and not np.array_equal(a, b) for a, b in inputs):
                return  # ids, or a mask
            for what in ("inputs", "outputs"):
                random = draws_numbers if what == "outputs" else drawn and name == layers[0]
                sides = getattr(call_a, what), getattr(call_b, what)
                for pair in _compared_arrays("forward", name, what, *sides):
                    if random and pair.apart > pair.digits:
                        return
                    yield pair
    if line_a.loss is not None and line_b.loss is not None:
        dtype = formats.get(line_a.loss_dtype or "float32").storage
        own, other = ({"0": np.array([line.loss], dtype)} for line in (line_a, line_b))
        yield from _compared_arrays("loss", "loss", "loss", own, other, scale=of_loss)
    for name in reversed(layers):
        for call_a, call_b in reversed(calls.get(name, [])):
            for what in ("cotangents", "input_gradients"):
                sides = getattr(call_a, what), getattr(call_b, what)
                yield from _compared_arrays("backward", name, what, *sides, scale=scale)
    in_a, in_b = cotangent_sizes(a, tensors[0]), cotangent_sizes(b, tensors[1])
    most = max((*in_a.values(), *in_b.values()), default=0.0)  # a function may stand for a layer
    floors = {n: in_a.get(n) or in_b.get(its) or most for n, its in matched.parameters.items()}
    for name, partner in matched.parameters.items():
        yield from _gradients("gradient", "backward", tensors, name, partner, floors, scale)
    for name, partner in matched.parameters.items():
        yield from _gradients("clip", "update", tensors, name, partner, floors)
    trained = {n: i for n, i in matched.parameters.items() if tensors[0].received(n) is not None}
    buffers = {name: name for name in a.buffers if name in b.buffers}
    for name, partner in (trained | {**matched.parameters} | buffers).items():
        yield from _changes(tensors, (name, partner))


def _changes(
    tensors: tuple[StepTensors, StepTensors], pair: tuple[str, str]
) -> Iterator[_Comparison]:
    """What a step makes of a parameter and its states, or of a buffer, whoever changes it: an
    update, an average of weights. Parameters must begin with the same bits, and the updates receive
    the same gradient: Adam makes a whole step of a rounding."""
    sides = list(zip(tensors, pair, strict=True))
    begin, end = ([one.held(name, when) for one, name in sides] for when in ("before", "after"))
    gradients = [{"": one.received(name)} for one, name in sides]
    given = [(x.get(w), y.get(w)) for x, y in (begin, gradients) for w in {**x, **y}]
    same = all(x is y or (x is not None and y is not None and equal(x, y)) for x, y in given)
    for word in end[0] if same or tensors[0].buffer(pair[0]) is not None else ():
        (old, its), (new, other) = ([one.get(word) for one in when] for when in (begin, end))
        if new is None or other is None or new.dtype != other.dtype:
            continue
        x, y = map(to_float64, (new, other))
        if same and old is not None and its is not None:
            x, y = x - to_float64(old), oriented(old, y, its) - to_float64(old)
        real = new.dtype.kind in "fV"
        room = _CHANGED * 2.0 ** -formats.of(new).p * norm(new) if real else 0.0
        x, y = (one.astype(new.dtype) if real else one for one in (x, y))
        name = f"{pair[0]}: {word}" if word else pair[0]
        yield from _compared_arrays("update", name, "change", {"0": x}, {"0": y}, room, 1.0, room)


def _gradients(
    stage: Stage, when: str, tensors: tuple[StepTensors, StepTensors], name: str, partner: str,
    floors: Mapping[str, float], scale: float = 1.0,
) -> Iterator[_Comparison]:  # fmt: skip
    """A parameter's gradient, as the backward pass left it or as the update received it."""
    gradient_a, gradient_b = (
        side.received(word) if when == "update" else side.gradient(word, when)
        for side, word in zip(tensors, (name, partner), strict=True)
    )
    weights = tensors[0].parameter(name), tensors[1].parameter(partner)
    if gradient_a is None or gradient_b is None:
        return
    if weights[0] is not None and weights[1] is not None:
        gradient_b = oriented(weights[0], gradient_b, weights[1])
    what = "gradient" if when == "backward" else when
    floor = floors.get(name, 0.0)
    if when == "update":
        before = tensors[0].gradient(name, "backward")
        size = 0.0 if before is None else norm(before)
        floor *= norm(gradient_a) / size if 0.0 < size < math.inf else 1.0  # what clipping leaves
    pair = {"0": gradient_a}, {"0": gradient_b}
    yield from _compared_arrays(stage, name, what, *pair, floor, scale)


def cotangent_sizes(rank: Rank, tensors: StepTensors) -> dict[str, float]:
    """The largest norm of the cotangents of a layer that has the parameter, by parameter."""
    largest: dict[str, float] = {}
    for layer in rank.layers.values():
        sizes = [norm(c) for call in tensors.calls(layer.name) for c in call.cotangents.values()]
        for name in layer.parameters.values():
            largest[name] = max(largest.get(name, 0.0), *sizes, 0.0)
    return largest


def null_directions(rank: Rank, step: int) -> tuple[str, ...]:
    """Parameters whose gradient has lost more than half of its digits to cancellation: it is zero
    in exact arithmetic, or nearly. Adam and its kin move them by the signs of roundings."""
    tensors = rank.tensors(step)
    sizes = cotangent_sizes(rank, tensors)
    found = {n: g for n in sizes if (g := tensors.gradient(n, "backward")) is not None}
    lost = {n: sizes[n] * 2.0 ** (-formats.of(g).p / 2) for n, g in found.items()}
    return tuple(n for n, g in found.items() if 0.0 < norm(g) <= lost[n] < math.inf)


def _compared_arrays(
    stage: Stage, where: str, what: str, arrays_a: Mapping[str, Array],
    arrays_b: Mapping[str, Array], floor: float = 0.0, scale: float = 1.0, rounding: float = 0.0,
) -> Iterator[_Comparison]:  # fmt: skip
    """Compares the arrays one by one. `floor`: the size of a gradient's terms. Where these cancel,
    a quarter of the digits may be lost; where cancellation leaves nothing but roundings, the
    gradient is not compared. `rounding`: the norm of what may be off besides."""
    for array_a, array_b in zip(arrays_a.values(), arrays_b.values(), strict=False):
        kinds = {array_a.dtype.kind, array_b.dtype.kind}
        whole, real = kinds <= {"i", "u"}, kinds <= {"f", "V"}
        if array_a.shape != array_b.shape or not array_a.size or not (whole or real):
            continue
        digits = 0.0 if whole else 2.0 ** (-min(formats.of(array_a).p, formats.of(array_b).p) / 2)
        if stage == "forward":
            array_a, array_b = (np.clip(to_float64(x), -_HUGE, _HUGE) for x in (array_a, array_b))
            shown = ~(_masked(array_a) & _masked(array_b))
            array_a, array_b = array_a[shown], array_b[shown]
        norms = norm(array_a), norm(array_b) / scale
        size = max(norms[0], math.sqrt(digits) * floor)
        if not 0.0 < size < math.inf or not math.isfinite(norms[1]):
            continue
        if max(norms) <= _CANCELLED * digits * floor:
            continue
        values_a, values_b = array_a.astype(np.float64), array_b.astype(np.float64) / scale
        apart = max(norm(values_b - values_a) - rounding, 0.0) / size
        factor = float(np.vdot(values_a, values_b)) / size**2 if norms[1] > rounding else 0.0
        larger = max(abs(factor), 1.0 / abs(factor)) if factor else 0.5
        multiple = array_a.size > 1 or math.isclose(larger, round(larger), rel_tol=digits)
        multiple &= norm(values_b - factor * values_a) <= digits * size * abs(factor) + rounding
        known = factor if multiple and real else None
        yield _Comparison(stage, where, "ids" if whole else what, apart, known, digits)


def _masked(x: Array) -> Array:
    """Which numbers a mask has made the least: several that are about equal, far below all others.
    How far, or whether they are infinite, is a choice."""
    low = np.min(x)
    masked = x < low / 2.0
    others = np.abs(x[~masked])
    far = 0 < others.size < x.size - 1 and bool(low < -_FAR * np.max(others))
    return masked & (far and bool(np.all(x[masked] <= low * _ABOUT)))
