"""Measures one unit: the frameworks answer, and each answer is judged."""

import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.frameworks.gateway import Reply
from refkernels.metrology import agreement
from refkernels.metrology.judgement import judge_by
from refkernels.op import Case
from refkernels.ops.kept_questions import questions_kept
from refkernels.records.words import SCHEMA
from refkernels.runs.measurement.dispatcher import AskedUnit, Dispatcher
from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.targets import Target
from refkernels.truth import Truth

Record = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]
Marked = tuple[Target, Arrays, dict[str, int]]
"""A target, its outputs, and a number for the bits of each: equal bits have the same number."""
Judge = Callable[[Unit, Sequence[Target], Sequence[Future[Reply]]], Callable[[], list[Record]]]
"""Starts to judge a unit's answers; returns a function that waits for the records."""


def ask_unit(unit: Unit, dispatcher: Dispatcher, judge: Judge) -> AskedUnit:
    """Ask the targets a case; its records are those of `judged`."""
    inputs, params = _question(unit)
    replies = dispatcher.ask(_answer, unit, inputs, params)
    elements = sum(array.size for array in inputs.values())
    return AskedUnit(unit, elements, judge(unit, dispatcher.targets, replies))


def _question(unit: Unit) -> tuple[Arrays, dict[str, Any]]:
    """Inputs and params; they have the same bits at every call."""
    assert unit.case is not None
    arrays, params = unit.case.build(unit.dtype)
    return {n: arrays[n] for n in unit.op.takes(unit.direction) if n in arrays}, params


def _answer(target: Target, unit: Unit, inputs: Arrays, params: dict[str, Any]) -> Reply:
    return target.run(unit.op.name, unit.direction, inputs, params, unit.op.differentiated)


@questions_kept()  # every part of the truth asks the same
def judged(unit: Unit, targets: Sequence[Target], replies: Iterable[Reply]) -> list[Record]:
    """A measurement for each target and output, and each pair's agreement.

    A target is a framework on a device. No failure of one target affects the records of the others.
    Replies are awaited only after the oracle has answered. What it says of its answer, as that a
    bound is a statistic, is a flag of each measurement.
    """
    assert unit.case is not None
    inputs, params = _question(unit)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        truth = find_truth(unit, inputs, params)
    said = sorted({w.category.flag for w in told if hasattr(w.category, "flag")})
    for other in (w for w in told if not hasattr(w.category, "flag")):
        warnings.showwarning(other.message, other.category, other.filename, other.lineno)
    records: list[Record] = []
    answers: list[Marked] = []
    numbers: dict[tuple[Any, ...], int] = {}
    judgements: dict[int, Record] = {}
    for target, reply in zip(targets, replies, strict=True):
        outputs = unit.op.widened(reply.outputs or {})
        status, reason = _accept(unit, reply, outputs, truth.reference)
        head = _head(unit, unit.case, target, inputs, params)
        if status != "ok":
            start = {} if reply.started else {"started": False}
            records.append({**head, "output": None, "status": status, "reason": reason, **start})
            continue
        marks = {
            name: numbers.setdefault((name, got.dtype.name, got.tobytes()), len(numbers))
            for name, got in outputs.items()
        }
        answers.append((target, outputs, marks))
        timing = {"framework": reply.seconds, "oracle": truth.seconds}
        for output in (name for name in truth.reference if name in outputs):
            if (mark := marks[output]) not in judgements:
                judgements[mark] = _judge(unit, output, outputs[output], truth)
            ok = {"output": output, "status": "ok", "reason": None}
            sources = {"oracle": {"tiers": dict(truth.tiers)}, "seconds": timing}
            record = {**head, **ok, **judgements[mark], **sources}
            records.append({**record, "flags": [*record["flags"], *said]})
    return records + _agreements(unit, unit.case, answers)


def find_truth(unit: Unit, inputs: Arrays, params: dict[str, Any]) -> Truth:
    """The certified answer, with every rounding to the unit's dtype decided, and everything else
    that judging needs. It is computed now: in the run's own process, while the frameworks work."""
    return Truth(unit.op, unit.direction, inputs, params, formats.get(unit.dtype)).complete()


def _judge(unit: Unit, output: str, got: npt.NDArray[Any], truth: Truth) -> Record:
    format = formats.get(unit.dtype)
    if formats.of(got).p < format.p:  # a statistic stored narrower than the inputs: exact to widen
        got = got.astype(format.storage)
    return judge_by(truth, output, got)


def _accept(
    unit: Unit, reply: Reply, outputs: Arrays, reference: Mapping[str, Enclosure]
) -> tuple[str, str | None]:
    """The reply's status after a check of the outputs' names, shapes and dtypes."""
    if reply.status != "ok":
        return reply.status, reply.reason
    first = unit.op.names(unit.direction)[0]
    if first not in outputs:
        return "error", f"The adapter answered without {first!r}."
    for name, got in outputs.items():
        if name not in reference:
            return "error", f"The adapter answered {name!r}, which {unit.op.name} does not have."
        if got.shape != reference[name].shape:
            wanted = reference[name].shape
            return "wrong_shape", f"{name} has shape {got.shape} where {wanted} is right."
        if name == first and unit.op.of_one_format and formats.of(got).name != unit.dtype:
            return "error", f"{name} is {got.dtype} where the inputs are {unit.dtype}."
    return "ok", None


def _head(unit: Unit, case: Case, target: Target, inputs: Arrays, params: dict[str, Any]) -> Record:
    return {
        **target.head("measurement", unit.op.name, unit.direction, unit.dtype),
        "case": {
            "name": case.name,
            "regime": case.regime,
            "parameters": dict(case.parameters),
            "seed": case.seed,
            "shapes": {name: list(array.shape) for name, array in inputs.items()},
            "params": params,
        },
        "settings": target.settings,
        "environment": target.environment,
        "formula": target.formulas.get(unit.op.name),
    }


def _agreements(unit: Unit, case: Case, answers: Sequence[Marked]) -> list[Record]:
    records: list[Record] = []
    compared: dict[tuple[int, int], Record] = {}
    for (target_a, a, marks_a), (target_b, b, marks_b) in itertools.combinations(answers, 2):
        for output in a:
            if output not in b or a[output].dtype != b[output].dtype:
                continue
            pair = marks_a[output], marks_b[output]
            if pair not in compared:
                compared[pair] = agreement(a[output], b[output])
            records.append(
                {
                    "schema": SCHEMA,
                    "kind": "agreement",
                    "op": unit.op.name,
                    "direction": unit.direction,
                    "output": output,
                    "dtype": unit.dtype,
                    "device": target_a.device if target_a.device == target_b.device else "mixed",
                    "case": case.name,
                    "regime": case.regime,
                    "a": target_a.label(unit.op.name),
                    "b": target_b.label(unit.op.name),
                    **compared[pair],
                }
            )
    return records
