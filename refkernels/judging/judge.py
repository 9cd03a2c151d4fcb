"""judge(): the verdict on a kernel."""

from __future__ import annotations

import contextlib
import functools
import itertools
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from refkernels.arguments import as_text
from refkernels.arithmetic import formats
from refkernels.arithmetic.mode import in_default_mode
from refkernels.frameworks import catalog, emulation, environments, kernels
from refkernels.frameworks.cells import CellReply
from refkernels.frameworks.gateway import is_flag
from refkernels.judging import precision, timing
from refkernels.judging.calls import Protocol
from refkernels.judging.challenges import AXES, Drawer, first_axes
from refkernels.judging.examination import Examinations, KernelExamination
from refkernels.judging.judgement import (
    LOWER,
    NOT_ENOUGH,
    RIGHT,
    UNFAIR,
    WRONG,
    Judgement,
    Reason,
)
from refkernels.judging.running import JudgedKernel
from refkernels.judging.standard import AnswerFault, Challenge
from refkernels.op import Direction, Op
from refkernels.records.words import DTYPES
from refkernels.registry import get
from refkernels.seat_names import SeatNameError, parse, with_setting
from refkernels.suggestion import instead, quoted

LEVELS: Mapping[str, tuple[int, float]] = {
    "quick": (1, 15.0),
    "default": (3, 40.0),
    "full": (6, 240.0),
}
"""For each level: the most rounds of challenges, and the seconds after which no round begins."""
FAMILIES_NEEDED = 4  # that reject every decoy of an output
FAMILIES_LOWER = 3  # in which a kernel of lower precision is refused: one may have another cause
_ACTS = ("writes_inputs", "no_plain_array")  # unfair, whatever the answers are
_VALUES = ("special", "bits", "bound", "invariant")  # faults of numbers, not of arrays
_KILL = int(getattr(signal, "SIGKILL", 9))  # what a machine without memory sends
_KEPT = 40  # refused answers, for the cause
_SMALLEST, _LARGEST = 16, 1 << 14  # elements of an answer whose cause is looked for


@dataclass
class _Findings:
    """The findings so far. `asked`: by family, the number of challenges that were not declined;
    `by_family`, `by_output`: of these, the number that reject every decoy of some output, and of
    this output; `answered`: the challenges with an answer, right or wrong; `refused`: those
    answered wrongly, with answer and fault; `failed`: those without an answer; `stopped`: those
    whose answer the machine may have stopped, for lack of time or memory; `declined`: the families
    of challenges that the kernel declined and may decline; `owed`: challenges that it declined and
    must take; `outputs`: the names of the outputs seen; `definition`: gives answers whose special
    values are right as well."""

    asked: Counter[str] = field(default_factory=Counter)
    by_family: Counter[str] = field(default_factory=Counter)
    by_output: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[Challenge, CellReply, AnswerFault]] = field(default_factory=list)
    failed: list[tuple[Challenge, CellReply]] = field(default_factory=list)
    stopped: list[tuple[Challenge, CellReply]] = field(default_factory=list)
    answered: list[Challenge] = field(default_factory=list)
    declined: list[str] = field(default_factory=list)
    owed: list[tuple[Challenge, CellReply]] = field(default_factory=list)
    outputs: frozenset[str] = frozenset()
    definition: Callable[[Challenge], Mapping[str, Any]] | None = None
    unfair: list[Reason] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        return bool(self.refused or self.failed or self.stopped or self.unfair or self.owed)

    def without_answer(self, challenge: Challenge, reply: CellReply) -> None:
        """Count a reply without arrays: a challenge that was declined, or one that failed or was
        stopped."""
        if reply.status == "unsupported" and challenge.owed:
            self.owed.append((challenge, reply))
        elif reply.status in ("error", "unsupported") and not challenge.owed:
            self.declined.append(challenge.family)
        else:
            self.asked[challenge.family] += 1
            by_machine = reply.status in ("timeout", "oom") or reply.signal == _KILL
            (self.stopped if by_machine else self.failed).append((challenge, reply))

    def fault(
        self, challenge: Challenge, reply: CellReply, decisive: Sequence[str]
    ) -> AnswerFault | None:
        """Count an answer; return its fault. `decisive`: the outputs for which its challenge
        rejects every decoy."""
        self.asked[challenge.family] += 1
        self.by_family[challenge.family] += bool(decisive)
        self.by_output.update({name for name in decisive if name in reply.outputs})
        self.answered.append(challenge)
        fault = challenge.fault(reply.outputs, self.outputs)
        if fault is not None and fault.kind == "special" and self.definition is not None:
            fault = challenge.fault(reply.outputs, self.outputs, self.definition(challenge))
            self.flags += [] if fault else ["special_as_defined"]
        self.outputs = self.outputs.union(reply.outputs)
        if fault and len(self.refused) < _KEPT:
            self.refused.append((challenge, reply, fault))
        return fault


