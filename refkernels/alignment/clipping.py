"""How gradients change between the backward pass and the update: by one factor for all, by one for
each group or tensor, by a clamp, or not at all.

A factor f is known as an interval, since every element is g f within one float of its own format.
Clipping by a norm is recognised by a threshold c = f (n + eps), with n the norm of the scaled
gradients: it must lie in the same interval in every step that clips.

A right kernel's norm of k elements is off by up to k u / 2, by a plain sum in the worst order, and
c is known no better. But many are off by a float or so: where such a norm makes c a number as
people write it, 1 or 0.25, that is the threshold, up to a chance of 2e-5: two digits make 90
numbers in a decade, and in float32 the interval is 5e-7 wide. The eps (1e-6 in torch and OneFlow,
none in Paddle and MindSpore) is taken as known where this holds with one of the two alone in
_ENOUGH clips. That is no proof, since a norm may be off by eps: norms near 2 of 3,000 to 300,000
elements, simulated as plain sums and as sums in 8 or 16 lanes, seemed to have the other eps in 47
of 288 single clips, and in 18 of 960 runs of three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from refkernels.alignment.question import Array
from refkernels.alignment.run import Rank, Run, StepTensors
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64

Interval = tuple[float, float]
Scope = Literal["none", "global", "group", "tensor", "value", "other"]
ADDED = (0.0, 1e-6)  # added to the norm, by the definitions of clipping
_NARROW = 2.0**-8  # relative width: so narrow an interval hardly holds a power of two by chance
_ENOUGH = 3  # clips: one norm may be off by eps
LEAST_SCALE = 16.0  # of a loss: a smaller ratio may be a choice of thresholds
_UNIT = 2.0**-24  # of float32, in which frameworks take a norm of float64 too
_NEAREST = 4.0  # units: a float of the norm, then a rounding of the sum with eps, one of the factor


@dataclass(frozen=True)
class Scaling:
    """A step's gradients: `factors`, `norms` and the norms' numbers of elements, `sizes`, by the
    scaled group or tensor ("" for all); `unit`: that of the norms' format."""

    step: int
    rank: int
    scope: Scope
    factors: Mapping[str, Interval] = field(default_factory=dict)
    norms: Mapping[str, float] = field(default_factory=dict)
    limit: float | None = None  # the bound of a clamp
    unit: float = _UNIT
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def clips(self) -> tuple[str, ...]:
        """The parts that were scaled down, other than by the removal of a loss scale."""
        return tuple(
            name
            for name, factor in self.factors.items()
            if factor[1] < 1.0 and not _unscales(factor)
        )

    @property
    def unscales(self) -> bool:
        """Whether a loss scale was removed, and nothing else done."""
        return bool(self.factors) and all(_unscales(factor) for factor in self.factors.values())


@dataclass(frozen=True)
class Clipping:
    """How a run changes its gradients, over its captured steps. `thresholds`: the threshold that
    all steps share, as an interval, by the eps added to the norm; `constant`: a factor that does
    not depend on the norm; `least`: an upper bound on the smallest factor."""

    scope: Scope
    steps: tuple[int, ...]
    thresholds: Mapping[float, Interval] = field(default_factory=dict)
    constant: Interval | None = None
    limit: float | None = None
    least: float = 1.0


def scaling(rank: Rank, step: int, tensors: StepTensors) -> Scaling | None:
    """How a step's gradients change; None where they were not recorded before and after."""
    pairs = {}
    for name in rank.parameters:
        before = tensors.gradient(name, "backward")
        after = tensors.gradient(name, "clipped")
        after = tensors.gradient(name, "update") if after is None else after
        if before is not None and after is not None and before.shape == after.shape:
            pairs[name] = (before, after)
    if not pairs or not all(np.isfinite(to_float64(before)).all() for before, _ in pairs.values()):
        return None  # overflowed gradients show nothing
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
            sizes = {
                part: sum(pairs[name][0].size for name in pairs if owner[name] == part)
                for part in factors
            }
            unit = max(_UNIT, *(formats.of(after).u for _, after in pairs.values()))
            return Scaling(step, rank.rank, scope, factors, norms, unit=unit, sizes=sizes)
    limit = max(float(np.max(np.abs(after), initial=0.0)) for _, after in pairs.values())
    if all(np.array_equal(np.clip(old, -limit, limit), new) for old, new in pairs.values()):
        return Scaling(step, rank.rank, "value", limit=limit)
    return Scaling(step, rank.rank, "other")


def scalings(run: Run, chosen: Container[int] | None = None) -> tuple[Scaling, ...]:
    """The scalings of all captured steps of all ranks, or of the chosen steps."""
    return tuple(
        step_scaling
        for rank in run.ranks
        for step in rank.steps
        if chosen is None or step in chosen
        if (step_scaling := scaling(rank, step, rank.tensors(step))) is not None
    )


