"""An alignment as a record: strict JSON, from which every view is made."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from refkernels.alignment.local import LocalJudgement, LocalTruth
from refkernels.alignment.run import Run
from refkernels.records.codec import storable
from refkernels.records.words import SCHEMA


def of(alignment: Any) -> dict[str, Any]:
    """The record of an `Alignment`."""
    verdict = alignment.verdict
    fields = {
        "schema": SCHEMA,
        "kind": "alignment",
        "runs": [_run(run) for run in alignment.runs],
        "verdict": {
            "word": verdict.word,
            "suspects": [asdict(item) for item in verdict.suspects],
            "reasons": [asdict(item) for item in verdict.reasons],
        },
        "differences": [asdict(item) for item in alignment.differences],
        "local": [_local(item) for item in alignment.local],
        "clips": [None if item is None else asdict(item) for item in alignment.clips],
        "curve": None if alignment.curve is None else asdict(alignment.curve),
        "noise": None if alignment.noise is None else asdict(alignment.noise),
        "band": [list(item) for item in alignment.band],
        "losses": [[[line.step, line.loss] for line in run.first.lines] for run in alignment.runs],
        "matched": None if alignment.matched is None else asdict(alignment.matched),
        "calls": None if alignment.traced is None else asdict(alignment.traced),
        "null_directions": [list(item) for item in alignment.null_directions],
        "remarks": list(alignment.remarks),
    }
    return dict(storable(fields))


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


def _local(local: LocalTruth) -> dict[str, Any]:
    """Every op with its worst figures, and each judgement that is not ordinary rounding."""
    table: dict[tuple[str, str, str], list[LocalJudgement]] = {}
    for judgement in local.judgements:
        key = judgement.type, judgement.op, judgement.place.stage
        table.setdefault(key, []).append(judgement)
    rows = []
    for (kind, op, stage), group in table.items():
        sound = [one for one in group if one.attributed and not one.wrong]
        wrong = [one for one in group if one.wrong]
        rows.append({
            "type": kind, "op": op, "stage": stage, "outputs": len(group),
            "elements": sum(one.elements for one in group),
            "over_bound": max((one.over_bound for one in group if one.attributed), default=0.0),
            "over_plain": max(one.over_plain for one in group),
            "wrong": sum(not (one.negligible or one.declared) for one in wrong),
            "negligible": sum(one.negligible for one in wrong),
            "unattributed": sum(not one.attributed for one in group),
            "unusual": sum(one.unusual for one in sound),
            "one_sided": sum(one.one_sided for one in sound),
        })  # fmt: skip
    return {
        "ops": rows,
        "layers": _layers(local),
        "judged": len(local.judgements),
        "unordinary": [one.to_dict() for one in local.judgements if not one.ordinary],
        "unjudged": [asdict(unjudged) for unjudged in local.unjudged],
        "not_captured": list(local.not_captured),
    }


def _layers(local: LocalTruth) -> list[dict[str, Any]]:
    """Every layer and pass at its worst step, in the order of the run."""
    table: dict[tuple[str, str], list[LocalJudgement]] = {}
    for judgement in local.judgements:
        table.setdefault((judgement.place.name, judgement.place.stage), []).append(judgement)
    rows = []
    for (name, stage), group in table.items():
        worst = max(group, key=lambda one: (one.wrong, one.cause is not None, one.over_bound))
        rows.append({
            "name": name, "stage": stage, "type": worst.type, "step": worst.place.step,
            "over_bound": worst.over_bound, "wrong": sum(one.wrong for one in group),
            "cause": worst.cause, "confidence": worst.confidence, "details": worst.details,
        })  # fmt: skip
    return rows