@in_default_mode
@np.errstate(all="ignore")
def judge(
    kernel: str,
    op: str | Op | None = None,
    *,
    dtype: str = "float32",
    level: str = "default",
    seed: int | None = None,
    lengths: Mapping[str, Sequence[int]] | None = None,
    device: str = "cpu",
    causes: bool = True,
    times: bool = False,
    mutants: bool = True,
    examinations: Examinations | None = None,
    definition: str | None = None,
) -> Judgement:
    """Judge a kernel: FILE.py:FUNCTION, or FILE.so:SYMBOL with its abi.

    op          its op, if the function's name does not name it
    dtype       of the floating inputs
    level       "quick", "default" (up to a minute) or "full"
    seed        of all random inputs; by default one that is secret until the judgement has it
    lengths     by letter of the op's signature, the only lengths that the kernel supports; the
                judgement names them
    causes      whether `explain` is asked about a wrong answer
    times       whether a kernel that is right so far is timed, on calls that are judged too
    mutants     whether it is counted how many wrong kernels these inputs refuse; no verdict depends
                on it
    examinations  those of other kernels, whose truths are reused for the same seed
    definition  the name of another kernel: what it gives for NaN and infinities is right besides
                what the op gives

    Raises ValueError for an unknown op, dtype, level or letter, TypeError for a dtype or level that
    is not a string, FrameworkError for a kernel that cannot be run at all; each is one sentence.
    """
    start = time.monotonic()
    dtype, level = as_text(dtype, "dtype"), as_text(level, "level")
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {quoted(dtype)}: {instead(dtype, DTYPES)}.")
    if level not in LEVELS:
        raise ValueError(f"There is no level {quoted(level)}: {instead(level, LEVELS)}.")
    try:
        name = parse(kernel)
    except SeatNameError as error:
        raise catalog.FrameworkError(str(error)) from None
    if op is not None and name.kernel is not None:
        name = with_setting(name, "op", get(op).name)
    spec, seat = catalog.seat(str(name))
    if spec.framework.kernel is None:
        raise catalog.FrameworkError(f"{kernel} is not a kernel: write FILE.py:FUNCTION")
    if emulation.SETTING in dict(seat.settings):
        raise catalog.FrameworkError(
            f"{kernel}: judge asks a kernel thousands of times, on this machine only: leave "
            "machine= out, or measure it there"
        )
    settings = {key: value for key, value in seat.settings if key not in kernels.SETTINGS}
    if flags := [key for key in settings if is_flag(key)]:
        raise catalog.FrameworkError(
            f"{kernel}: {flags[0]} is a flag of a framework's adapter, which a judged kernel runs "
            "without: leave it out, or set an environment variable, whose name is in upper case"
        )
    record = get(str(spec.framework.kernel["op"])) if not isinstance(op, Op) else op
    direction: Direction = spec.framework.kernel["direction"]
    drawn_seed = secrets.randbits(48) if seed is None else seed
    time_taken: Mapping[str, Any] | None = None
    interpreter = environments.find(spec)
    with (
        JudgedKernel(
            spec.framework, interpreter, seat.device or device, environment=settings
        ) as running,
        contextlib.ExitStack() as stack,
    ):
        shared = examinations or Examinations()
        examination = _examination(running, shared, record, direction, dtype, drawn_seed, lengths)
        findings = _Findings(definition=_answers(definition, stack) if definition else None)
        _protocol(running, examination, findings)
        rounds, limit = LEVELS[level]
        for number in range(rounds):
            if number and (findings.wrong or time.monotonic() - start > limit):
                break
            _ask(running, examination, number, findings, start + 2.0 * limit)
        if times and not (findings.wrong or running.hung):
            time_taken = _timed(running, examination, findings)
        flags = [*findings.flags, *([] if running.guarded else ["unguarded"])]
        if running.outside:
            findings.unfair.clear()
    verdict, reasons = _verdict(findings, record, direction, running)
    shown = examination.shown(findings.answered) if mutants and verdict == RIGHT else None
    axes = (
        examination.drawer.axes
        if examination.drawer.ranked and examination.drawer.axes != AXES
        else frozenset[int]()
    )
    result = Judgement(
        kernel, record.name, direction, dtype, verdict, drawn_seed, level, tuple(reasons),
        {f: (asked, findings.by_family[f]) for f, asked in findings.asked.items()},
        () if shown is None else shown.killed, () if shown is None else shown.alive,
        {n: ulp for n, ulp in (shown.smallest if shown else {}).items() if n in findings.outputs},
        max((max(a.shape, default=1) for c in findings.answered for a in c.floats.values()),
            default=0),
        tuple(dict.fromkeys(findings.declined)),
        {letter: tuple(values) for letter, values in (lengths or {}).items()},
        tuple(sorted(examination.drawer.left_out)),
        tuple(sorted(axes)),
        tuple(dict.fromkeys(flags)), time=time_taken if verdict == RIGHT else None,
    )  # fmt: skip
    if causes and verdict in (WRONG, UNFAIR):
        result = replace(result, cause=_cause(findings))
    return replace(result, seconds=round(time.monotonic() - start, 2))


