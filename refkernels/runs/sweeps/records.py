"""A sweep's record: the tally in a reader's words, from which every view is made."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from refkernels import registry
from refkernels.arithmetic.formats import Format
from refkernels.records.words import SCHEMA
from refkernels.runs.sweeps import chunk, judging, patterns
from refkernels.runs.sweeps.chunk import SweepQuestion
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import BEYOND, Json, SweepTally

_WRONG = ("special_value_mismatches", "stray_nans")


def head(question: SweepQuestion, description: Mapping[str, Any]) -> Json:
    """The head of every record, whether the sweep succeeded or not."""
    return {
        "schema": SCHEMA,
        "kind": "sweep",
        "op": question.op,
        "direction": "forward",
        "takes": list(registry.get(question.op).inputs),
        "output": registry.get(question.op).outputs[0],
        "framework": question.name,
        "version": description.get("version"),
        "device": question.device,
        "dtype": question.dtype,
        "settings": description.get("environment", {}).get("settings") or dict(question.settings),
        "call": question.call,
    }


def environment(question: SweepQuestion, description: Mapping[str, Any]) -> Json:
    """The environment as a separate record, for the page."""
    environment = {**description["environment"], "framework": question.name}
    return {"schema": SCHEMA, "kind": "environment", **environment}


def failure(question: SweepQuestion, description: Mapping[str, Any]) -> Json:
    """The record of a framework that could not be swept at all."""
    status = {"status": description["status"], "reason": description["reason"]}
    return {**head(question, description), **status}


def record(
    question: SweepQuestion,
    description: Mapping[str, Any],
    tally: SweepTally,
    spans: Sequence[Span],
    failures: Sequence[Json],
    method: Mapping[str, Any],
) -> Json:
    """The record of a sweep (or search, as `method` says) of `spans`."""
    op = registry.get(question.op)
    counts = {name: tally.total(name) for name in judging.COLUMNS}
    worst = _worst(question, tally)
    violated = sum(entry[0] for name, entry in tally.invariants.items() if name != BEYOND)
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
        "ranges": [_ends(span, tally) for span in spans],
        "failures": list(failures),
        "verdict": _verdict(counts, worst, op.limit),
        "counts": counts,
        "distances": _distances(tally),
        "ulp": worst,
        "bound": limit,
        "firsts": {
            name: _point(entry[0], entry[1], tally)
            for name, entry in zip(judging.COLUMNS, tally.firsts.tolist(), strict=True)
            if entry[0] >= 0
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
    """The worst verdict that applies, in the order of `metrology.verdict`."""
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


def _worst(question: SweepQuestion, tally: SweepTally) -> Json:
    """The largest error with its input; empty if no error is defined anywhere."""
    binade = tally.worst_binade()
    if binade is None:
        return {}
    pattern, got = tally.worst_bits[binade].tolist()
    exact = chunk.evaluate(
        registry.get(question.op), np.array([pattern]), SweepTally(tally.format, tally.takes),
        ("rounding", tally.format),
    )  # fmt: skip
    return {
        "max": float(tally.worst[binade, 0]),
        "error": float(tally.worst[binade, 1]),
        "uncertainty": float(tally.worst[:, 2].max()),
        **_point(pattern, got, tally),
        "exact": str(float(np.asarray(exact)[0])),
    }


def _point(pattern: int, got: int, tally: SweepTally) -> Json:
    """The input, or both inputs with a comma between, and the answer."""
    inputs = patterns.parts(pattern, tally.format, tally.takes)
    return {
        side: {
            "hex": _hexadecimal(bits, tally.format),
            "decimal": ", ".join(patterns.printed(value, tally.format) for value in bits),
        }
        for side, bits in (("input", inputs), ("got", [got]))
    }


def _hexadecimal(inputs: Sequence[int], format: Format) -> str:
    return ", ".join(patterns.hexadecimal(pattern, format) for pattern in inputs)


def _ends(span: Span, tally: SweepTally) -> list[str]:
    return [_hexadecimal([end] * tally.takes, tally.format) for end in (span.start, span.stop - 1)]


def _distances(tally: SweepTally) -> dict[str, int]:
    places = np.flatnonzero(tally.distances).tolist()
    return {judging.distance_label(place): int(tally.distances[place]) for place in places}


def _invariants(known: Sequence[Any], tally: SweepTally) -> list[Json]:
    statements = {invariant.name: invariant.statement for invariant in known}
    return [
        {
            "name": name,
            "statement": statements.get(name, ""),
            "violated": number,
            **_point(pattern, got, tally),
        }
        for name, (number, pattern, got) in sorted(tally.invariants.items())
        if name != BEYOND
    ]


def _binades(tally: SweepTally) -> list[Json]:
    """One entry for each binade with inputs: the data of the plots."""
    entries = []
    for row in np.flatnonzero(tally.counts[:, judging.INPUTS]).tolist():
        sign, exponent = patterns.binade_fields(row, tally.format)
        entry: Json = {"sign": sign, "exponent": exponent}
        named = zip(judging.COLUMNS, tally.counts[row].tolist(), strict=True)
        entry.update({name: number for name, number in named if number})
        if tally.worst[row, 0] >= 0.0:
            entry["max"] = float(tally.worst[row, 0])
            inputs = patterns.parts(int(tally.worst_bits[row, 0]), tally.format, tally.takes)
            entry["input"] = _hexadecimal(inputs, tally.format)
        entries.append(entry)
    return entries
