"""The same step of two runs, value by value, where both began with the same weights and batch.

Functions outside layers are not captured, and no oracle judges them; what they do differently shows
in the next layer's input. So values are compared in the order in which a step makes them: layers
forward, the loss, cotangents backward, gradients. Rounding differs too, and no bound is proven for
what it grows to on the way: a place is suspected where more than half of the format's digits differ
(in norm) and everything before it agrees in more than half. A factor that they share is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from refkernels.alignment.clipping import LEAST_SCALE
from refkernels.alignment.matching import Matched, equal, oriented
from refkernels.alignment.parts import FactorCause, cause
from refkernels.alignment.question import Array
from refkernels.alignment.run import Call, Rank, Run, StepLine, StepTensors
from refkernels.arithmetic import formats

_RANDOM = ("drop", "rand", "bernoulli", "multinomial", "gumbel")
_CANCELLED = 16.0  # how many roundings of its terms a sum may err by
Stage = Literal["forward", "loss", "backward", "gradient", "clip"]


@dataclass(frozen=True)
class Departure:
    """Where two runs' values part: `what` is an input, output, cotangent or gradient of `where`;
    `apart`: the norm of the difference over that of A's; `factor`: B's over A's, where the one is a
    multiple of the other; `parted`: of `places` compared in this stage, those that part likewise;
    `cause`: what whole parts of the batch are counted for, where that explains it."""

    step: int
    stage: Stage
    where: str
    what: str
    apart: float
    factor: float | None
    parted: int
    places: int
    cause: FactorCause | None = None


@dataclass(frozen=True)
class _Pair:
    stage: Stage
    where: str
    what: str
    apart: float
    factor: float | None
    digits: float  # 2^-p/2


def departure(one: Run, two: Run, matched: Matched) -> Departure | None:
    """The first place where a shared captured step parts; None where there is none. A step that the
    two did not begin alike is passed over, and so is what follows from random numbers."""
    a, b = one.first, two.first
    several = max(a.world_size, b.world_size) > 1
    if _draws(a) or _draws(b):
        return None
    lines = {line.step: line for line in a.lines}, {line.step: line for line in b.lines}
    steps = sorted(set(a.steps) & set(b.steps))
    for step in steps:
        tensors = a.tensors(step), b.tensors(step)
        pair = lines[0][step], lines[1][step]
        if not _begin_alike(*tensors, matched):
            continue
        found = None
        if pair[0].batch_hash == pair[1].batch_hash:
            found = _departure(a, b, tensors, matched, *pair)
        if found is not None and found.stage in ("forward", "loss"):
            return found
        if found is not None or several:
            why = cause(one, two, step, matched)
            if found is not None:
                return replace(found, cause=why)
            if why is not None:
                return Departure(step, "clip", a.model, "update", math.nan, None, 0, 0, why)
    return None


def _draws(rank: Rank) -> bool:
    """Whether a function that the model calls outside of layers draws random numbers."""
    named = (word in line for line in rank.not_captured for word in _RANDOM)
    return rank.draws.outside or any(named)


def _departure(
    a: Rank, b: Rank, tensors: tuple[StepTensors, StepTensors], matched: Matched, one: StepLine,
    two: StepLine,
) -> Departure | None:  # fmt: skip
    pairs = list(_pairs(a, b, tensors, matched, one, two))
    parted = next((pair for pair in pairs if pair.apart > pair.digits), None)
    scale = None if parted is None else _taken_out(parted, pairs)
    if scale is not None and max(scale, 1 / scale) < LEAST_SCALE:
        # A clip by the norm takes out any factor: only where one run leaves its gradients as they
        # are, and the updates agree, the other has taken it out itself.
        scale = None if all(_changes(*one) for one in zip((a, b), tensors, strict=True)) else scale
    if scale is not None:
        pairs = list(_pairs(a, b, tensors, matched, one, two, scale))
        parted = next((pair for pair in pairs if pair.apart > pair.digits), None)
    if parted is None:
        return None
    alike = [pair for pair in pairs if pair.stage == parted.stage]
    same = [pair for pair in alike if pair.apart > pair.digits and _near(pair, parted)]
    return Departure(
        one.step, parted.stage, parted.where, parted.what, parted.apart, parted.factor,
        len(same), len(alike),
    )  # fmt: skip


def _taken_out(parted: _Pair, pairs: list[_Pair]) -> float | None:
    """The power of two that scales a backward pass and is gone before the update, if it does."""
    factor, behind = parted.factor, [pair for pair in pairs if pair.stage == "clip"]
    if parted.stage not in ("backward", "gradient") or factor is None or factor <= 0.0:
        return None
    power = 2.0 ** round(math.log2(factor))
    scales = math.isclose(factor, power, rel_tol=2 * parted.digits)
    kept = not behind or any(_near(pair, parted) for pair in behind)
    return power if scales and not kept else None


def _changes(rank: Rank, tensors: StepTensors) -> bool:
    """Whether gradients are changed between the backward pass and the update."""
    whens = ("backward", "update")
    each = [[_gradient(tensors, name, when) for when in whens] for name in rank.parameters]
    return any(
        one is not None and two is not None and not np.array_equal(one, two) for one, two in each
    )


def _near(one: _Pair, other: _Pair) -> bool:
    if one.factor is None or other.factor is None:
        return one.factor is other.factor
    return math.isclose(one.factor, other.factor, rel_tol=2 * one.digits)


def _begin_alike(one: StepTensors, two: StepTensors, matched: Matched) -> bool:
    """Up to one weight moved by a perturbation."""
    apart = 0
    for name, partner in matched.parameters.items():
        mine, other = one.parameter(name), two.parameter(partner)
        if mine is not None and other is not None and not equal(mine, other):
            turned = oriented(mine, other)
            if mine.shape != turned.shape or np.count_nonzero(mine != turned) > 1:
                return False
            apart += 1
    return apart <= 1


def _pairs(
    a: Rank, b: Rank, tensors: tuple[StepTensors, StepTensors], matched: Matched, one: StepLine,
    two: StepLine, scale: float = 1.0,
) -> Iterator[_Pair]:  # fmt: skip
    """Up to where other random numbers come in: what follows from these cannot be compared.
    `scale`: by which B's backward pass is scaled."""
    layers = [name for name in a.layers if name in matched.layers and not a.contains(name)]
    calls: dict[str, list[tuple[Call, Call]]] = {}
    for name in layers:
        made = tensors[0].calls(name), tensors[1].calls(matched.layers[name])
        if len(made[0]) == len(made[1]):  # else the one accumulates over parts of the batch
            calls[name] = list(zip(*made, strict=True))
    drawn = a.draws.before or b.draws.before
    for name in layers:
        drops = _drops(a, name) or _drops(b, matched.layers[name])
        for mine, other in calls.get(name, ()):
            if drawn and _other_numbers(mine, other):
                return
            for what in ("inputs", "outputs"):
                random = drops if what == "outputs" else drawn and name == layers[0]
                compared = _of("forward", name, what, getattr(mine, what), getattr(other, what))
                for pair in compared:
                    if random and pair.apart > pair.digits:
                        return
                    yield pair
    if one.loss is not None and two.loss is not None:
        dtype = formats.get(one.loss_dtype or "float32").storage
        losses = [np.array([line.loss], dtype) for line in (one, two)]
        yield from _of("loss", "loss", "loss", {"0": losses[0]}, {"0": losses[1]})
    for name in reversed(layers):
        for mine, other in reversed(calls.get(name, [])):
            for what in ("cotangents", "input_gradients"):
                sides = getattr(mine, what), getattr(other, what)
                yield from _of("backward", name, what, *sides, scale=scale)
    floors = cotangent_sizes(a, tensors[0])
    for name, partner in matched.parameters.items():
        yield from _gradients("gradient", "backward", tensors, name, partner, floors, scale)
    for name, partner in matched.parameters.items():
        yield from _gradients("clip", "update", tensors, name, partner, floors)