def _answers(kernel: str, stack: contextlib.ExitStack) -> Callable[[Challenge], Mapping[str, Any]]:
    """Asks another kernel, whose process is started by the first question."""

    @functools.cache
    def running() -> JudgedKernel:
        spec, seat = catalog.seat(kernel)
        started = JudgedKernel(spec.framework, environments.find(spec), seat.device or "cpu")
        return stack.enter_context(started)

    return lambda challenge: running().answer(challenge).outputs


def _examination(
    running: JudgedKernel,
    shared: Examinations,
    op: Op,
    direction: Direction,
    dtype: str,
    seed: int,
    lengths: Mapping[str, Sequence[int]] | None,
) -> KernelExamination:
    """The examination with the optional inputs and the numbers of leading axes that the kernel
    takes, that is, with which it raises no exception."""
    whole = shared.of(op, direction, dtype, seed, lengths=lengths)
    letters = {x for argument in whole.drawer.roles.arguments.values() for x in argument.own}
    if unknown := [letter for letter in lengths or {} if letter not in letters]:
        raise ValueError(
            f"{op.name} has no letter {quoted(unknown[0])}: {instead(unknown[0], letters)}."
        )
    optional = [name for name in op.optional if name in whole.drawer.roles.arguments]
    for number in range(len(optional) + 1):
        for left_out in itertools.combinations(optional, number):
            part = shared.of(op, direction, dtype, seed, frozenset(left_out), lengths)
            rng = np.random.default_rng([seed, 1 << 21])
            if (axes := _axes_taken(running, part.drawer, rng)) or running.hung:
                return shared.of(
                    op, direction, dtype, seed, frozenset(left_out), lengths, axes or AXES
                )
    return whole


def _axes_taken(running: JudgedKernel, drawer: Drawer, rng: np.random.Generator) -> frozenset[int]:
    """The numbers of leading axes with which the kernel raises no exception: all if the op does not
    leave them open, none if every number raises one."""
    if not drawer.free:
        return _case_axes_taken(running, drawer.typicals(rng, 1))
    refused = set()
    by_axes = {
        axes: drawer.typicals(rng, axes) for axes in ((1, 0, 2, 3) if drawer.ranked else (1,))
    }
    for axes, challenges in by_axes.items():
        for challenge in challenges:
            if running.answer(challenge).status in ("error", "unsupported"):
                refused |= {axes, 4} if axes == 3 else {axes}
        if running.hung:
            break
    return frozenset() if refused >= by_axes.keys() else AXES - refused


def _case_axes_taken(running: JudgedKernel, challenges: Sequence[Challenge]) -> frozenset[int]:
    """The same for an op whose cases give the shapes, and for the axes of the first input: a number
    is refused if all its challenges raise an exception."""
    taken, asked = set(), set()
    for challenge in challenges:
        axes = first_axes(challenge.inputs)
        asked.add(axes)
        if axes not in taken and running.answer(challenge).status not in ("error", "unsupported"):
            taken.add(axes)
        if running.hung:
            break
    return AXES - (asked - taken) if taken else frozenset()


