"""Explains a report's symptoms while the frameworks and the judges still run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from refkernels.target_names import framework_of

if TYPE_CHECKING:
    from refkernels.op import Direction, Op

Record = dict[str, Any]
_AHEAD = 16  # explanations that are started before the first one is awaited
_Question = tuple[str, str, str, "Direction"]  # an op, a case, a format, a direction
_OTHERS = 1  # other cases of the same target, op and format that have to agree


def explain_symptoms(
    records: list[Record],
    targets: Sequence[Any],
    call: Callable[..., Callable[[], Record]] = partial,
    tell: Callable[[str], None] = lambda _: None,
    every: bool = False,
) -> Iterator[Record]:
    """An explanation record for each symptom on a card: its target runs the example again, and the
    answer is explained. Symptoms with one cause are then joined, others move up onto the cards, and
    these are explained next. With `every`, those that no card shows unfolded follow.

    `targets`: those of the run (`runs.measurement.targets.Target`); `call(function, *arguments)`
    starts an explanation, perhaps in another process, and returns a function that waits for it;
    `tell` is called with a line that names the example whose explanation is awaited."""
    from refkernels.reporting.measure.study import Study

    known_records = list(records)
    while chosen := _chosen(study := Study.of(known_records), every):
        started: deque[tuple[Any, Callable[[], Record]]] = deque()
        ahead = iter(chosen)
        for number in range(1, len(chosen) + 1):
            started += [
                (example_ahead, _start(example_ahead, _others(example_ahead, study), targets, call))
                for example_ahead in islice(ahead, _AHEAD - len(started))
            ]
            example, result = started.popleft()
            question = f"{example.subject} {example.op} {example.direction} {example.dtype}"
            tell(f"explaining {number} of {len(chosen)}: {question}")
            record = {**_head(example), **_guarded(result)}
            known_records.append(record)
            yield record


def _chosen(study: Any, every: bool) -> list[Any]:
    """What to explain next: the symptoms on the cards before all others."""
    from refkernels.reporting.measure.symptoms import worth_explaining

    return worth_explaining(study) or (worth_explaining(study, every=True) if every else [])


def _head(example: Any) -> Record:
    fields = ("framework", "version", "device", "dtype", "settings", "formula")
    head = {name: example.record.get(name) for name in fields}
    head = {"schema": example.record["schema"], "kind": "explanation", **head}
    return head | {
        "op": example.op, "direction": example.direction, "case": example.case, "cause": None
    }  # fmt: skip


def _others(example: Any, study: Any) -> list[Any]:
    """Measurements of other cases that are beyond rounding too, on inputs of the same kind."""
    from refkernels.reporting.measure.inputs import input_of
    from refkernels.reporting.measure.symptoms import beyond_rounding

    names = ("subject", "op", "direction", "dtype", "output")
    alike = {
        m.case: m
        for m in study.measurements
        if all(getattr(m, name) == getattr(example, name) for name in names)
        and m.case != example.case
        and beyond_rounding(m)
        and input_of(m) is input_of(example)
    }
    return list(alike.values())[:_OTHERS]


def _start(
    example: Any, others: list[Any], targets: Sequence[Any], call: Callable[..., Any]
) -> Callable[[], Record]:
    """Ask the example's target again, and start the explanation of its answers."""
    place = (example.record["framework"], example.device)
    try:
        target = next(target for target in targets if (target.framework, target.device) == place)
        answers: list[tuple[_Question, Record]] = []
        for m in (example, *others):
            question = (m.op, m.case, m.dtype, m.direction)
            op, inputs, params = _question(*question)
            reply = target.run(op.name, m.direction, inputs, params, op.differentiated)
            if reply.ok:
                answers.append((question, reply.outputs))
            elif m is example:
                return partial(dict, status=reply.status, reason=reply.reason)
        environment = {**target.session.info["environment"], "device": target.device}
        environment["settings"] = target.settings
        source = target.session.spec.framework.source()
    except Exception as fault:  # no fault of any kind may lose the measured run
        return partial(_failed, fault)
    name = framework_of(target.framework)
    return call(_explained, answers, name, source, environment)


def _guarded(result: Callable[[], Record]) -> Record:
    """The explanation, or why there is none: no fault of any kind may lose the measured run."""
    try:
        return result()
    except Exception as fault:
        return _failed(fault)


def _failed(fault: Exception) -> Record:
    return {"status": "error", "reason": f"{type(fault).__name__}: {fault}"}


def _question(name: str, case: str, dtype: str, direction: Direction) -> tuple[Op, Record, Record]:
    """The op, the inputs and the params of a case."""
    from refkernels import registry

    op = registry.get(name)
    chosen = next(candidate for candidate in op.cases() if candidate.name == case)
    arrays, params = chosen.build(dtype)
    return op, {key: arrays[key] for key in op.takes(direction) if key in arrays}, params


def _explained(
    answers: list[tuple[_Question, Record]],
    framework: str,
    source: str,
    environment: Record,
) -> Record:
    """The explanation of a framework's first answer, as far as its answers to the other questions
    allow it, with the script made from its adapter's source."""
    from refkernels.diagnosis import several_cases

    try:
        (op, _, _, direction), _ = answers[0]
        asked = ((*_question(*question)[1:], outputs) for question, outputs in answers)
        cases = [(inputs, outputs, params) for inputs, params, outputs in asked]
        explanation = several_cases.jointly(op, direction, cases)
        shown = _shown(explanation.to_dict(), framework, source, environment)
    except Exception as fault:
        return _failed(fault)
    return {"status": "ok", "reason": None, **shown}


def _shown(answer: Record, framework: str, source: str, environment: Record) -> Record:
    """The part of an explanation that a report shows: its best candidate, and the script."""
    from refkernels.reporting.answer.facts import kernels_of
    from refkernels.reporting.answer.script import script

    (kernel,) = kernels_of(answer)
    question, best = answer["evidence"]["question"], kernel.best
    has_inputs = question["inputs"] is not None
    text = script(question, framework, source, environment) if has_inputs else None
    shown = {
        "output": kernel.output,
        "verdict": kernel.verdict,
        "tried": kernel.tried,
        "script": text,
    }
    if best is None:
        return shown
    shown |= {name: best[name] for name in ("cause", "confidence", "model", "details", "output")}
    shown["among"] = len(kernel.models) > 1
    if best["bits"] is not None:
        names = ("cause", "bits", "units", "confidence", "needed", "survivors")
        shown["evidence"] = {name: best[name] for name in names}
    return shown
