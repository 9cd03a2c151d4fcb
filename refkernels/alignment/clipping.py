"""What happened to the gradients between the backward pass and the update: one factor for all, one
for each group or each tensor, a clamp, or nothing.

A factor is known as an interval: what f may be, where every element is g f within one float of its
own format. Clipping by a norm is recognised by a threshold c = f (n + eps), n the norm of what was
scaled: it has to lie in the same narrow interval in every step that clips. Which eps (torch and
OneFlow 1e-6, Paddle and MindSpore none) is told where the intervals tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from refkernels.alignment.question import Array
from refkernels.alignment.run import Rank, Run, StepTensors
from refkernels.arithmetic import formats

Interval = tuple[float, float]
Scope = Literal["none", "global", "group", "tensor", "value", "other"]
ADDED = (0.0, 1e-6)  # to the norm, by definitions of clipping
_NARROW = 2.0**-8  # an interval that is not wider than this holds a power of two by chance never
LEAST_SCALE = 16.0  # of a loss: what is less may be a choice of thresholds
_NORM = 2.0**-21  # relative error that a float32 norm may have; a kernel's order is its own


@dataclass(frozen=True)
class Scaling:
    """A step's gradients: `factors` and `norms` by what was scaled ("" for all)."""

    step: int
    rank: int
    scope: Scope
    factors: Mapping[str, Interval] = field(default_factory=dict)
    norms: Mapping[str, float] = field(default_factory=dict)
    limit: float | None = None  # of a clamp
    room: float = _NORM

    @property
    def clips(self) -> tuple[str, ...]:
        """What was scaled down, but for a loss scale that was taken out."""
        return tuple(
            name
            for name, factor in self.factors.items()
            if factor[1] < 1.0 and not _unscales(factor)
        )

    @property
    def unscales(self) -> bool:
        """Whether a loss scale was taken out, and nothing else done."""
        return bool(self.factors) and all(_unscales(one) for one in self.factors.values())


@dataclass(frozen=True)
class Clipping:
    """What a run does to its gradients, over its captured steps. `thresholds`: by what was added to
    the norm, the threshold that all steps share, as an interval; `constant`: a factor that does not
    depend on the norm; `least`: the smallest factor, at most."""

    scope: Scope
    steps: tuple[int, ...]
    thresholds: Mapping[float, Interval] = field(default_factory=dict)
    constant: Interval | None = None
    limit: float | None = None
    least: float = 1.0


def scaling(rank: Rank, step: int, tensors: StepTensors) -> Scaling | None:
    """What became of a step's gradients; None where they were not recorded twice."""
    pairs = {}
    for name in rank.parameters:
        before = tensors.gradient(name, "backward")
        after = tensors.gradient(name, "clipped")
        after = tensors.gradient(name, "update") if after is None else after
        if before is not None and after is not None and before.shape == after.shape:
            pairs[name] = (before, after)
    if not pairs or not all(np.isfinite(_wide(before)).all() for before, _ in pairs.values()):
        return None  # nothing to learn of what overflowed
    if all(before.tobytes() == after.tobytes() for before, after in pairs.values()):
        return Scaling(step, rank.rank, "none")
    groups = {name: str(rank.parameters[name].group) for name in pairs}
    ways: tuple[tuple[Scope, Mapping[str, str]], ...] = (
        ("global", dict.fromkeys(pairs, "")), ("group", groups), ("tensor", {n: n for n in pairs}),
    )  # fmt: skip
    each = {name: _factor(*pair) for name, pair in pairs.items()}
    for scope, owner in ways:
        factors = _shared(each, owner)
        if factors is not None:
            norms = {
                part: _norm(pairs[name][0] for name in pairs if owner[name] == part)
                for part in factors
            }
            room = max(_room(after) for _, after in pairs.values())
            return Scaling(step, rank.rank, scope, factors, norms, room=room)
    limit = max(float(np.max(np.abs(after), initial=0.0)) for _, after in pairs.values())
    if all(np.array_equal(np.clip(one, -limit, limit), other) for one, other in pairs.values()):
        return Scaling(step, rank.rank, "value", limit=limit)
    return Scaling(step, rank.rank, "other")


def scalings(run: Run, chosen: Container[int] | None = None) -> tuple[Scaling, ...]:
    """Of all captured steps of all ranks, or of the chosen ones."""
    return tuple(
        one
        for rank in run.ranks
        for step in rank.steps
        if chosen is None or step in chosen
        if (one := scaling(rank, step, rank.tensors(step))) is not None
    )


