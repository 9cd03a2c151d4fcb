"""How gradients change between the backward pass and the update: by one factor for all (or for all
but a few), by one for each group or tensor, by a clamp, or not at all.

A factor f is known as an interval, since every element is g f within one float of its own format.
Clipping by a norm n has one threshold c = f n in every step that clips; a division by k parts has
f = 1 / k whatever the norm. A kernel's n loses digits to the order of its sum, and may have 1e-6
added (torch, OneFlow): c is known to _MARGIN. What is added the calls of a step show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from refkernels.alignment.run import Rank, StepTensors
from refkernels.alignment.suspect import Suspect
from refkernels.alignment.tensors import Array, grouped, norm
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64

Interval = tuple[float, float]
Scope = Literal["none", "global", "group", "tensor", "value", "other"]
_NARROW = 2.0**-8  # relative width: an interval this narrow rarely holds a power of two by chance
LEAST_SCALE = 16.0  # of a loss: a smaller ratio may be a choice of thresholds
_MARGIN = 2.0**-10  # relative: what a norm may lose; a factor nearer to 1 may mean no clipping
_CHANGES_OF_SIZE = ("clipping_left_out", "gradient_multiplied")  # of the gradients, by a factor


@dataclass(frozen=True)
class Scaling:
    """How a step scales its gradients, by scaled group or tensor ("" for all). `norms`: those
    before; `received`: the norm of the gradients that the update receives."""

    step: int
    rank: int
    scope: Scope
    factors: Mapping[str, Interval] = field(default_factory=dict)
    norms: Mapping[str, float] = field(default_factory=dict)
    limit: float | None = None  # the bound of a clamp
    received: float = math.nan


@dataclass(frozen=True)
class Clipping:
    """How a run changes its gradients, over its captured steps. `threshold`: that of all steps;
    `constant`: a factor that does not depend on the norm; `divisors`:
    whole numbers that divide all gradients of a step, as parts or a loss scale do; `least`: an
    upper bound on the smallest factor; `received`: the norms that updates receive; `left_out`:
    parameters that the one factor of all others leaves as they are."""

    scope: Scope
    steps: tuple[int, ...]
    threshold: Interval | None = None
    constant: Interval | None = None
    limit: float | None = None
    least: float = 1.0
    received: tuple[float, ...] = ()
    divisors: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()


def scaling(rank: Rank, step: int, tensors: StepTensors) -> Scaling | None:
    """How a step's gradients change; None where they were not recorded before and after."""
    pairs = {}
    for name in rank.parameters:
        before, after = tensors.gradient(name, "backward"), tensors.received(name)
        if before is not None and after is not None and before.shape == after.shape:
            pairs[name] = (before, after)
    if not pairs or not all(np.isfinite(to_float64(before)).all() for before, _ in pairs.values()):
        return None  # overflowed gradients show nothing
    received = math.hypot(*(norm(after) for _, after in pairs.values()))
    kept = {name: name for name, (old, new) in pairs.items() if old.tobytes() == new.tobytes()}
    if len(kept) == len(pairs):
        return Scaling(step, rank.rank, "none", received=received)
    kept = {name: name for name in kept if np.any(pairs[name][0])}
    groups = {name: str(rank.parameters[name].group) for name in pairs}
    scopes: tuple[tuple[Scope, Mapping[str, str]], ...] = (
        ("global", dict.fromkeys(pairs, "")), ("group", groups),
        *([("global", dict.fromkeys(pairs, "") | kept)] if len(pairs) - len(kept) > 1 else ()),
        ("tensor", {n: n for n in pairs}),
    )  # fmt: skip
    tensor_factors = {name: factor_between(*pair) for name, pair in pairs.items()}
    for scope, part_of in scopes:
        parts = grouped(pairs, part_of.__getitem__).items()
        shared = {part: _intersection([tensor_factors[n] for n in names]) for part, names in parts}
        factors = {part: ends for part, ends in shared.items() if ends is not None}
        if len(factors) == len(parts):
            norms = {part: math.hypot(*(norm(pairs[n][0]) for n in names)) for part, names in parts}
            return Scaling(step, rank.rank, scope, factors, norms, None, received)
    limit = max(float(np.max(np.abs(after), initial=0.0)) for _, after in pairs.values())
    clamped = (np.array_equal(np.clip(old, -limit, limit), new) for old, new in pairs.values())
    if all(clamped):
        return Scaling(step, rank.rank, "value", limit=limit, received=received)
    return Scaling(step, rank.rank, "other", received=received)


