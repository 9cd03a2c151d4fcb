"""Explains the symptoms on a report's cards, while the frameworks still run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Record = dict[str, Any]


def explain_cards(
    records: list[Record], seats: Sequence[Any], tell: Callable[[str], None] = lambda _: None
) -> Iterator[Record]:
    """An explanation record for each symptom on a card: its seat runs the example again, and the
    answer is explained. Symptoms with one cause are joined and others move up: these come next.

    `seats`: those of the run (`runs.measurement.seats.Seat`); `tell` is called with the example
    that is being explained.
    """
    from refkernels.reporting.measure.study import Study
    from refkernels.reporting.measure.symptoms import worth_explaining

    so_far = list(records)
    while chosen := worth_explaining(Study.of(so_far)):
        for example in chosen:
            tell(f"explaining {example.subject} {example.op} {example.direction} {example.dtype}")
            record = _explained(example, seats)
            so_far.append(record)
            yield record


def _explained(example: Any, seats: Sequence[Any]) -> Record:
    """The record of one example; with a status and its reason if there is no explanation."""
    about = ("framework", "version", "device", "dtype", "settings", "formula")
    head = {name: example.record.get(name) for name in about}
    head = {"schema": example.record["schema"], "kind": "explanation", **head}
    head |= {"op": example.op, "direction": example.direction, "case": example.case, "cause": None}
    try:
        return {**head, **_explanation(example, seats)}
    except Exception as fault:  # whatever it is, the measured run is not lost
        return {**head, "status": "error", "reason": f"{type(fault).__name__}: {fault}"}


def _explanation(example: Any, seats: Sequence[Any]) -> Record:
    """The explanation of what the seat answers now."""
    from refkernels import registry
    from refkernels.diagnosis.explain import explain

    place = (example.record["framework"], example.device)
    seat = next(seat for seat in seats if (seat.framework, seat.device) == place)
    op = registry.get(example.op)
    case = next(case for case in op.cases() if case.name == example.case)
    arrays, params = case.build(example.dtype)
    inputs = {name: arrays[name] for name in op.takes(example.direction) if name in arrays}
    reply = seat.run(op.name, example.direction, inputs, params, op.differentiated)
    if not reply.ok:
        return {"status": reply.status, "reason": reply.reason}
    explanation = explain(op, inputs, {example.subject: reply.outputs}, params, example.direction)
    return {"status": "ok", "reason": None, **_summary(explanation.to_dict(), seat)}


def _summary(answer: Record, seat: Any) -> Record:
    """What a report shows of an explanation: its best candidate, and the script."""
    from refkernels.reporting.answer.facts import kernels_of
    from refkernels.reporting.answer.script import script
    from refkernels.seat_names import framework_of

    (kernel,) = kernels_of(answer)
    question, best = answer["evidence"]["question"], kernel.best
    environment = {**seat.session.info["environment"], "device": seat.device}
    text = None
    if question["inputs"] is not None:
        source = seat.session.spec.framework.adapter.read_text("utf-8")
        name = framework_of(seat.framework)
        text = script(question, name, source, {**environment, "settings": seat.settings})
    summary = {
        "output": kernel.output,
        "verdict": kernel.verdict,
        "tried": kernel.tried,
        "script": text,
    }
    if best is None:
        return summary
    summary |= {name: best[name] for name in ("cause", "confidence", "model", "details", "output")}
    summary["among"] = len(kernel.models) > 1
    if best["bits"] is not None:
        names = ("cause", "bits", "units", "confidence", "needed", "survivors")
        summary["evidence"] = {name: best[name] for name in names}
    return summary