def _gradients(
    stage: Stage, when: str, tensors: tuple[StepTensors, StepTensors], name: str, partner: str,
    floors: Mapping[str, float], scale: float = 1.0,
) -> Iterator[_Pair]:  # fmt: skip
    """Of a parameter, as the backward pass left it or as the update received it."""
    mine, other = _gradient(tensors[0], name, when), _gradient(tensors[1], partner, when)
    weights = tensors[0].parameter(name), tensors[1].parameter(partner)
    if mine is None or other is None:
        return
    if weights[0] is not None and weights[1] is not None:
        other = oriented(weights[0], other, weights[1])
    what = "gradient" if when == "backward" else when
    floor = floors.get(name, 0.0)
    if when == "update":
        floor *= _share(tensors[0].gradient(name, "backward"), mine)
    yield from _of(stage, name, what, {"0": mine}, {"0": other}, floor, scale)


def _share(before: Array | None, after: Array) -> float:
    """What clipping, or taking out a loss scale, leaves of a gradient."""
    if before is None:
        return 1.0
    sizes = [float(np.linalg.norm(one.astype(np.float64))) for one in (before, after)]
    return sizes[1] / sizes[0] if 0.0 < sizes[0] < math.inf else 1.0


def _gradient(tensors: StepTensors, name: str, when: str) -> Array | None:
    """For the update: what an optimizer that clips by itself has made of it."""
    clipped = tensors.gradient(name, "clipped") if when == "update" else None
    return tensors.gradient(name, when) if clipped is None else clipped


