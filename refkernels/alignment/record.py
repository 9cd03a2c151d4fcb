"""An alignment as a record: strict JSON, of which every view is made."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from refkernels.alignment.clipping import Clipping, before_unscale
from refkernels.alignment.comparison import Departure
from refkernels.alignment.differences import RunDifference
from refkernels.alignment.local import Judgement, LocalTruth
from refkernels.alignment.run import Run
from refkernels.alignment.verdict import Suspect
from refkernels.records.codec import storable
from refkernels.records.words import SCHEMA


def of(alignment: Any) -> dict[str, Any]:
    """The record of an `Alignment`."""
    verdict = alignment.verdict
    told = {
        "schema": SCHEMA,
        "kind": "alignment",
        "runs": [_run(run) for run in alignment.runs],
        "verdict": {
            "word": verdict.word,
            "suspects": [_suspect(one) for one in verdict.suspects],
            "reasons": [asdict(one) for one in verdict.reasons],
        },
        "differences": [asdict(one) for one in alignment.differences],
        "local": [_local(one) for one in alignment.local],
        "clips": [_clip(one) for one in alignment.clips],
        "curve": None if alignment.curve is None else asdict(alignment.curve),
        "noise": None if alignment.noise is None else asdict(alignment.noise),
        "band": [list(one) for one in alignment.band],
        "losses": [[[line.step, line.loss] for line in run.first.lines] for run in alignment.runs],
        "matched": _matched(alignment.matched),
        "null_directions": [list(one) for one in alignment.null_directions],
        "remarks": list(alignment.remarks),
    }
    return dict(storable(told))


def _run(run: Run) -> dict[str, Any]:
    first = run.first
    return {
        "name": run.folder.name,
        "framework": first.framework,
        "version": first.versions.get(first.framework, ""),
        "model": first.model,
        "optimizer": first.optimizer.type if first.optimizer else None,
        "ranks": len(run.ranks),
        "world_size": first.world_size,
        "steps": len(first.lines),
        "captured": list(first.steps),
        "complete": first.complete,
    }


def _suspect(one: Suspect) -> dict[str, Any]:
    told: dict[str, Any] = {
        "step": one.step, "topic": one.topic, "where": one.where, "run": one.run,
        "places": one.places,
    }  # fmt: skip
    if isinstance(one.source, RunDifference):
        return {**told, "source": "difference", **asdict(one.source)}
    if isinstance(one.source, Judgement):
        return {**told, "source": "judgement", "judgement": _judgement(one.source)}
    if isinstance(one.source, Departure):
        return {**told, "source": "departure", **asdict(one.source)}
    early = before_unscale(*one.source)
    return {
        **told, "source": "clip", "clips": [_clip(side) for side in one.source],
        "before_unscale": None if early is None else {"run": early[0], "scale": early[1]},
    }  # fmt: skip


def _judgement(one: Judgement) -> dict[str, Any]:
    return {
        **{name: value for name, value in asdict(one).items() if name != "place"},
        **asdict(one.place),
        "wrong": one.wrong,
        "redefined": one.redefined,
    }


def _local(local: LocalTruth) -> dict[str, Any]:
    """Every op with its worst figure; each judgement that is not ordinary rounding."""
    table: dict[tuple[str, str, str], list[Judgement]] = {}
    for one in local.judgements:
        table.setdefault((one.type, one.op, one.place.stage), []).append(one)
    rows = [
        {
            "type": kind,
            "op": op,
            "stage": stage,
            "outputs": len(group),
            "elements": sum(one.elements for one in group),
            "over_bound": max((one.over_bound for one in group if one.attributed), default=0.0),
            "over_plain": max(one.over_plain for one in group),
            "wrong": sum(one.wrong and not (one.negligible or one.declared) for one in group),
            "negligible": sum(one.wrong and one.negligible for one in group),
            "unattributed": sum(not one.attributed for one in group),
            "unusual": sum(one.unusual and one.attributed and not one.wrong for one in group),
            "one_sided": sum(one.one_sided for one in group),
        }
        for (kind, op, stage), group in table.items()
    ]
    return {
        "ops": rows,
        "layers": _layers(local),
        "judged": len(local.judgements),
        "unordinary": [_judgement(one) for one in local.judgements if not one.ordinary],
        "unjudged": [asdict(one) for one in local.unjudged],
        "not_captured": list(local.not_captured),
    }


def _layers(local: LocalTruth) -> list[dict[str, Any]]:
    """Every layer and pass at its worst step, in the order of the run."""
    table: dict[tuple[str, str], list[Judgement]] = {}
    for one in local.judgements:
        table.setdefault((one.place.name, one.place.stage), []).append(one)
    rows = []
    for (name, stage), group in table.items():
        worst = max(group, key=lambda one: (one.wrong, one.cause is not None, one.over_bound))
        rows.append(
            {
                "name": name, "stage": stage, "type": worst.type, "step": worst.place.step,
                "over_bound": worst.over_bound, "wrong": sum(one.wrong for one in group),
                "cause": worst.cause, "confidence": worst.confidence, "details": worst.details,
            }
        )  # fmt: skip
    return rows


def _clip(clip: Clipping | None) -> dict[str, Any] | None:
    if clip is None:
        return None
    thresholds = {f"{added:g}": list(ends) for added, ends in clip.thresholds.items()}
    return {**asdict(clip), "thresholds": thresholds}


def _matched(matched: Any) -> dict[str, Any] | None:
    if matched is None:
        return None
    return {name: dict(value) if hasattr(value, "items") else list(value)
            for name, value in vars(matched).items()}  # fmt: skip