def shared(a: Sequence[Scaling], b: Sequence[Scaling]) -> tuple[Clipping | None, Clipping | None]:
    """What two runs do in the steps that both captured."""
    both = {(one.step, one.rank) for one in a} & {(one.step, one.rank) for one in b}
    mine, other = ([one for one in side if (one.step, one.rank) in both] for side in (a, b))
    return clipping(mine), clipping(other)


def clipping(found: Sequence[Scaling]) -> Clipping | None:
    """What a run does to its gradients; None where no step tells."""
    if not found:
        return None
    scaled = [one for one in found if one.scope != "none" and (one.clips or not one.unscales)]
    steps = tuple(one.step for one in found)
    if not scaled:
        return Clipping("none", steps)
    widest = max((one.scope for one in scaled), key=_WIDTH.index)
    if widest in ("value", "other"):
        return Clipping(widest, steps, limit=scaled[0].limit)
    factors = [factor for one in scaled for factor in one.factors.values()]
    least = min(high for _, high in factors)
    same = _crossing(factors)
    norms = [norm for one in scaled for norm in one.norms.values()]
    apart = 1 + 4 * max(one.room for one in scaled)
    if same is not None and len(factors) > 1 and max(norms) > min(norms) * apart:
        return Clipping(widest, steps, constant=same, least=least)
    thresholds = {}
    for added in ADDED:
        threshold = _crossing(
            (low * (norm + added) * (1 - one.room), high * (norm + added) * (1 + one.room))
            for one in scaled
            for part in one.clips
            for (low, high), norm in [(one.factors[part], one.norms[part])]
        )
        if threshold is not None:
            thresholds[added] = threshold
    return Clipping(widest, steps, thresholds, least=least)


_WIDTH = ("none", "global", "group", "tensor", "value", "other")


def _room(gradient: Array) -> float:
    """Relative error of a norm that is held in the gradient's own format."""
    return max(_NORM, 2.0 ** (3 - formats.of(gradient).p))


def _factor(before: Array, after: Array) -> Interval:
    """What every element may have been multiplied by; an empty interval where no number is."""
    format = formats.of(after)
    given, got = before.astype(np.float64).reshape(-1), after.astype(np.float64).reshape(-1)
    known = (np.abs(got) >= 2 * format.min_normal) & np.isfinite(given) & np.isfinite(got)
    if not known.any():
        return (-math.inf, math.inf) if not np.any(got[given == 0.0]) else (1.0, 0.0)
    given, got = given[known], got[known]
    room = np.abs(got) * 2.0 ** (1 - format.p)
    with np.errstate(all="ignore"):
        ends = np.sort(np.stack(((got - room) / given, (got + room) / given)), axis=0)
    return float(np.max(ends[0])), float(np.min(ends[1]))


def _unscales(factor: Interval) -> bool:
    """Whether a factor is a power of two below 1, known well enough to tell."""
    low, high = factor
    if not 0.0 < low <= high < 1.0 or high > low * (1 + _NARROW):
        return False
    return low <= 2.0 ** round(math.log2(low)) <= high


def before_unscale(a: Clipping | None, b: Clipping | None) -> tuple[str, int] | None:
    """Which of two runs ("A", "B") seems to clip before a loss scale is taken out, and that scale:
    where one threshold is the other over a power of two."""
    if a is None or b is None:
        return None
    for added in a.thresholds.keys() & b.thresholds.keys():
        one, two = a.thresholds[added], b.thresholds[added]
        for run, (large, small) in (("B", (one, two)), ("A", (two, one))):
            if not 0.0 < small[0] <= small[1] or not large[0] > small[1]:
                continue
            scale = 2.0 ** round(math.log2(large[0] / small[0]))
            if scale >= LEAST_SCALE and large[0] / small[1] <= scale <= large[1] / small[0]:
                return run, int(scale)
    return None


def _shared(each: Mapping[str, Interval], owner: Mapping[str, str]) -> dict[str, Interval] | None:
    parts: dict[str, list[Interval]] = {}
    for name, factor in each.items():
        parts.setdefault(owner[name], []).append(factor)
    crossings = {part: _crossing(factors) for part, factors in parts.items()}
    if any(one is None for one in crossings.values()):
        return None
    return {part: one for part, one in crossings.items() if one is not None}


def _crossing(intervals: Iterable[Interval]) -> Interval | None:
    together = list(intervals)
    if not together:
        return None
    low, high = max(one[0] for one in together), min(one[1] for one in together)
    return (low, high) if low <= high else None


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def _norm(arrays: Iterable[Array]) -> float:
    wide = [array.astype(np.float64).reshape(-1) for array in arrays]
    largest = max((float(np.max(np.abs(one), initial=0.0)) for one in wide), default=0.0)
    if not 0.0 < largest < math.inf:
        return largest
    return largest * math.sqrt(math.fsum(float(np.sum(np.square(one / largest))) for one in wide))
