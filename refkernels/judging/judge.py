"""judge(): the verdict on a kernel."""

from __future__ import annotations

import itertools
import secrets
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from refkernels.arguments import as_text
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.frameworks import catalog, emulation, environments, kernels
from refkernels.frameworks.cells import CellReply
from refkernels.frameworks.gateway import is_flag
from refkernels.judging.challenges import Drawer
from refkernels.judging.examination import FEWEST, Examinations, KernelExamination
from refkernels.judging.findings import AskedChallenge, Findings, cause_of
from refkernels.judging.judgement import NOT_ENOUGH, RIGHT, UNFAIR, WRONG, Judgement, Reason
from refkernels.judging.questions import AXES, KernelDomain, first_axes
from refkernels.judging.running import JudgedKernel, call_of
from refkernels.judging.standard import Challenge
from refkernels.judging.wrong_answers import Shown
from refkernels.op import Direction, Op
from refkernels.records.words import DTYPES
from refkernels.registry import get
from refkernels.suggestion import did_you_mean, quoted
from refkernels.target_names import TargetName, TargetNameError, parse, with_setting


class Level(NamedTuple):
    """`rounds`: of challenges, at most; `seconds`: after which no round but the first goes on, for
    the `calls` of one process, and for `mutants`. A fifth is left, for what has begun."""

    rounds: int
    seconds: float
    calls: float
    mutants: float


ROUNDS = 3  # as long as too little is shown: no seed decides a verdict
FIRST = 5  # times as many seconds: the first round ends too, once enough is shown
LEVELS = {
    "quick": Level(1, 36, 2, 0),
    "default": Level(3, 36, 6, 12),
    "full": Level(6, 360, 60, 120),
}


@with_default_fenv
@np.errstate(all="ignore")
def judge(
    kernel: str,
    op: str | Op | None = None,
    *,
    dtype: str = "float32",
    level: str = "default",
    seed: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    lengths: Mapping[str, Sequence[int]] | None = None,
    dtypes: Mapping[str, Sequence[str]] | None = None,
    device: str = "cpu",
    causes: bool = True,
    times: bool = False,
    allow_overflow: bool | None = None,
    mutants: bool = True,
    examinations: Examinations | None = None,
    finite: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, challenge: None,
) -> Judgement:
    """Judge a kernel: FILE.py:FUNCTION, or FILE.so:SYMBOL with its abi. Beside what
    `refkernels.testing.judge` takes:

    causes      whether `explain` is asked about a wrong answer
    allow_overflow  whether an element is right that is what a named form gives where an
                intermediate result overflows or underflows; by default where all named forms do so
    mutants     whether it is counted how many wrong kernels these inputs refuse; no verdict depends
                on it
    examinations  those of other kernels, whose truths are reused for the same seed
    finite      whether no NaN and no infinity is asked
    """
    start = time.monotonic()
    dtype, level = as_text(dtype or "float32", "dtype"), as_text(level, "level")
    if level not in LEVELS:
        raise ValueError(f"There is no level {quoted(level)}: {did_you_mean(level, LEVELS)}.")
    spec, target, settings = _target(kernel, op)
    assert spec.framework.kernel is not None
    record = op if isinstance(op, Op) else get(str(spec.framework.kernel["op"]))
    direction: Direction = spec.framework.kernel["direction"]
    if dtype not in DTYPES:
        own = {} if dtypes else _in_format(record, dtype)
        if not own:
            raise ValueError(f"dtype is {quoted(dtype)}: {did_you_mean(dtype, DTYPES)}.")
        dtype, dtypes = "float32", own
    if fixed := {name: names[0] for name, names in (dtypes or {}).items() if name in record.params}:
        record = replace(record, params={**record.params, **fixed})
    params = {"params": dict(record.params)}
    framework = replace(spec.framework, kernel={**spec.framework.kernel, **params})
    drawn_seed = secrets.randbits(48) if seed is None else seed
    device = target.device or device
    rounds, limit, calls, trials = LEVELS[level]
    asked = partial((examinations or Examinations()).of, record, direction, dtype, drawn_seed)
    domain = KernelDomain(frozenset(), lengths or {}, dtypes, shapes, AXES, allow_overflow, finite)
    _check_domain(asked(domain).drawer)
    running = JudgedKernel(framework, environments.find(spec), device, environment=settings)
    with running, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        examination, first = _examination(running, asked, domain)
        course = Course(examination, running=running, start=start, limit=limit)
        for challenge, reply in first:
            course.add(challenge, reply)
        course.calls(calls)
        for number in range(max(rounds, ROUNDS)):
            if number and (course.wrong or course.late() or (number >= rounds and course.enough)):
                break
            course.round(number, progress)
        time_taken = course.times() if times and not (course.wrong or running.hung) else None
        course.unfair += [Reason("replaces", "", {"name": name}) for name in running.replaced]
        verdict, reasons = course.verdict()
        tried = mutants and verdict == RIGHT
        shown = examination.shown(course.answered, trials) if tried else Shown()
    for w in told:
        if flag := getattr(w.category, "flag", ""):
            examination.told.setdefault(flag, set()).update(getattr(w.message, "widened", ()))
    flags = [*course.flags, *["unguarded"] * (not running.guarded)]
    flags += [*["finite_alone"] * finite, *sorted(examination.told)]
    flags += ["not_all_tried"] * (shown.cut and trials > 0)
    drawer, taken = examination.drawer, examination.drawer.domain
    longest = (max(a.shape, default=1) for c in course.answered for a in c.floats.values())
    only = {k: (*v,) for given in (lengths, dtypes) for k, v in (given or {}).items()}
    result = Judgement(
        kernel, record.name, direction, dtype, verdict, drawn_seed, level, tuple(reasons),
        families=course.families, score=course.score if verdict != NOT_ENOUGH else None,
        killed=shown.killed, alive=shown.alive,
        smallest_error_ulp={n: ulp for n, ulp in shown.smallest.items() if n in course.outputs},
        longest_axis=max(longest, default=0), calls=course.answered_calls,
        declined=course.declined_parts(), lengths=only,
        shapes={name: (*shape,) for name, shape in (shapes or {}).items()},
        left_out=tuple(sorted(taken.left_out)),
        widened=tuple(sorted(examination.told.get("statistical", ()))),
        leading_axes=tuple(sorted(taken.axes)) if drawer.ranked and taken.axes != AXES else (),
        flags=tuple(dict.fromkeys(flags)), time=time_taken if verdict == RIGHT else None,
        avoidable=course.avoidable if verdict == RIGHT else None, flushes=running.flushes,
    )  # fmt: skip
    cause = cause_of(course) if causes and verdict in (WRONG, UNFAIR) else None
    return replace(result, cause=cause, seconds=round(time.monotonic() - start, 2))


