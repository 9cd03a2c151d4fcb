"""Does an answer depend on what it must not: the run, the position, the batch, the threads?

`run_to_run` and `threads` compare whole answers over an op's cases; where a unit has some of them,
of equal shapes one. For an elementwise op of floats `run_to_run` also compares the first calls in a
fresh interpreter, which exposes a kernel that tries several numbers of threads before it settles.
`position` moves the rows of one case (rotated by one, and reversed). `batch` computes some of its
rows separately: 64 rows one by one, or, for an elementwise op, pieces shorter than a vector. A row
is what the op computes independently: a row of `a`, an element of sin. All comparisons are of bits;
any NaN equals any NaN. A case that took long is left out; an emulated machine has one interpreter.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.frameworks.gateway import Session
from refkernels.metrology import agreement
from refkernels.op import Case
from refkernels.records.words import PROPERTIES
from refkernels.runs.measurement.dispatcher import AskedUnit, Dispatcher
from refkernels.runs.measurement.plan import Unit
from refkernels.runs.measurement.targets import Target, abandon, close_all
from refkernels.runs.measurement.unanswered import TargetQuestion
from refkernels.runs.measurement.unit import Record
from refkernels.runs.sweeps.pool import usable_cores

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
REGIME = "invariance"
REFUSALS = ("error", "unsupported")  # of one case, such as an eps; a process that dies is a fault
_ALONE = 64  # rows asked for one at a time, spread over the case's rows
_PIECES = 4 * (1, 3, 7, 15)  # elements: too few for vectors of 8 or 16, so the remainder loop runs
_CALLS = 9  # of a kernel that has not been called before; MindSpore's kernels settle after five
_LARGEST_CASE = 1_000_000  # elements of input; larger cases are left out, for speed

Outputs = dict[str, npt.NDArray[Any]]
Question = tuple[Case, dict[str, npt.NDArray[Any]], dict[str, Any]]


class NoAnswer(Exception):
    """The framework gave no answer. Its arguments: status, reason, whether it had started."""


@dataclass
class BitComparison:
    """How many elements were compared, how many differ, and where the first difference is."""

    elements: int = 0
    different: int = 0
    case: str | None = None

    def add(self, case: str, expected: Outputs, actual: Outputs) -> None:
        for name in expected:
            if expected[name].tobytes() == actual[name].tobytes():  # the usual case, and fast
                self.elements += expected[name].size
                continue
            result = agreement(expected[name], actual[name])
            unequal = result["elements"] - result["equal_bits"]
            self.elements += result["elements"]
            self.different += unequal
            if unequal and self.case is None:
                self.case = f"{case}: {name}"


class ThreadedTargets:
    """A target with one thread and with two, each in its own interpreter. Both start at once, on
    first use, or before it where processors are idle, and are kept until `close`."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._sessions: dict[tuple[str, int], Session] = {}
        self._abandoned = False
        self._starting = ThreadPoolExecutor(4)

    def begin(self, targets: Sequence[Target]) -> None:
        """Start the interpreters of these targets, unless others would wait for a processor."""
        needed = sum(2 + (target.device == "cpu") for target in targets)
        for target in targets if needed <= usable_cores() else ():
            if target.session.status == "ok" and not target.emulated:
                self.pair(target)

    def pair(self, target: Target) -> tuple[Target, Target]:
        """The target with 1 and with 2 threads; on a GPU, itself and with 2. Raises NoAnswer if the
        target itself failed to start: another interpreter would only be waited for as long."""
        if target.session.status != "ok":
            raise NoAnswer(target.session.status, target.session.reason, False)
        first = self._target(target, 1) if target.device == "cpu" else target
        return first, self._target(target, 2)

    def abandon(self) -> None:
        """End all interpreters at once, and start no more."""
        self._abandoned = True
        abandon(list(self._sessions.values()))

    def close(self) -> None:
        self._starting.shutdown()
        close_all(self._sessions.values())
        self._sessions.clear()

    def _target(self, target: Target, threads: int) -> Target:
        key = (target.framework, threads)
        if key not in self._sessions:
            settings = {**target.settings, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
            # From the spec, not the name: settings in the name would override the thread count.
            self._sessions[key] = Session(target.session.spec, settings, self._timeout)
            if self._abandoned:
                self._sessions[key].abandon()
            self._starting.submit(self._sessions[key].start)
        return replace(target, session=self._sessions[key])


def ask_invariance(unit: Unit, dispatcher: Dispatcher, threaded: ThreadedTargets) -> AskedUnit:
    """Ask the targets about an op's invariance; its records are one for each target and
    property."""
    questions = list(_questions(unit))
    jobs = dispatcher.ask(_target_records, unit, questions, threaded)
    elements = sum(array.size for _, inputs, _ in questions for array in inputs.values())
    return AskedUnit(unit, elements, lambda: [record for job in jobs for record in job.result()])


def _questions(unit: Unit) -> Iterator[Question]:
    for case in unit.cases or unit.op.cases():
        if unit.dtype not in case.dtypes or unit.direction not in case.directions:
            continue
        arrays, params = case.build(unit.dtype)
        inputs = {name: arrays[name] for name in unit.op.takes(unit.direction) if name in arrays}
        if sum(array.size for array in inputs.values()) <= _LARGEST_CASE:
            yield case, inputs, params


def _target_records(
    target: Target, unit: Unit, questions: Sequence[Question], threaded: ThreadedTargets
) -> list[Record]:
    quick = _quick(unit, target, questions)
    checks: dict[str, Callable[[], BitComparison]] = {
        "run_to_run": lambda: _run_to_run(unit, target, quick, threaded),
        "position": lambda: _position(unit, target, quick),
        "batch": lambda: _batch(unit, target, quick),
        "threads": lambda: _threads(unit, target, quick, threaded),
    }
    if questions and not quick:
        checks = dict.fromkeys(PROPERTIES, _too_slow)
    head = target.head("invariance", unit.op.name, unit.direction, unit.dtype)
    head["formula"] = target.formulas.get(unit.op.name)
    return [{**head, "property": name, **_outcome(checks[name])} for name in PROPERTIES]


def _quick(unit: Unit, target: Target, questions: Sequence[Question]) -> list[Question]:
    """The questions but for those that took the target long."""
    name, direction, unanswered = unit.op.name, unit.direction, target.unanswered
    return [
        (case, inputs, params)
        for case, inputs, params in questions
        if not unanswered.takes_long(TargetQuestion.of(name, direction, inputs, params))
    ]


def _too_slow() -> BitComparison:
    raise NoAnswer("timeout", "every case takes too long to be asked several times", True)


def _outcome(check: Callable[[], BitComparison]) -> Record:
    try:
        comparison = check()
    except NoAnswer as fault:
        status, reason, started = fault.args
        start = {} if started else {"started": False}
        return {"status": status, "reason": reason, "holds": None, **start}
    return {
        "status": "ok",
        "reason": None,
        "holds": comparison.different == 0,
        "elements": comparison.elements,
        "different": comparison.different,
        "case": comparison.case,
    }


def _ask(
    unit: Unit, target: Target, inputs: Mapping[str, npt.NDArray[Any]], params: Mapping[str, Any]
) -> Outputs:
    reply = target.run(unit.op.name, unit.direction, inputs, params, unit.op.differentiated)
    if reply.status != "ok" or reply.outputs is None:
        raise NoAnswer(reply.status, reply.reason, reply.started)
    return dict(reply.outputs)


def _compare(
    unit: Unit, first: Target, second: Target, questions: Sequence[Question]
) -> BitComparison:
    """Ask both targets the cases, of a unit's own one of equal shapes; refused ones are skipped."""
    comparison, answered = BitComparison(), set()
    fault: NoAnswer | None = None
    for case, inputs, params in questions:
        shapes = tuple(array.shape for array in inputs.values())
        if unit.cases and shapes in answered:
            continue
        try:
            expected = _ask(unit, first, inputs, params)
            comparison.add(case.name, expected, _ask(unit, second, inputs, params))
            answered.add(shapes)
        except NoAnswer as refusal:
            if refusal.args[0] not in REFUSALS:
                raise
            fault = refusal
    if fault is not None and not comparison.elements:
        raise fault
    return comparison


def _run_to_run(
    unit: Unit, target: Target, questions: Sequence[Question], threaded: ThreadedTargets
) -> BitComparison:
    comparison = _compare(unit, target, target, questions)
    if unit.op.elementwise and unit.op.of_one_format and not target.emulated:
        _, fresh = threaded.pair(target)
        first, *later = [_ask(unit, fresh, _delicate(unit), {}) for _ in range(_CALLS)]
        for answer in later:
            comparison.add("the first calls in an interpreter", first, answer)
    return comparison


def _threads(
    unit: Unit, target: Target, questions: Sequence[Question], threaded: ThreadedTargets
) -> BitComparison:
    if target.emulated:
        raise NoAnswer("unsupported", "an emulated machine runs one interpreter only", True)
    return _compare(unit, *threaded.pair(target), questions)


def _delicate(unit: Unit) -> dict[str, npt.NDArray[Any]]:
    """Small inputs of both signs, subnormals and numbers around 1: these reveal first that a mode
    flushes subnormals, or that another code path is taken."""
    format = formats.get(unit.dtype)
    tiny = np.ldexp(np.linspace(0.01, 1.9, 32), format.emin)
    values = np.concatenate([tiny, -tiny, np.linspace(-3.0, 3.0, 33)])
    names = unit.op.takes(unit.direction)
    return {name: values.astype(format.storage) for name in names}


def _position(unit: Unit, target: Target, questions: Sequence[Question]) -> BitComparison:
    case, inputs, params = _rows_question(unit, questions)
    whole = _rows_of(unit, _ask(unit, target, inputs, params))
    comparison = BitComparison()
    n = len(inputs[unit.op.row_inputs[0]])
    for order in (np.roll(np.arange(n), 1), np.arange(n)[::-1]):
        answer = _rows_of(unit, _ask(unit, target, _take(unit, inputs, order), params))
        comparison.add(case.name, {name: whole[name][order] for name in whole}, answer)
    return comparison


def _batch(unit: Unit, target: Target, questions: Sequence[Question]) -> BitComparison:
    case, inputs, params = _rows_question(unit, questions)
    whole = _rows_of(unit, _ask(unit, target, inputs, params))
    comparison = BitComparison()
    for rows in _apart(unit, len(inputs[unit.op.row_inputs[0]])):
        answer = _rows_of(unit, _ask(unit, target, _take(unit, inputs, rows), params))
        comparison.add(case.name, {name: whole[name][rows] for name in whole}, answer)
    return comparison


def _apart(unit: Unit, n: int) -> list[npt.NDArray[np.intp]]:
    """The groups of rows, out of n, that are computed separately."""
    if not unit.op.elementwise:
        return [np.array([i]) for i in np.unique(np.linspace(0, n - 1, _ALONE).astype(np.intp))]
    lengths = [min(length, n) for length in _PIECES]
    starts = [k * (n - length) // (len(lengths) - 1) for k, length in enumerate(lengths)]
    return [start + np.arange(length) for start, length in zip(starts, lengths, strict=True)]


def _rows_question(unit: Unit, questions: Sequence[Question]) -> Question:
    question = next((q for q in questions if q[0].regime == REGIME), None)
    if question is None or not unit.op.row_inputs:
        raise NoAnswer("unsupported", "the op has no rows that are computed one by one", True)
    return question


def _take(
    unit: Unit, inputs: Mapping[str, npt.NDArray[Any]], order: npt.NDArray[np.intp]
) -> dict[str, npt.NDArray[Any]]:
    """The inputs with their rows in that order; inputs that all rows share are unchanged."""
    moving = {*unit.op.row_inputs, unit.op.cotangent}
    return {name: a[order] if name in moving else a for name, a in inputs.items()}


def _rows_of(unit: Unit, outputs: Outputs) -> Outputs:
    """The outputs that have a row for each row of the input (dweight, a sum over rows, has not)."""
    by_row = unit.op.outputs if unit.direction == "forward" else unit.op.row_gradients
    return {name: outputs[name] for name in by_row if name in outputs}
