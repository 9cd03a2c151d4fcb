"""An alignment as a record: strict JSON, from which every view is made."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from refkernels.alignment.local import BIASED, LocalTruth
from refkernels.alignment.run import Run
from refkernels.alignment.tensors import grouped
from refkernels.records.codec import storable
from refkernels.records.words import SCHEMA


def of(alignment: Any) -> dict[str, Any]:
    """The record of an `Alignment`."""
    names = ("verdict", "differences", "clips", "curve", "noise", "band", "matched",
             "null_directions")  # fmt: skip
    fields = {
        "schema": SCHEMA,
        "kind": "alignment",
        "runs": [_run(run) for run in alignment.runs],
        **{name: _plain(getattr(alignment, name)) for name in names},
        "local": [_local(item) for item in alignment.local],
        "losses": [[[line.step, line.loss] for line in run.first.lines] for run in alignment.runs],
        "calls": _plain(alignment.traced),
        "remarks": [remark for run in alignment.runs for remark in run.remarks],
    }
    return dict(storable(fields))


def _plain(value: Any) -> Any:
    """A dataclass, or a list of what is in a tuple."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


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
    rows, table = [], grouped(local.judgements, lambda one: (one.type, one.op, one.place.stage))
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
            "one_sided": sum(abs(one.bias) > BIASED for one in sound),
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
    rows, table = [], grouped(local.judgements, lambda one: (one.place.name, one.place.stage))
    for (name, stage), group in table.items():
        worst = max(group, key=lambda one: (one.wrong, one.cause is not None, one.over_bound))
        rows.append({
            "name": name, "stage": stage, "type": worst.type, "step": worst.place.step,
            "over_bound": worst.over_bound, "wrong": sum(one.wrong for one in group),
            "cause": worst.cause, "confidence": worst.confidence, "details": worst.details,
        })  # fmt: skip
    return rows
