"""Is it the same training? What is to be suspected first, and what can be concluded.

Suspicion falls in the order of a training step: data, ranks, initial weights, the model and its
hyper-parameters, forward, backward, clipping, schedule, update. The first of these is the verdict's
cause; what comes after it on the way is not blamed again, but what an oracle found on a layer's own
inputs stands by itself, and is listed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from refkernels.alignment.clipping import Clipping
from refkernels.alignment.comparison import Departure
from refkernels.alignment.curves import CurveTest, needed
from refkernels.alignment.differences import RunDifference
from refkernels.alignment.local import Judgement, LocalTruth
from refkernels.alignment.matching import Matched
from refkernels.alignment.noise import Noise

Word = Literal["same", "different", "undecidable"]
LEVEL = 0.005  # p below which rounding is not believed
_NAMED = 5  # layers in a reason
_MARGIN = 2.0**-10  # a factor nearer to 1 may be one on the other side of the threshold
_TOPICS = (
    "data", "ranks", "weights", "dtype", "model", "layer", "optimizer", "forward", "loss",
    "backward", "gradient", "clip", "schedule", "update",
)  # fmt: skip


@dataclass(frozen=True)
class Suspect:
    """Something that makes two runs different trainings. `run`: "A", "B", or "" for what only the
    comparison shows; `source`: what it was read from; `places`: where the same cause was found, in
    this layer or others, this one included."""

    step: int
    topic: str
    where: str
    run: str
    source: RunDifference | Judgement | Departure | tuple[Clipping | None, Clipping | None]
    places: int = 1

    @property
    def rank(self) -> tuple[int, int]:
        return self.step, _TOPICS.index(self.topic)


@dataclass(frozen=True)
class Reason:
    """Why nothing can be concluded: a word of its own, and what goes into its sentence."""

    word: Literal[
        "curves",
        "saturated",
        "nothing",
        "unjudged",
        "functions",
        "unseen",
        "skipped",
        "few",
        "beyond",
        "gradients",
        "noise",
    ]
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Conclusion:
    """`word`: "same" (one definition, rounding only), "different" (by the first of `suspects`), or
    "undecidable", for `reasons`."""

    word: Word
    suspects: tuple[Suspect, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def first(self) -> Suspect | None:
        return self.suspects[0] if self.suspects else None


def decide(
    found: Sequence[RunDifference],
    local: tuple[LocalTruth, LocalTruth],
    clips: tuple[Clipping | None, Clipping | None],
    matched: Matched,
    curve: CurveTest | None,
    parted: Departure | None = None,
    noise: Noise | None = None,
) -> Conclusion:
    """The verdict on two runs; `clips`: of the steps that both captured. Curves beside null runs
    that do not round as the runs do say nothing."""
    suspects = [Suspect(one.step, one.topic, one.where, "", one) for one in found if one.decisive]
    suspects += _of_one_run(local, matched)
    if clips_differ(*clips):
        step = min(one.steps[0] for one in clips if one is not None)
        suspects.append(Suspect(step, "clip", "gradients", "", clips))
    if parted is not None and not _explained(parted, suspects):
        suspects.append(Suspect(parted.step, parted.stage, parted.where, "", parted))
    if suspects:
        return Conclusion("different", _sorted(suspects))
    if noise is not None and noise.invalid:
        others = _open(local, None)
        return Conclusion("undecidable", reasons=(Reason("noise", {"op": noise.invalid}), *others))
    if curve is not None and min(curve.p, curve.p_normal or 1.0) < LEVEL:
        return Conclusion("undecidable", reasons=(Reason("curves"),))
    if curve is not None and curve.extreme:
        few = {"runs": curve.runs, "needed": needed(LEVEL)}
        return Conclusion("undecidable", reasons=(Reason("few", few),))
    skips = [one for one in found if one.kind == "skipped"]
    reasons = [Reason("skipped", {"step": one.step, **one.details}) for one in skips]
    reasons += _open(local, curve)
    return Conclusion("undecidable" if reasons else "same", reasons=tuple(reasons))


def _explained(parted: Departure, suspects: Sequence[Suspect]) -> bool:
    """Whether what parts follows from what is suspected before it."""
    place = parted.step, _TOPICS.index(parted.stage)
    return any(one.rank <= place for one in suspects)


def decide_alone(local: LocalTruth) -> Conclusion:
    """The verdict on one run: is it its own definition?"""
    suspects = [_suspect(one, "A") for one in local.wrong if one.redefined and not one.declared]
    if suspects:
        return Conclusion("different", _sorted(suspects))
    reasons = _unseen(local)
    return Conclusion("undecidable" if reasons else "same", reasons=tuple(reasons))


def _sorted(suspects: list[Suspect]) -> tuple[Suspect, ...]:
    """In the order of suspicion, each cause of an op in a run once, where it is seen first."""
    kept: dict[tuple[object, ...], Suspect] = {}
    for at, one in enumerate(sorted(suspects, key=lambda one: one.rank)):
        source = one.source
        judged = isinstance(source, Judgement) and (one.run, one.topic, source.op, source.cause)
        key = judged or (at,)
        kept[key] = replace(kept[key], places=kept[key].places + 1) if key in kept else one
    return tuple(kept.values())


def clips_differ(a: Clipping | None, b: Clipping | None) -> bool:
    """Whether two runs do different things to their gradients, as far as is known."""
    if a is None or b is None:
        return False
    if a.scope != b.scope:
        least = min(a.least, b.least)
        return "none" not in (a.scope, b.scope) or not 1.0 - _MARGIN < least < 1.0
    if a.limit is not None and b.limit is not None:
        return not math.isclose(a.limit, b.limit, rel_tol=2.0**-20)
    if (a.constant is None) != (b.constant is None):
        return True
    if a.constant is not None and b.constant is not None:
        return a.constant[0] > b.constant[1] or b.constant[0] > a.constant[1]
    shared = a.thresholds.keys() & b.thresholds.keys()
    if not a.thresholds or not b.thresholds:
        return False
    return not any(
        a.thresholds[one][0] <= b.thresholds[one][1]
        and b.thresholds[one][0] <= a.thresholds[one][1]
        for one in shared
    )


def _of_one_run(local: tuple[LocalTruth, LocalTruth], matched: Matched) -> list[Suspect]:
    """What an oracle found in one run alone: what both do alike tells them not apart."""
    partner = {**matched.layers, **matched.parameters}
    back = {other: one for one, other in partner.items()}
    seen = [
        {(one.place.step, one.place.stage, one.op, one.cause) for one in side.wrong}
        for side in local
    ]
    places = [
        {(one.place.step, one.place.stage, one.place.name, one.cause) for one in side.wrong}
        for side in local
    ]
    suspects = []
    for which, side in enumerate(local):
        for one in side.wrong:
            if not one.redefined:
                continue
            key = one.place.step, one.place.stage
            if one.place.stage == "update":
                alike = (*key, one.op, one.cause) in seen[1 - which]
            else:
                name = one.place.name
                other = partner.get(name, name) if which == 0 else back.get(name, name)
                alike = (*key, other, one.cause) in places[1 - which]
            if not alike:
                suspects.append(_suspect(one, "AB"[which]))
    return suspects


def _suspect(one: Judgement, run: str) -> Suspect:
    topic = "loss" if one.output in ("loss", "dloss") else str(one.place.stage)
    return Suspect(one.place.step, topic, one.worst, run, one)


def _open(local: tuple[LocalTruth, LocalTruth], curve: CurveTest | None) -> list[Reason]:
    """Why nothing found is not yet sameness."""
    if curve is not None:
        after = curve.undecidable_after
        saturated = [] if after is None else [Reason("saturated", {"step": after})]
        return [*saturated, *(reason for side in local for reason in _beyond(side))]
    reasons = []
    for reason in (reason for side in local for reason in _unseen(side)):
        reasons += [] if reason in reasons else [reason]
    return reasons


def _beyond(local: LocalTruth) -> list[Reason]:
    """An op that breaks its bound and is no other definition: no curve makes up for that."""
    found = [one for one in local.wrong if not one.redefined]
    return [
        Reason("beyond", {"where": one.worst, "op": one.op, "cause": one.cause,
                          "confidence": one.confidence, "of_cause": dict(one.details)})
        for one in found[:1]
    ]  # fmt: skip


def _unseen(local: LocalTruth) -> list[Reason]:
    reasons = _beyond(local)
    if not local.judgements:
        reasons.append(Reason("nothing"))
    if local.unjudged:
        types = ", ".join(dict.fromkeys(one.type for one in local.unjudged))
        reasons.append(Reason("unjudged", {"types": types}))
    head = "Functions called in the model outside recorded layers: "
    called = [one.removeprefix(head) for one in local.not_captured if one.startswith(head)]
    if called:
        reasons.append(Reason("functions", {"functions": called[0].rstrip(".")}))
    elif not local.sees_functions:
        reasons.append(Reason("unseen"))
    elif local.unexplained:
        names = ", ".join(local.unexplained[:_NAMED])
        reasons.append(Reason("gradients", {"layers": names}))
    return reasons