def _drops(rank: Rank, name: str) -> bool:
    named = any(word in rank.layers[name].type.lower() for word in _RANDOM)
    return named or name in rank.draws.layers


def _other_numbers(mine: Call, other: Call) -> bool:
    """Whether inputs that count or choose (ids, a mask) are others."""
    pairs = zip(mine.inputs.values(), other.inputs.values(), strict=False)
    return any(one.dtype.kind in "biu" and not np.array_equal(one, two) for one, two in pairs)


def _whole(factor: float, digits: float) -> bool:
    """Whether a factor, or what it is one part of, is a whole number."""
    larger = abs(factor) if abs(factor) >= 1.0 else 1.0 / abs(factor) if factor else math.inf
    return larger < math.inf and math.isclose(larger, round(larger), rel_tol=digits)


def cotangent_sizes(rank: Rank, tensors: StepTensors) -> dict[str, float]:
    """By parameter, the largest norm of the cotangents of a layer that has it."""
    found: dict[str, float] = {}
    for layer in rank.layers.values():
        sizes = [
            float(np.linalg.norm(one.astype(np.float64)))
            for call in tensors.calls(layer.name)
            for one in call.cotangents.values()
        ]
        for name in layer.parameters.values():
            found[name] = max(found.get(name, 0.0), *sizes, 0.0)
    return found


def null_directions(rank: Rank, step: int) -> tuple[str, ...]:
    """Parameters whose gradient has lost more than half of its digits to cancellation: zero in
    exact arithmetic, or nearly. Adam and its kin move them by their roundings' signs."""
    tensors, found = rank.tensors(step), []
    for name, size in cotangent_sizes(rank, tensors).items():
        gradient = tensors.gradient(name, "backward")
        if gradient is None or not size < math.inf:
            continue
        norm = float(np.linalg.norm(gradient.astype(np.float64)))
        if 0.0 < norm <= size * 2.0 ** (-formats.of(gradient).p / 2):
            found.append(name)
    return tuple(found)


def _of(
    stage: Stage, where: str, what: str, mine: Mapping[str, Array], other: Mapping[str, Array],
    floor: float = 0.0, scale: float = 1.0,
) -> Iterator[_Pair]:  # fmt: skip
    """`floor`: what a gradient is made of; where that cancels, a quarter of the digits may go, and
    where little more than half of them are left, those are its roundings, and are not compared."""
    for one, two in zip(mine.values(), other.values(), strict=False):
        if one.shape != two.shape or one.dtype.kind not in "fV" or not one.size:
            continue
        digits = 2.0 ** (-min(formats.of(one).p, formats.of(two).p) / 2)
        left, right = one.astype(np.float64).reshape(-1), two.astype(np.float64).reshape(-1) / scale
        norms = float(np.linalg.norm(left)), float(np.linalg.norm(right))
        size = max(norms[0], math.sqrt(digits) * floor)
        if not 0.0 < size < math.inf or not np.isfinite(right).all():
            continue
        if max(norms) <= _CANCELLED * digits * floor:
            continue
        apart = float(np.linalg.norm(right - left)) / size
        factor = float(np.dot(left, right)) / size**2
        multiple = one.size > 1 or _whole(factor, digits)
        multiple = multiple and float(np.linalg.norm(right - factor * left)) <= digits * size * abs(
            factor
        )
        yield _Pair(stage, where, what, apart, factor if multiple else None, digits)