def _protocol(running: JudgedKernel, examination: KernelExamination, findings: _Findings) -> None:
    """Make the twelve calls in one process, after one call in another, which finds out how the
    kernel takes its inputs."""
    protocol = examination.calls
    if not running.hung:
        running.answer(protocol.challenges[0])
    if running.hung:
        findings.without_answer(protocol.challenges[0], running.hung)
        return
    replies = running.calls(protocol.calls)
    wrong = []
    for i, (challenge, reply) in enumerate(zip(protocol.challenges, replies, strict=False)):
        if reply.status != "ok":
            findings.without_answer(challenge, reply)
            break
        if reply.written:
            findings.unfair.append(Reason("writes_inputs", challenge.name))
        if findings.fault(challenge, reply, examination.decisive_outputs(challenge)):
            wrong.append(i)
    if (place := protocol.stale(replies, wrong)) is not None:
        findings.unfair.append(Reason("stale_answer", protocol.challenges[place].name))
    elif protocol.turns(wrong) and wrong == _wrong(protocol, running.calls(protocol.calls)):
        findings.unfair.append(Reason("turns_wrong", protocol.challenges[wrong[0]].name))
    if not protocol.deterministic(replies):
        findings.flags.append("not_deterministic")


def _wrong(protocol: Protocol, replies: Sequence[CellReply]) -> list[int]:
    """The numbers of the calls that were answered wrongly."""
    answers = enumerate(zip(protocol.challenges, replies, strict=False))
    return [
        i
        for i, (challenge, reply) in answers
        if reply.status != "ok" or challenge.fault(reply.outputs)
    ]


def _ask(
    running: JudgedKernel,
    examination: KernelExamination,
    number: int,
    findings: _Findings,
    deadline: float,
) -> None:
    """Ask one round of challenges, each in a process of its own. Rounds after the first may be cut
    short."""
    for challenge in examination.round(number):
        if running.hung or (number and time.monotonic() > deadline):
            break
        if running.compiled and challenge.family == "strides":
            continue
        reply = running.answer(challenge)
        if reply.written:
            findings.unfair.append(Reason("writes_inputs", challenge.name))
        if "no plain array" in reply.reason:
            findings.unfair.append(Reason("no_plain_array", challenge.name))
        if not challenge.has_answer:
            continue
        if reply.status != "ok":
            findings.without_answer(challenge, reply)
            continue
        if reply.aliases:
            findings.flags.append("returns_input")
        findings.fault(challenge, reply, examination.decisive_outputs(challenge))


def _timed(
    running: JudgedKernel, examination: KernelExamination, findings: _Findings
) -> Mapping[str, Any] | None:
    """The time of separate calls, whose answers count as well; None if one of them has no answer,
    for example for lack of memory."""
    replies = running.calls(timing.calls(examination.timed))
    if not examination.timed or any(reply.status != "ok" for reply in replies):
        findings.flags.append("not_timed")
        return None
    for challenge, reply in zip(examination.timed, replies, strict=True):
        if fault := challenge.fault(reply.outputs, findings.outputs):
            findings.refused.append((challenge, reply, fault))
    return timing.record(examination.timed, replies)


def _verdict(
    findings: _Findings, op: Op, direction: Direction, running: JudgedKernel
) -> tuple[str, list[Reason]]:
    """The verdict, and its reasons."""
    if running.outside:
        return WRONG, [Reason("outside_memory", _first_failed(findings))]
    refused = [(challenge, reply.outputs) for challenge, reply, _ in findings.refused]
    acts = [reason for reason in findings.unfair if reason.kind in _ACTS]
    if acts:
        return UNFAIR, [acts[0], *_faults(findings)]
    mostly = 2 * len(refused) > len(findings.answered) + len(findings.failed)
    if mostly and (decoy := decoy_of(refused)):
        return UNFAIR, [Reason(decoy, refused[0][0].name), *_faults(findings)]
    values = all(fault.kind in _VALUES for _, _, fault in findings.refused)
    families = {challenge.family for challenge, _, _ in findings.refused}
    model = None
    if values and not (findings.failed or findings.unfair):
        model = precision.explaining_model(refused)
    if model is not None and (len(families) >= FAMILIES_LOWER or model.way == "flushed"):
        details = {"format": model.format.name, "way": model.way, "refused": len(refused)}
        return LOWER, [Reason("lower_precision", refused[0][0].name, details)]
    if findings.unfair:
        return UNFAIR, [*findings.unfair[:1], *_faults(findings)]
    if refused or findings.failed:
        return WRONG, _faults(findings)
    if findings.stopped or findings.owed:
        return NOT_ENOUGH, [*_without_answer(findings.stopped), *_declines(findings)]
    first = op.names(direction)[0]
    number = sum(1 for decisive in findings.by_family.values() if decisive)
    if findings.by_output[first] < FAMILIES_NEEDED or number < FAMILIES_NEEDED:
        return NOT_ENOUGH, [Reason("too_few_families", "", {"families": number})]
    return RIGHT, []