def shared(a: Sequence[Scaling], b: Sequence[Scaling]) -> tuple[Clipping | None, Clipping | None]:
    """How two runs change their gradients in the steps that both captured."""
    steps_a, steps_b = ({(one.step, one.rank) for one in side} for side in (a, b))
    both = steps_a & steps_b
    a, b = ([one for one in side if (one.step, one.rank) in both] for side in (a, b))
    return clipping(a), clipping(b)


def clipping(step_scalings: Sequence[Scaling]) -> Clipping | None:
    """How a run changes its gradients; None where no step shows it."""
    if not step_scalings:
        return None
    outcome, received = _clipping(step_scalings), tuple(step.received for step in step_scalings)
    kept = [{*step.factors} - {""} for step in step_scalings if "" in step.factors]
    left_out = tuple(sorted(set.intersection(*kept))) if kept else ()
    return replace(outcome, received=received, left_out=left_out)


def _clipping(step_scalings: Sequence[Scaling]) -> Clipping:
    changed = [step for step in step_scalings if step.scope != "none"]
    powers = [[_is_power(_divisor(factor)) for factor in one.factors.values()] for one in changed]
    scaled = [one for one, known in zip(changed, powers, strict=True) if not (known and all(known))]
    steps = tuple(step.step for step in step_scalings)
    if not scaled:
        return Clipping("none", steps, divisors=_divisors(changed))
    widest = max((step.scope for step in scaled), key=get_args(Scope).index)
    if widest in ("value", "other"):
        return Clipping(widest, steps, limit=scaled[0].limit)
    factors = [factor for step in scaled for factor in step.factors.values()]
    least = min(high for _, high in factors)
    constant = _intersection(factors)
    norms = [norm for step in scaled for norm in step.norms.values()]
    divisors = () if constant is None else _divisors(scaled)
    fixed = constant is not None and len(factors) > 1 and max(norms) > min(norms) * (1 + _MARGIN)
    if fixed or divisors:
        return Clipping(widest, steps, constant=constant, least=least, divisors=divisors)
    threshold = _intersection(
        (low * step.norms[part] * (1 - _MARGIN), high * step.norms[part] * (1 + _MARGIN))
        for step in scaled
        for part, (low, high) in step.factors.items()
        if high < 1.0 and not _is_power(_divisor((low, high)))  # which removes a loss scale
    )
    return Clipping(widest, steps, threshold, least=least)


def _divisors(scaled: Sequence[Scaling]) -> tuple[int, ...]:
    """The whole numbers that divide all gradients of each step; none where a step has none."""
    found = {_divisor(factor) for step in scaled for factor in step.factors.values()}
    return tuple(sorted(parts for parts in found if parts)) if None not in found else ()


def _divisor(factor: Interval) -> int | None:
    """The whole number, if any, that a factor divides by: no interval so wide that it holds one by
    chance."""
    low, high = factor
    if not 0.0 < low <= high < 1.0:
        return None
    parts = round(2.0 / (low + high))
    chance = (high / low - 1.0) * (_is_power(parts) or parts)
    return parts if low <= 1.0 / parts <= high and chance <= _NARROW else None


def _is_power(parts: int | None) -> bool:
    """Whether it is a power of two, as a loss scale is."""
    return parts is not None and math.frexp(parts)[0] == 0.5