def _target(kernel: str, op: str | Op | None) -> tuple[Any, TargetName, dict[str, str]]:
    """The kernel's catalogue entry, its target and the environment of its process."""
    try:
        name = parse(kernel)
    except TargetNameError as error:
        raise catalog.FrameworkError(str(error)) from None
    if op is not None and name.kernel is not None:
        name = with_setting(name, "op", get(op).name)
    spec, target = catalog.target(str(name))
    if spec.framework.kernel is None:
        raise catalog.FrameworkError(f"{kernel} is not a kernel: write FILE.py:FUNCTION")
    if emulation.SETTING in dict(target.settings):
        raise catalog.FrameworkError(
            f"{kernel}: judge asks a kernel thousands of times, on this machine only: leave "
            "machine= out, or measure it there"
        )
    settings = {key: value for key, value in target.settings if key not in kernels.SETTINGS}
    if flags := [key for key in settings if is_flag(key)]:
        raise catalog.FrameworkError(
            f"{kernel}: {flags[0]} is a flag of a framework's adapter, which a judged kernel runs "
            "without: leave it out, or set an environment variable, whose name is in upper case"
        )
    return spec, target, settings


def _in_format(op: Op, dtype: str) -> dict[str, tuple[str, ...]]:
    """The inputs that some case has in this format of integers or of 8 bits, or else the params
    that name it, as the format of the answer."""
    built = [case.build("float32") for case in op.cases() if "float32" in case.dtypes]
    given = [(n, getattr(inputs.get(n), "dtype", "")) for inputs, _ in built for n in op.kinds]
    settings = [pair for params in (op.params, *(p for _, p in built)) for pair in params.items()]
    own, named = ({n for n, kind in pairs if str(kind) == dtype} for pairs in (given, settings))
    return dict.fromkeys(own or named, (dtype,))


def _examination(
    running: JudgedKernel, of: Callable[[KernelDomain], KernelExamination], domain: KernelDomain
) -> tuple[KernelExamination, list[tuple[Challenge, CellReply]]]:
    """The examination with the optional inputs and the numbers of leading axes that the kernel
    takes, that is, with which it raises no exception; and its first answers."""
    whole = of(domain)
    optional = [name for name in whole.drawer.op.optional if name in whole.drawer.roles.arguments]
    for number in range(len(optional) + 1):
        for left_out in itertools.combinations(optional, number):
            part = replace(domain, left_out=frozenset(left_out))
            axes, answered = _axes_taken(running, of(part))
            if axes or running.hung:
                return of(replace(part, axes=axes or AXES)), answered
    return whole, []


