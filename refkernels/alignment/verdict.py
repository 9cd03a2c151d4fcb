"""Is it the same training? The suspects in order, and the conclusion.

Suspicion follows the order of a training step. The first suspect is the verdict's cause. Its
consequences are not blamed again. An oracle's finding on a layer's own inputs is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from refkernels.alignment.clipping import Clipping, clip_difference
from refkernels.alignment.local import LocalJudgement, LocalTruth
from refkernels.alignment.matching import Matched
from refkernels.alignment.noise import Noise
from refkernels.alignment.suspect import Suspect
from refkernels.alignment.traced import UNEXPLAINED, CallComparison
from refkernels.training.curves import CurveTest, needed

Word = Literal["same", "different", "undecidable"]
LEVEL = 0.005  # the p below which rounding alone is rejected
_NAMED = 5  # how many layers a reason names


@dataclass(frozen=True)
class VerdictReason:
    """Why there is no conclusion: a word, and the details of its sentence."""

    word: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Conclusion:
    """`word`: "same" (one definition, rounding only), "different" (by the first of `suspects`), or
    "undecidable", for `reasons`."""

    word: Word
    suspects: tuple[Suspect, ...] = ()
    reasons: tuple[VerdictReason, ...] = ()

    @property
    def first(self) -> Suspect | None:
        return self.suspects[0] if self.suspects else None


def decide(
    differing: Sequence[Suspect],
    local: tuple[LocalTruth, LocalTruth],
    clips: tuple[Clipping | None, Clipping | None],
    matched: Matched,
    curve: CurveTest | None,
    parted: Suspect | None = None,
    noise: Noise | None = None,
    traced: CallComparison | None = None,
    cut_off: Sequence[VerdictReason] = (),
) -> Conclusion:
    """The verdict on two runs. `clips`: from the steps that both captured. Curves prove nothing
    beside null runs that do not round as the runs do; nor does anything beside steps of one run
    that are `cut_off`."""
    clip_finding = clip_difference(*clips)
    suspects = [one for one in (*differing, clip_finding) if one is not None and one.decisive]
    suspects += _of_one_run(local, matched)
    first = traced is not None and (parted is None or parted.step > traced.step)
    if traced is not None and first and (traced.forward or not (parted or clip_finding)):
        named = {one.where for one in suspects if one.details.get("cause")}
        suspects += [
            one
            for one in traced.differences
            if one.kind != UNEXPLAINED or one.where.split(" (")[0] not in named  # what differs
        ]
    if parted is not None:  # the consequence of any suspect before it
        blamed = any(one.rank <= parted.rank for one in suspects)
        bare = not blamed and parted.details["cause"] is parted.details["factor"] is None
        at_step = bare and traced is not None and traced.step == parted.step
        shown = traced.differences if traced is not None and at_step else ()  # its calls show where
        found = [] if blamed else [parted, *(replace(one, topic=parted.topic) for one in shown)]
        suspects += sorted(found, key=lambda one: one.kind in ("parted", UNEXPLAINED))
    if suspects:
        return Conclusion("different", _sorted(suspects))
    if cut_off:
        reasons = list(cut_off)
    elif noise is not None and noise.invalid:
        reasons = [VerdictReason("noise", {"op": noise.invalid}), *_open_reasons(local, None)]
    elif curve is not None and min(curve.p, curve.p_normal or 1.0) < LEVEL:
        reasons = [VerdictReason("curves")]
    elif curve is not None and curve.extreme:
        reasons = [VerdictReason("few", {"runs": curve.runs, "needed": needed(LEVEL)})]
    else:
        skips = (one for one in differing if one.kind == "skipped")
        reasons = [VerdictReason("skipped", {"step": one.step, **one.details}) for one in skips]
        if traced is not None and curve is None and (traced.same or traced.agreed):
            reasons += [VerdictReason("agreed", traced.agreed)] if traced.agreed else []
            reasons += [one for pair in (local, local[::-1]) for one in _beyond_bound(*pair)][:1]
        else:
            calls = [] if traced is None else list(traced.unseen[:1])
            reasons += [VerdictReason("calls", {"reason": reason}) for reason in calls]
            reasons += _open_reasons(local, curve)
    return Conclusion("undecidable" if reasons else "same", reasons=tuple(reasons))


def decide_alone(local: LocalTruth, cut_off: Sequence[VerdictReason] = ()) -> Conclusion:
    """The verdict on one run: is it its own definition?"""
    redefined = [one for one in local.wrong if one.redefined and not (one.declared or one.users)]
    if suspects := [_suspect(judgement, "A") for judgement in redefined]:
        return Conclusion("different", _sorted(suspects))
    reasons = [*cut_off] or _unseen_reasons(local)
    return Conclusion("undecidable" if reasons else "same", reasons=tuple(reasons))


def _sorted(suspects: list[Suspect]) -> tuple[Suspect, ...]:
    """The suspects in order, with each cause of an op in a run once, where it is first seen."""
    by_key: dict[tuple[object, ...], Suspect] = {}
    for k, suspect in enumerate(sorted(suspects, key=lambda suspect: suspect.rank)):
        key: tuple[object, ...] = (k,)
        if suspect.kind == "judgement":
            key = suspect.run, suspect.topic, suspect.details["op"], suspect.details["cause"]
        first = by_key.get(key)
        by_key[key] = replace(first, places=first.places + 1) if first else suspect
    return tuple(by_key.values())


def _of_one_run(local: tuple[LocalTruth, LocalTruth], matched: Matched) -> list[Suspect]:
    """Findings of an oracle in one run alone: a finding in both does not distinguish them."""
    partner = {**matched.layers, **matched.parameters}
    partners = partner, {name_b: name_a for name_a, name_b in partner.items()}
    found = [{_key(judgement, judgement.place.name) for judgement in side.wrong} for side in local]
    suspects = []
    for index, side in enumerate(local):
        for judgement in side.wrong:
            name = judgement.place.name
            alike = _key(judgement, partners[index].get(name, name)) in found[1 - index]
            if judgement.redefined and not alike:
                suspects.append(_suspect(judgement, "AB"[index]))
    return suspects


def _key(judgement: LocalJudgement, name: str) -> tuple[object, ...]:
    """What the runs may share: the cause in an update's op, elsewhere in the layer `name`."""
    place = judgement.place
    subject = judgement.op if place.stage == "update" else name
    return place.step, place.stage, subject, judgement.cause