def factor_between(before: Array, after: Array) -> Interval:
    """The factors that may have multiplied every element; an empty interval where there is none."""
    format = formats.of(after)
    old, new = to_float64(before).reshape(-1), to_float64(after).reshape(-1)
    usable = (np.abs(new) >= 2 * format.min_normal) & np.isfinite(old) & np.isfinite(new)
    if not usable.any():
        largest = float(np.max(np.abs(old[np.isfinite(old)]), initial=0.0))
        most = 4 * format.min_normal / largest if largest else math.inf
        return (-most, most) if not np.any(new[old == 0.0]) else (1.0, 0.0)
    old, new = old[usable], new[usable]
    room = np.abs(new) * 2.0 ** (1 - format.p)
    with np.errstate(all="ignore"):
        ends = np.sort(np.stack(((new - room) / old, (new + room) / old)), axis=0)
    return float(np.max(ends[0])), float(np.min(ends[1]))


def clip_difference(a: Clipping | None, b: Clipping | None) -> Suspect | None:
    """What two runs are known to do differently to their gradients in the steps that both captured;
    None where rounding alone may explain it. Gradients of a multiple of the loss, such as a sum
    over parts, may be divided by that multiple: where the updates receive gradients of equal norm,
    the scalings do not differ."""
    if a is None or b is None or (found := _difference(a, b)) is None:
        return None
    (cause, details), first = found, min(a.steps[0], b.steps[0])
    details |= {"clips": (a, b)}
    difference = Suspect("clip", "gradients", step=first, kind=cause, details=details)
    if cause not in _CHANGES_OF_SIZE:
        return difference
    constants = [clip.constant[0] for clip in (a, b) if clip.constant is not None]
    if any(abs(constant - 1.0) < 2 * _MARGIN for constant in constants):
        return difference  # so near to 1, it is no number of parts
    pairs = zip(*(clip.received for clip in (a, b)), strict=False)
    alike = [math.isclose(*pair, rel_tol=_MARGIN) for pair in pairs]
    return None if alike and all(alike) else difference


def _difference(a: Clipping, b: Clipping) -> tuple[str, dict[str, Any]] | None:
    """The cause, and what belongs to it."""
    if (a.scope, len(a.left_out)) != (b.scope, len(b.left_out)):
        if "none" not in (a.scope, b.scope):
            return "clip_scope", {}
        clipped, unclipped = (b, a) if a.scope == "none" else (a, b)
        limit = clipped.threshold[1] if clipped.threshold else clipped.limit or 0.0
        if (
            max(unclipped.received, default=math.inf) <= limit
            or 1.0 - _MARGIN < min(a.least, b.least) < 1.0
        ):
            return None  # the same clip would change nothing
        constant = a.constant is not None or b.constant is not None
        return "gradient_multiplied" if constant else "clipping_left_out", {}
    if a.limit is not None and b.limit is not None:
        alike = math.isclose(a.limit, b.limit, rel_tol=2.0**-20)
        return None if alike else ("clip_limit", {})
    if a.constant is not None or b.constant is not None:
        both = a.constant is not None and b.constant is not None
        alike = both and _intersection(one for one in (a.constant, b.constant) if one) is not None
        return None if alike else ("gradient_multiplied", {})
    if not a.threshold or not b.threshold or _intersection((a.threshold, b.threshold)):
        return None
    lows = a.threshold[0], b.threshold[0]
    ratio = lows[0] / lows[1] if min(lows) > 0.0 else 1.0
    scale = 2.0 ** abs(round(math.log2(ratio)))
    # Clipped before the loss scale is removed, one threshold is the other over that scale.
    early = scale >= LEAST_SCALE and math.isclose(max(ratio, 1 / ratio), scale, rel_tol=4 * _MARGIN)
    if early:
        return "clip_before_unscale", {"run": "AB"[ratio > 1.0], "scale": int(scale)}
    return "clip_threshold", {}


def _intersection(intervals: Iterable[Interval]) -> Interval | None:
    ends = list(intervals)
    low = max((interval[0] for interval in ends), default=1.0)
    high = min((interval[1] for interval in ends), default=0.0)
    return (low, high) if low <= high else None
