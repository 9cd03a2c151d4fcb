"""Why the cards of a report say what they say: explained while the frameworks still run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Record = dict[str, Any]


def explain_cards(
    records: list[Record], seats: Sequence[Any], tell: Callable[[str], None] = lambda _: None
) -> Iterator[Record]:
    """An explanation record for each symptom on a card: its example is asked again of its seat, and
    explained. Causes that are found join symptoms, so that others move up: these follow.

    `seats`: those of the run (`runs.measurement.seats.Seat`); `tell` gets what is being explained.
    """
    from refkernels.reporting.measure.study import Study
    from refkernels.reporting.measure.symptoms import worth_explaining

    known = list(records)
    while chosen := worth_explaining(Study.of(known)):
        for one in chosen:
            tell(f"explaining {one.subject} {one.op} {one.direction} {one.dtype}")
            record = _explained(one, seats)
            known.append(record)
            yield record


def _explained(one: Any, seats: Sequence[Any]) -> Record:
    """The record of one example; with a status and its reason where there is no explanation."""
    about = ("framework", "version", "device", "dtype", "settings", "formula")
    head = {name: one.record.get(name) for name in about}
    head = {"schema": one.record["schema"], "kind": "explanation", **head}
    head |= {"op": one.op, "direction": one.direction, "case": one.case, "cause": None}
    try:
        return {**head, **_answered(one, seats)}
    except Exception as fault:  # whatever it is, the run that was measured is not lost
        return {**head, "status": "error", "reason": f"{type(fault).__name__}: {fault}"}


def _answered(one: Any, seats: Sequence[Any]) -> Record:
    """What the seat answers now, explained."""
    from refkernels import registry
    from refkernels.diagnosis.explain import explain

    place = (one.record["framework"], one.device)
    seat = next(seat for seat in seats if (seat.framework, seat.device) == place)
    op = registry.get(one.op)
    case = next(case for case in op.cases() if case.name == one.case)
    arrays, params = case.build(one.dtype)
    inputs = {name: arrays[name] for name in op.takes(one.direction) if name in arrays}
    reply = seat.run(op.name, one.direction, inputs, params, op.differentiated)
    if not reply.ok:
        return {"status": reply.status, "reason": reply.reason}
    found = explain(op, inputs, {one.subject: reply.outputs}, params, one.direction)
    return {"status": "ok", "reason": None, **_told(found.to_dict(), seat)}


def _told(answer: Record, seat: Any) -> Record:
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
    told = {
        "output": kernel.output,
        "verdict": kernel.verdict,
        "tried": kernel.tried,
        "script": text,
    }
    if best is None:
        return told
    told |= {name: best[name] for name in ("cause", "confidence", "model", "details", "output")}
    told["among"] = len(kernel.models) > 1
    if best["bits"] is not None:
        names = ("cause", "bits", "units", "confidence", "needed", "survivors")
        told["evidence"] = {name: best[name] for name in names}
    return told
