"""judge(): the verdict on a kernel."""

from __future__ import annotations

import contextlib
import functools
import itertools
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from refkernels.arguments import as_text
from refkernels.arithmetic.mode import in_default_mode
from refkernels.frameworks import catalog, emulation, environments, kernels
from refkernels.frameworks.cells import CellReply
from refkernels.frameworks.gateway import is_flag
from refkernels.judging import timing
from refkernels.judging.calls import Protocol
from refkernels.judging.cases import first_axes
from refkernels.judging.challenges import Drawer
from refkernels.judging.examination import Examinations, KernelExamination
from refkernels.judging.findings import Findings
from refkernels.judging.judgement import RIGHT, UNFAIR, WRONG, Judgement, Reason
from refkernels.judging.mutants import Shown
from refkernels.judging.running import JudgedKernel
from refkernels.judging.shapes import AXES
from refkernels.judging.standard import Challenge
from refkernels.judging.verdicts import cause_of, verdict_of
from refkernels.op import Direction, Op
from refkernels.records.words import DTYPES
from refkernels.registry import get
from refkernels.seat_names import SeatNameError, parse, with_setting
from refkernels.suggestion import instead, quoted

LEVELS: Mapping[str, tuple[int, float]] = {
    "quick": (1, 36.0),
    "default": (3, 36.0),
    "full": (6, 360.0),
}
"""For each level: the most rounds of challenges, and the seconds after which no challenge of the
second round or a later one is asked. Wrong kernels are tried for a third as long, by the clock of
this process. What has begun is finished: that leaves a fifth of a minute, and of ten for full."""


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
    dtypes: Mapping[str, Sequence[str]] | None = None,
    device: str = "cpu",
    causes: bool = True,
    times: bool = False,
    allow_overflow: bool | None = None,
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
    dtypes      by input of integers or 8-bit numbers, the only formats that the kernel supports:
                {"a": ["int8"], "b": ["int8"]}
    causes      whether `explain` is asked about a wrong answer
    times       whether a kernel that is right so far is timed, on calls that are judged too
    allow_overflow  whether an element is right that is what a named form gives where an
                intermediate result overflows or underflows; by default where all named forms do so
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
        asked = partial(shared.of, record, direction, dtype, drawn_seed)
        taken = {"lengths": lengths, "dtypes": dtypes, "allow_overflow": allow_overflow}
        examination = _examination(running, partial(asked, **taken))
        findings = Findings(definition=_answers(definition, stack) if definition else None)
        _protocol(running, examination, findings)
        rounds, limit = LEVELS[level]
        for number in range(rounds):
            if number and (findings.wrong or time.monotonic() - start > limit):
                break
            _ask(running, examination, number, findings, start + limit)
        if times and not (findings.wrong or running.hung):
            time_taken = _timed(running, examination, findings)
        flags = [*findings.flags, *([] if running.guarded else ["unguarded"])]
        if running.outside:
            findings.unfair.clear()
    verdict, reasons = verdict_of(findings, record, direction, running.outside)
    tried = mutants and verdict == RIGHT
    shown = examination.shown(findings.answered, limit / 3.0) if tried else Shown()
    if shown.cut:
        flags.append("not_all_tried")
    axes = (
        examination.drawer.axes
        if examination.drawer.ranked and examination.drawer.axes != AXES
        else frozenset[int]()
    )
    result = Judgement(
        kernel, record.name, direction, dtype, verdict, drawn_seed, level, tuple(reasons),
        {f: (asked, findings.by_family[f]) for f, asked in findings.asked.items()},
        shown.killed, shown.alive, shown.hidden,
        {name: ulp for name, ulp in shown.smallest.items() if name in findings.outputs},
        max((max(a.shape, default=1) for c in findings.answered for a in c.floats.values()),
            default=0),
        findings.declined_parts(),
        {key: tuple(values) for only in (lengths, dtypes) for key, values in (only or {}).items()},
        tuple(sorted(examination.drawer.left_out)),
        tuple(sorted(axes)),
        tuple(dict.fromkeys(flags)), time=time_taken if verdict == RIGHT else None,
        avoidable=findings.avoidable if verdict == RIGHT else None, flushes=running.flushes,
    )  # fmt: skip
    if causes and verdict in (WRONG, UNFAIR):
        result = replace(result, cause=cause_of(findings))
    return replace(result, seconds=round(time.monotonic() - start, 2))


def _answers(kernel: str, stack: contextlib.ExitStack) -> Callable[[Challenge], Mapping[str, Any]]:
    """Asks another kernel, whose process is started by the first question."""

    @functools.cache
    def running() -> JudgedKernel:
        spec, seat = catalog.seat(kernel)
        started = JudgedKernel(spec.framework, environments.find(spec), seat.device or "cpu")
        return stack.enter_context(started)

    return lambda challenge: running().answer(challenge).outputs


def _examination(running: JudgedKernel, of: Callable[..., KernelExamination]) -> KernelExamination:
    """The examination with the optional inputs and the numbers of leading axes that the kernel
    takes, that is, with which it raises no exception."""
    whole = of()
    _check_domain(whole.drawer)
    op = whole.drawer.op
    optional = [name for name in op.optional if name in whole.drawer.roles.arguments]
    for number in range(len(optional) + 1):
        for left_out in itertools.combinations(optional, number):
            part = of(left_out=frozenset(left_out))
            rng = np.random.default_rng([whole.seed, 1 << 21])
            if (axes := _axes_taken(running, part.drawer, rng)) or running.hung:
                return of(left_out=frozenset(left_out), axes=axes or AXES)
    return whole


def _check_domain(drawer: Drawer) -> None:
    """Raise ValueError for lengths of unknown letters, and for formats that no case has."""
    op = drawer.op
    letters = {x for argument in drawer.roles.arguments.values() for x in argument.own}
    for given, known, what in (
        (drawer.lengths, letters, "letter"),
        (drawer.dtypes, op.kinds, "input of integers or 8-bit numbers"),
    ):
        if unknown := [key for key in given or {} if key not in known]:
            raise ValueError(
                f"{op.name} has no {what} {quoted(unknown[0])}: {instead(unknown[0], known)}."
            )
    if drawer.dtypes and not drawer.cases.all:
        asked = ", ".join(f"{n} in {' or '.join(names)}" for n, names in drawer.dtypes.items())
        raise ValueError(f"{op.name} has no case with {asked}: give other dtypes.")


def _axes_taken(running: JudgedKernel, drawer: Drawer, rng: np.random.Generator) -> frozenset[int]:
    """The numbers of leading axes with which the kernel raises no exception or, if the op's cases
    give the shapes, of axes of the first input; none if every number raises one. A number is
    refused if all its challenges raise an exception."""
    numbers = (1, 0, 2, 3) if drawer.ranked else (1,)
    challenges = [(axes, like) for axes in numbers for like in drawer.typicals(rng, axes)]
    if not drawer.free:
        challenges = [(first_axes(like.inputs), like) for _, like in challenges]
    taken, asked = set[int](), set[int]()
    for axes, challenge in challenges:
        asked.add(axes)
        if axes not in taken and running.answer(challenge).status not in ("error", "unsupported"):
            taken.add(axes)
        if running.hung:
            break
    refused = asked - taken
    return (
        AXES - refused - ({4} if drawer.free and 3 in refused else set()) if taken else frozenset()
    )


def _protocol(running: JudgedKernel, examination: KernelExamination, findings: Findings) -> None:
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
    findings: Findings,
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
    running: JudgedKernel, examination: KernelExamination, findings: Findings
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