def _suspect(judgement: LocalJudgement, run: str) -> Suspect:
    topic = "loss" if judgement.output in ("loss", "dloss") else judgement.place.stage
    details, step = judgement.to_dict(), judgement.place.step
    return Suspect(topic, judgement.worst, "", "", step, True, "judgement", details, run)


def _open_reasons(
    local: tuple[LocalTruth, LocalTruth], curve: CurveTest | None
) -> list[VerdictReason]:
    """The reasons why the absence of suspects does not prove sameness."""
    if curve is not None:
        after = curve.undecidable_after
        saturated = [] if after is None else [VerdictReason("saturated", {"step": after})]
        return [*saturated, *(reason for side in local for reason in _beyond_bound(side))]
    reasons = _unseen_reasons(local[0])
    return reasons + [reason for reason in _unseen_reasons(local[1]) if reason not in reasons]


def _beyond_bound(local: LocalTruth, other: LocalTruth | None = None) -> list[VerdictReason]:
    """An op that breaks its bound without being another definition: no curve can excuse it. Not
    one that the `other` run computes as badly, for a cause that is known."""
    alike = {(one.op, one.cause) for one in other.wrong if one.coarse} if other else ()
    breaking = [j for j in local.wrong if not j.redefined and (j.op, j.cause) not in alike]
    return [
        VerdictReason("beyond", {
            "where": judgement.worst, "op": judgement.op, "cause": judgement.cause,
            "confidence": judgement.confidence, "of_cause": dict(judgement.details),
        })
        for judgement in breaking[:1]
    ]  # fmt: skip


def _unseen_reasons(local: LocalTruth) -> list[VerdictReason]:
    reasons = _beyond_bound(local)
    if any(item.startswith("Its calls are not traced") for item in local.not_captured):
        reasons.append(VerdictReason("compiled"))
    elif not any(judged.place.stage in ("forward", "backward") for judged in local.judgements):
        reasons.append(VerdictReason("nothing"))
    types = [item.type for item in local.unjudged]
    types += [judged.type for judged in local.wrong if judged.users and judged.redefined]
    if types:
        reasons.append(VerdictReason("unjudged", {"types": ", ".join(dict.fromkeys(types))}))
    head = "Functions called in the model outside recorded layers: "
    called = [item.removeprefix(head) for item in local.not_captured if item.startswith(head)]
    if called:
        reasons.append(VerdictReason("functions", {"functions": called[0].rstrip(".")}))
    elif not local.sees_functions:
        reasons.append(VerdictReason("unseen"))
    elif local.unexplained:
        layers = ", ".join(local.unexplained[:_NAMED])
        reasons.append(VerdictReason("gradients", {"layers": layers}))
    return reasons