def _check_domain(drawer: Drawer) -> None:
    """Raise ValueError for lengths, formats or shapes that are not the op's."""
    op = drawer.op
    letters = {x for argument in drawer.roles.arguments.values() for x in argument.own}
    domain = drawer.domain
    for given, known, what in (
        (domain.lengths, letters, "letter"),
        (domain.dtypes, {*op.kinds, *op.params}, "input of integers or 8-bit numbers"),
    ):
        if unknown := [key for key in given or {} if key not in known]:
            raise ValueError(
                f"{op.name} has no {what} {quoted(unknown[0])}: {did_you_mean(unknown[0], known)}."
            )
    if domain.dtypes and not drawer.cases:
        asked = ", ".join(f"{n} in {' or '.join(names)}" for n, names in domain.dtypes.items())
        raise ValueError(f"{op.name} has no case with {asked}: give other dtypes.")
    next(drawer.own_shapes(0), None)


def _axes_taken(
    running: JudgedKernel, examination: KernelExamination
) -> tuple[frozenset[int], list[tuple[Challenge, CellReply]]]:
    """The numbers of leading axes with which the kernel raises no exception or, if the op's cases
    give the shapes, of axes of the first input; none if every number raises one. A number is
    refused if all its challenges raise an exception. And the answers."""
    drawer, rng = examination.drawer, np.random.default_rng([examination.seed, 1 << 21])
    taken, asked = dict[int, tuple[Challenge, CellReply]](), set[int]()
    for number in (1, 0, 2, 3, 4) if drawer.ranked else (1,):
        for challenge in drawer.typicals(rng, (*(2,) * (number - 1), 5)[:number]):
            axes = number if drawer.free else first_axes(challenge.inputs)
            asked.add(axes)
            if axes not in taken and not running.hung:
                reply = running.answer(challenge)
                if reply.status not in ("error", "unsupported"):
                    taken[axes] = challenge, reply
    answered = [(c, reply) for c, reply in taken.values() if reply.status == "ok"]
    return AXES - (asked - taken.keys()) if taken else frozenset(), answered


@dataclass(kw_only=True)
class Course(Findings):
    """The questions to a kernel one after another, from `start` for `limit` seconds or so, and what
    is found."""

    running: JudgedKernel
    start: float
    limit: float

    @property
    def enough(self) -> bool:
        """Whether what is right so far shows enough."""
        return super().verdict()[0] != NOT_ENOUGH

    def verdict(self) -> tuple[str, list[Reason]]:
        if self.running.outside:
            first = next((one.challenge.name for one in self.of("failed")), "")
            return WRONG, [Reason("outside_memory", first)]
        return super().verdict()

    def late(self, times: int = 1) -> bool:
        return time.monotonic() - self.start > times * self.limit

    def calls(self, seconds: float) -> None:
        """Make many calls in one process; one in another finds out how the kernel takes inputs."""
        protocol, running = self.examination.calls, self.running
        if not running.hung:
            running.answer(protocol.challenges[0])
        if running.hung:
            self.add(protocol.challenges[0], running.hung)
            return
        replies = running.calls(protocol.calls, FEWEST, seconds)
        seen = protocol.seen(replies, self.add, partial(self.late, FIRST))
        self.answered_calls = seen.number
        self.flags += ["not_deterministic"] * (not seen.deterministic)
        if seen.stale:
            self.unfair.append(Reason("stale_answer", seen.stale.name))
        elif seen.turns:
            again = running.calls(protocol.calls[: len(replies)])
            fault = lambda asked, reply: reply.outputs and asked.fault(reply.outputs)  # noqa: E731
            if protocol.seen(again, fault, partial(self.late, FIRST)).wrong == seen.wrong:
                name = protocol.challenges[seen.wrong[0]].name
                self.unfair.append(Reason("turns_wrong", name))

    def round(self, number: int, progress: Callable[[int, int, str], None]) -> None:
        """Ask one round of challenges as far as time allows; of the first, until enough is shown:
        truths may be costly."""
        asked, running = self.examination.round(number), self.running
        for place, challenge in enumerate(asked):
            progress(place, len(asked), challenge.name)
            late = self.late(1 if number else FIRST)
            if late and not number:
                late = self.wrong or self.enough
                self.flags += ["cut_short"] * late
            if late or running.hung:
                break
            if not (running.compiled and challenge.family == "strides"):
                self.add(challenge, running.answer(challenge))

    def times(self) -> Mapping[str, Any] | None:
        """The time of separate calls at the same pointers, from the judge's message to the last
        byte of the answer, without the first, which may compile; and their inputs. Their answers
        count. None if one has none, for lack of memory."""
        timed = self.examination.timed
        calls = [replace(call_of(c, key), sizes=()) for key, c in enumerate(timed, 1 << 23)]
        replies = self.running.calls(calls)
        if not timed or any(reply.status != "ok" for reply in replies):
            self.flags.append("not_timed")
            return None
        for challenge, reply in zip(timed, replies, strict=True):
            if fault := challenge.fault(reply.outputs, self.outputs):
                self.found.append(AskedChallenge("wrong", challenge, reply, fault))
        waited = [reply.waited for reply in replies[1:]]
        figures = {"seconds": statistics.median(waited), "least": min(waited), "calls": len(waited)}
        return {**figures, "inputs": timed[0].name.partition(": ")[2]}