def _declines(findings: _Findings) -> list[Reason]:
    """One reason for each family with a declined challenge that a kernel must take."""
    reasons = {
        challenge.family: Reason("declines", challenge.name, {"reason": reply.reason})
        for challenge, reply in reversed(findings.owed)
    }
    return list(reasons.values())[::-1]


def _first_failed(findings: _Findings) -> str:
    return next((challenge.name for challenge, _ in findings.failed), "")


def _faults(findings: _Findings) -> list[Reason]:
    """One reason for each family and kind of fault, failures first."""
    reasons: dict[tuple[str, str], Reason] = {}
    for challenge, reply, fault in findings.refused:
        if count := sum(map(unwritten, _arrays(reply.outputs))):
            written = Reason("unwritten", challenge.name, {"output": fault.output, "wrong": count})
            reasons.setdefault((challenge.family, "unwritten"), written)
            continue
        figures = {**asdict(fault), "index": list(fault.index)}
        del figures["kind"]
        reasons.setdefault(
            (challenge.family, fault.kind), Reason(f"wrong_{fault.kind}", challenge.name, figures)
        )
    unanswered = [*findings.failed, *findings.stopped]
    return [*_without_answer(unanswered), *reasons.values()]


def _without_answer(replies: Sequence[tuple[Challenge, CellReply]]) -> list[Reason]:
    """One reason for each family and status."""
    reasons: dict[tuple[str, str], Reason] = {}
    for challenge, reply in replies:
        details = {"status": reply.status, "reason": reply.reason}
        reasons.setdefault(
            (challenge.family, reply.status), Reason("no_answer", challenge.name, details)
        )
    return list(reasons.values())


def decoy_of(refused: Sequence[tuple[Challenge, Mapping[str, Any]]]) -> str | None:
    """The decoy to which all refused answers amount. Answers without elements are left out, and for
    the constant those of a single number."""
    kinds = {"answers_zeros": _zeros, "answers_memory": _memory, "answers_nan": _nan}
    kinds["answers_input"] = _input
    sizes = [max((a.size for a in _arrays(outputs)), default=0) for _, outputs in refused]
    for kind, matches in {**kinds, "answers_constant": _constant}.items():
        least = 2 if kind == "answers_constant" else 1
        judged = [answer for answer, size in zip(refused, sizes, strict=True) if size >= least]
        if judged and all(matches(*answer) for answer in judged):
            return kind
    return None


def _arrays(outputs: Mapping[str, Any]) -> list[Any]:
    return [a for a in outputs.values() if isinstance(a, np.ndarray) and a.size]


def _zeros(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(not np.any(array != 0) for array in _arrays(outputs))


def _nan(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(
        formats.is_one(array.dtype) and np.isnan(array.astype(np.float64)).all()
        for array in _arrays(outputs)
    )


def _memory(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    """Whether more than half of the elements are those that the cell left in memory: nothing wrote
    them."""
    return all(unwritten(array) > array.size // 2 for array in _arrays(outputs))


def unwritten(array: Any) -> int:
    """The number of elements that are NaNs which no arithmetic gives, as the cell writes them
    (`remote/cell.py`)."""
    if not formats.is_one(array.dtype):
        return 0
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(-1)
    nan = np.array([np.nan, -np.nan], array.dtype).view(bits.dtype)
    canonical = [*nan, np.iinfo(bits.dtype).max >> 1]  # the last one is CUDA's
    odd = np.isnan(array.astype(np.float64)).reshape(-1) & ~np.isin(bits, canonical)
    return int(np.count_nonzero(odd))


def _input(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    inputs = [np.ascontiguousarray(array).tobytes() for array in challenge.floats.values()]
    return all(array.tobytes() in inputs for array in _arrays(outputs))


def _constant(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(
        np.all(array.reshape(-1) == array.reshape(-1)[0])
        for array in _arrays(outputs)
        if array.size > 1
    )


def _cause(findings: _Findings) -> Mapping[str, Any] | None:
    """What `explain` finds about the smallest wrong answer of a suitable size."""
    from refkernels.diagnosis.explain import explain

    sizes = {
        i: sum(array.size for array in _arrays(reply.outputs))
        for i, (challenge, reply, fault) in enumerate(findings.refused)
        if fault.kind in ("bound", "bits", "special") and challenge.family != "special"
    }
    eligible = {i: size for i, size in sizes.items() if _SMALLEST <= size <= _LARGEST}
    if not eligible:
        return None
    smallest, reply, _ = findings.refused[min(eligible, key=lambda i: eligible[i])]
    try:
        question = smallest.op, smallest.inputs, reply.outputs, smallest.params, smallest.direction
        return explain(*question).to_dict()
    except (ValueError, TypeError):
        return None
