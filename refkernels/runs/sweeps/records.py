"""A sweep's record: the tally in the words of a reader, from which every view is made."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.arithmetic.formats import Format
from refkernels.records.words import SCHEMA
from refkernels.runs.sweeps import chunk, judging, patterns
from refkernels.runs.sweeps.chunk import Question
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import BEYOND, Json, Tally

_WRONG = ("special_value_mismatches", "stray_nans")


def head(question: Question, description: Mapping[str, Any]) -> Json:
    """What a record begins with, whatever became of the sweep."""
    return {
        "schema": SCHEMA,
        "kind": "sweep",
        "op": question.op,
        "direction": "forward",
        "output": registry.get(question.op).outputs[0],
        "framework": question.name,
        "version": description.get("version"),
        "device": question.device,
        "dtype": question.dtype,
        "settings": description.get("environment", {}).get("settings") or dict(question.settings),
        "call": question.call,
    }


def environment(question: Question, description: Mapping[str, Any]) -> Json:
    """The environment as a record of its own, for the page."""
    told = {**description["environment"], "framework": question.name}
    return {"schema": SCHEMA, "kind": "environment", **told}


def failure(question: Question, description: Mapping[str, Any]) -> Json:
    """The record of a framework that could not be swept at all."""
    status = {"status": description["status"], "reason": description["reason"]}
    return {**head(question, description), **status}


def record(
    question: Question,
    description: Mapping[str, Any],
    tally: Tally,
    spans: Sequence[Span],
    failures: Sequence[Json],
    method: Mapping[str, Any],
) -> Json:
    """The record of a sweep (or search, as `method` says) of `spans`."""
    op, format = registry.get(question.op), tally.format
    counts = {name: tally.total(name) for name in judging.COLUMNS}
    worst = _worst(question, tally)
    violated = sum(kept[0] for name, kept in tally.invariants.items() if name != BEYOND)
    counts["not_correctly_rounded"] = counts["inputs"] - counts["correct"]
    counts["invariants_violated"] = violated
    counts[BEYOND] = tally.invariants.get(BEYOND, [0])[0]
    status = "ok" if not failures else "incomplete"
    limit = {"limit": op.limit, "source": op.limit_source} if op.limit is not None else {}
    return {
        **head(question, description),
        "status": status,
        "reason": _reason(failures),
        **method,
        "ranges": [_ends(span, format) for span in spans],
        "failures": list(failures),
        "verdict": _verdict(counts, worst, op.limit),
        "counts": counts,
        "distances": _distances(tally),
        "ulp": worst,
        "bound": limit,
        "firsts": {
            name: _pair(kept[0], kept[1], format)
            for name, kept in zip(judging.COLUMNS, tally.firsts.tolist(), strict=True)
            if kept[0] >= 0
        },
        "invariants": _invariants(op.invariants, tally),
        "binades": _binades(tally),
        "tiers": tally.tiers,
        "seconds": tally.seconds,
    }


def _reason(failures: Sequence[Json]) -> str | None:
    if not failures:
        return None
    first = failures[0]
    number = "One chunk" if len(failures) == 1 else f"{len(failures)} chunks"
    return f"{number} of the sweep failed; the first: {first['status']}: {first['reason']}"


def _verdict(counts: Mapping[str, int], worst: Mapping[str, Any], limit: float | None) -> str:
    """The worst that is true of it, in the order of `metrology.verdict`."""
    if any(counts[name] for name in _WRONG):
        return "special_value_mismatch"
    if counts["invariants_violated"]:
        return "invariant_violated"
    if counts["nonzero_at_zero"] or counts[BEYOND]:
        return "exceeds_bound"
    if limit is not None and worst and worst["max"] > limit:
        return "exceeds_bound"
    inexact = ("not_correctly_rounded", "undecided", "signed_zero_mismatches")
    return "rounding" if any(counts[name] for name in inexact) else "correctly_rounded"


def _worst(question: Question, tally: Tally) -> Json:
    """The largest error with its input; empty where no error is defined anywhere."""
    binade = tally.worst_binade()
    if binade is None:
        return {}
    pattern, got = tally.worst_bits[binade].tolist()
    exact = chunk.evaluate(
        registry.get(question.op), np.array([pattern]), Tally(tally.format),
        ("rounding", tally.format),
    )  # fmt: skip
    return {
        "max": float(tally.worst[binade, 0]),
        "error": float(tally.worst[binade, 1]),
        "uncertainty": float(tally.worst[:, 2].max()),
        **_pair(pattern, got, tally.format),
        "exact": str(float(np.asarray(exact)[0])),
    }


def _pair(pattern: int, got: int, format: Format) -> Json:
    return {
        side: {
            "hex": patterns.hexadecimal(bits, format),
            "decimal": patterns.printed(bits, format),
        }
        for side, bits in (("input", pattern), ("got", got))
    }


def _ends(span: Span, format: Format) -> list[str]:
    return [patterns.hexadecimal(span.start, format), patterns.hexadecimal(span.stop - 1, format)]


def _distances(tally: Tally) -> dict[str, int]:
    places = np.flatnonzero(tally.distances).tolist()
    return {judging.distance_label(place): int(tally.distances[place]) for place in places}


def _invariants(known: Sequence[Any], tally: Tally) -> list[Json]:
    statements = {invariant.name: invariant.statement for invariant in known}
    return [
        {
            "name": name,
            "statement": statements.get(name, ""),
            "violated": number,
            **_pair(pattern, got, tally.format),
        }
        for name, (number, pattern, got) in sorted(tally.invariants.items())
        if name != BEYOND
    ]


def _binades(tally: Tally) -> list[Json]:
    """One entry for each binade with inputs: what the plots are drawn from."""
    found = []
    for row in np.flatnonzero(tally.counts[:, judging.INPUTS]).tolist():
        sign, exponent = patterns.binade_fields(row, tally.format)
        entry: Json = {"sign": sign, "exponent": exponent}
        named = zip(judging.COLUMNS, tally.counts[row].tolist(), strict=True)
        entry.update({name: number for name, number in named if number})
        if tally.worst[row, 0] >= 0.0:
            entry["max"] = float(tally.worst[row, 0])
            entry["input"] = patterns.hexadecimal(int(tally.worst_bits[row, 0]), tally.format)
        found.append(entry)
    return found