def shared(a: Sequence[Scaling], b: Sequence[Scaling]) -> tuple[Clipping | None, Clipping | None]:
    """How two runs change their gradients in the steps that both captured."""
    shared_steps = {(scaling.step, scaling.rank) for scaling in a} & {
        (scaling.step, scaling.rank) for scaling in b
    }
    shared_a, shared_b = (
        [scaling for scaling in side if (scaling.step, scaling.rank) in shared_steps]
        for side in (a, b)
    )
    return clipping(shared_a), clipping(shared_b)


def clipping(step_scalings: Sequence[Scaling]) -> Clipping | None:
    """How a run changes its gradients; None where no step shows it."""
    if not step_scalings:
        return None
    scaled = [
        step for step in step_scalings if step.scope != "none" and (step.clips or not step.unscales)
    ]
    steps = tuple(step.step for step in step_scalings)
    if not scaled:
        return Clipping("none", steps)
    widest = max((step.scope for step in scaled), key=_WIDTH.index)
    if widest in ("value", "other"):
        return Clipping(widest, steps, limit=scaled[0].limit)
    factors = [factor for step in scaled for factor in step.factors.values()]
    least = min(high for _, high in factors)
    constant = _crossing(factors)
    norms = [norm for step in scaled for norm in step.norms.values()]
    room = 1 + 8 * _NEAREST * max(step.unit for step in scaled)
    if constant is not None and len(factors) > 1 and max(norms) > min(norms) * room:
        return Clipping(widest, steps, constant=constant, least=least)
    nearest = _thresholds(scaled, lambda size: _NEAREST)
    written = {added: ends for added, ends in nearest.items() if _written(ends)}
    if written and sum(len(step.clips) for step in scaled) < _ENOUGH:
        written = nearest
    thresholds = written or _thresholds(scaled, lambda size: 2.0 * _NEAREST + size / 2.0)
    return Clipping(widest, steps, thresholds, least=least)


def _thresholds(scaled: Sequence[Scaling], units: Callable[[int], float]) -> dict[float, Interval]:
    """The threshold that all steps share, by the eps added to the norm; `units`: by how much a norm
    of so many elements may be off."""
    thresholds = {}
    for added in ADDED:
        threshold = _crossing(
            (low * (norm + added) * (1 - room), high * (norm + added) * (1 + room))
            for step in scaled
            for part in step.clips
            for (low, high), norm in [(step.factors[part], step.norms[part])]
            for room in [min(units(step.sizes.get(part, 1)) * step.unit, 1.0)]
        )
        if threshold is not None:
            thresholds[added] = threshold
    return thresholds


def _written(threshold: Interval) -> bool:
    """Whether a number of two digits lies in a threshold's interval."""
    return threshold[0] <= float(f"{sum(threshold) / 2:.1e}") <= threshold[1]


_WIDTH = ("none", "global", "group", "tensor", "value", "other")


def _factor(before: Array, after: Array) -> Interval:
    """The factors that may have multiplied every element; an empty interval where there is none."""
    format = formats.of(after)
    old, new = to_float64(before).reshape(-1), to_float64(after).reshape(-1)
    usable = (np.abs(new) >= 2 * format.min_normal) & np.isfinite(old) & np.isfinite(new)
    if not usable.any():
        return (-math.inf, math.inf) if not np.any(new[old == 0.0]) else (1.0, 0.0)
    old, new = old[usable], new[usable]
    room = np.abs(new) * 2.0 ** (1 - format.p)
    with np.errstate(all="ignore"):
        ends = np.sort(np.stack(((new - room) / old, (new + room) / old)), axis=0)
    return float(np.max(ends[0])), float(np.min(ends[1]))


def _unscales(factor: Interval) -> bool:
    """Whether a factor is a power of two below 1, known closely enough."""
    low, high = factor
    if not 0.0 < low <= high < 1.0 or high > low * (1 + _NARROW):
        return False
    return low <= 2.0 ** round(math.log2(low)) <= high


def before_unscale(a: Clipping | None, b: Clipping | None) -> tuple[str, int] | None:
    """The run ("A" or "B") that seems to clip before the loss scale is removed, and that scale:
    one threshold is then the other over a power of two."""
    if a is None or b is None:
        return None
    for added in a.thresholds.keys() & b.thresholds.keys():
        threshold_a, threshold_b = a.thresholds[added], b.thresholds[added]
        for run, (large, small) in (
            ("B", (threshold_a, threshold_b)),
            ("A", (threshold_b, threshold_a)),
        ):
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
    if any(crossing is None for crossing in crossings.values()):
        return None
    return {part: crossing for part, crossing in crossings.items() if crossing is not None}


def _crossing(intervals: Iterable[Interval]) -> Interval | None:
    listed = list(intervals)
    if not listed:
        return None
    low, high = max(interval[0] for interval in listed), min(interval[1] for interval in listed)
    return (low, high) if low <= high else None


def _norm(arrays: Iterable[Array]) -> float:
    wide = [to_float64(array).reshape(-1) for array in arrays]
    largest = max((float(np.max(np.abs(array), initial=0.0)) for array in wide), default=0.0)
    if not 0.0 < largest < math.inf:
        return largest
    return largest * math.sqrt(
        math.fsum(float(np.sum(np.square(array / largest))) for array in wide)
    )
