"""judge(): the verdict on a kernel."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.mode import in_default_mode
from refkernels.frameworks import catalog, environments
from refkernels.frameworks.cells import Reply
from refkernels.judging import precision
from refkernels.judging.examination import Examination
from refkernels.judging.judgement import (
    LOWER,
    NOT_ENOUGH,
    RIGHT,
    UNFAIR,
    WRONG,
    Judgement,
    Reason,
)
from refkernels.judging.running import Kernel
from refkernels.judging.standard import Challenge, Fault
from refkernels.op import Direction, Op
from refkernels.records.words import DTYPES
from refkernels.registry import get
from refkernels.suggestion import instead, quoted

LEVELS: Mapping[str, tuple[int, float]] = {
    "quick": (1, 15.0),
    "default": (3, 40.0),
    "full": (6, 240.0),
}
"""Of each level: the most rounds of challenges, and the seconds after which none is begun."""
FAMILIES_NEEDED = 4  # that reject every decoy of an output
FAMILIES_LOWER = 3  # in which a kernel of lower precision is refused: one may have another cause
_ACTS = ("writes_inputs", "no_plain_array")  # whatever the answers are
_VALUES = ("special", "bits", "bound", "invariant")  # faults of numbers, not of arrays
_KEPT = 40  # refused answers, for the cause
_SMALLEST, _LARGEST = 16, 1 << 14  # elements of an answer whose cause is looked for


@dataclass
class _Findings:
    """What came out so far. `refused`: challenges with their wrong answers and faults; `failed`:
    challenges without an answer."""

    asked: Counter[str] = field(default_factory=Counter)
    telling: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[Challenge, Reply, Fault]] = field(default_factory=list)
    failed: list[tuple[Challenge, Reply]] = field(default_factory=list)
    declined: list[str] = field(default_factory=list)
    unfair: list[Reason] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        return bool(self.refused or self.failed or self.unfair)


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
    examination: Examination | None = None,
) -> Judgement:
    """Judge a kernel: FILE.py:FUNCTION, or another seat's name.

    op          its op, where the function's name does not tell
    dtype       of the floating inputs
    level       "quick", "default" (up to a minute) or "full"
    seed        of all that is drawn; without one it is secret until the judgement tells it
    lengths     by letter of the op's signature, the only lengths that the kernel is made for; the
                judgement names them
    causes      whether `explain` is asked about a wrong answer
    examination that of another kernel of the same op, whose truths are used again

    Raises ValueError for an unknown op, dtype, level or letter, FrameworkError for a kernel that
    cannot be run at all; both are one sentence.
    """
    begin = time.monotonic()
    dtype, level = str(dtype), str(level)
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {quoted(dtype)}: {instead(dtype, DTYPES)}.")
    if level not in LEVELS:
        raise ValueError(f"There is no level {quoted(level)}: {instead(level, LEVELS)}.")
    name = kernel if op is None else _with_op(kernel, get(op).name)
    spec, seat = catalog.seat(name)
    if spec.framework.kernel is None:
        raise catalog.FrameworkError(f"{kernel} is no kernel, which is FILE.py:FUNCTION")
    known = get(str(spec.framework.kernel["op"])) if not isinstance(op, Op) else op
    direction: Direction = spec.framework.kernel["direction"]
    chosen = secrets.randbits(48) if seed is None else seed
    with Kernel(spec.framework, environments.find(spec), seat.device or device) as running:
        one = examination or _examination(running, known, direction, dtype, chosen, lengths)
        findings = _Findings()
        _protocol(running, one, findings)
        rounds, limit = LEVELS[level]
        done = 0
        for number in range(rounds):
            if number and (findings.wrong or time.monotonic() - begin > limit):
                break
            _ask(running, one, number, findings, begin + 2.0 * limit)
            done = number + 1
        flags = [*findings.flags, *([] if running.guarded else ["unguarded"])]
        if running.outside:
            findings.unfair.clear()
    verdict, reasons = _verdict(findings, known, direction, running)
    shown = one.shown(done) if verdict == RIGHT else None
    result = Judgement(
        kernel, known.name, direction, dtype, verdict, chosen, level, tuple(reasons),
        {f: (asked, findings.telling[f]) for f, asked in findings.asked.items()},
        () if shown is None else shown.killed, () if shown is None else shown.alive,
        {} if shown is None else shown.smallest,
        tuple(dict.fromkeys(findings.declined)),
        {letter: tuple(some) for letter, some in (lengths or {}).items()},
        tuple(dict.fromkeys(flags)),
    )  # fmt: skip
    if causes and verdict in (WRONG, UNFAIR):
        result = replace(result, cause=_cause(findings))
    return replace(result, seconds=round(time.monotonic() - begin, 2))


def _with_op(kernel: str, op: str) -> str:
    """The kernel's name, saying the op, where the function's own name says none or another."""
    from refkernels.seat_names import parse

    name = parse(kernel)
    if name.kernel is None or "op" in dict(name.settings):
        return kernel
    return str(replace(name, settings=(*name.settings, ("op", op))))


def _examination(
    running: Kernel,
    op: Op,
    direction: Direction,
    dtype: str,
    seed: int,
    lengths: Mapping[str, Sequence[int]] | None,
) -> Examination:
    """The examination with the inputs that the kernel takes: all, or those that it must."""
    whole = Examination(op, direction, dtype, seed, lengths=lengths)
    letters = {x for one in whole.drawer.roles.arguments.values() for x in one.own}
    if unknown := [letter for letter in lengths or {} if letter not in letters]:
        raise ValueError(
            f"{op.name} has no letter {quoted(unknown[0])}: {instead(unknown[0], letters)}."
        )
    rng = np.random.default_rng([seed, 1 << 21])
    if not op.optional or running.answer(whole.drawer.typical(rng)).status == "ok":
        return whole
    least = Examination(op, direction, dtype, seed, frozenset(op.optional), lengths)
    fits = running.answer(least.drawer.typical(rng)).status == "ok"
    return least if fits else whole


def _protocol(running: Kernel, one: Examination, findings: _Findings) -> None:
    """The twelve calls of one process."""
    protocol = one.calls
    replies = running.calls(protocol.calls)
    for challenge, reply in zip(protocol.challenges, replies, strict=False):
        findings.asked["calls"] += 1
        findings.telling["calls"] += bool(one.told(challenge))
        if reply.status != "ok":
            break  # the challenges say whether it fails alone too
        if fault := challenge.fault(reply.outputs):
            findings.refused.append((challenge, reply, fault))
    wrong = protocol.wrong(replies)
    if not wrong and len(replies) == len(protocol.calls) and not protocol.deterministic(replies):
        findings.flags.append("not_deterministic")
    if (place := protocol.stale(replies, wrong)) is not None:
        findings.unfair.append(Reason("stale_answer", protocol.challenges[place].name))
    elif wrong and 0 not in wrong and _again_wrong(protocol.challenges, wrong):
        if protocol.wrong(running.calls(protocol.calls)) == wrong:  # by plan; a race has its own
            findings.unfair.append(Reason("turns_wrong", protocol.challenges[wrong[0]].name))
        else:
            findings.flags.append("not_deterministic")


def _again_wrong(challenges: Sequence[Challenge], wrong: Sequence[int]) -> bool:
    """Whether the first content, answered rightly at first, is answered wrongly later."""
    return any(challenges[i].inputs is challenges[0].inputs for i in wrong)


def _ask(
    running: Kernel, one: Examination, number: int, findings: _Findings, deadline: float
) -> None:
    """One round of challenges, each in a process of its own; only the first is always whole."""
    for challenge in one.round(number):
        if number and time.monotonic() > deadline:
            break
        if running.compiled and challenge.family == "strides":
            continue
        reply = running.answer(challenge)
        findings.asked[challenge.family] += 1
        if reply.written:
            findings.unfair.append(Reason("writes_inputs", challenge.name))
        if "no plain array" in reply.reason:
            findings.unfair.append(Reason("no_plain_array", challenge.name))
        if reply.status != "ok":
            lenient = reply.status == "unsupported" or (
                reply.status == "error" and not challenge.plain
            )
            if lenient:
                findings.declined.append(challenge.family)
            else:
                findings.failed.append((challenge, reply))
            continue
        if reply.aliases:
            findings.flags.append("returns_input")
        told = one.told(challenge)
        findings.telling[challenge.family] += bool(told)
        findings.told.update({name for name in told if name in reply.outputs})
        fault = challenge.fault(reply.outputs)
        if fault and len(findings.refused) < _KEPT:
            findings.refused.append((challenge, reply, fault))


def _verdict(
    findings: _Findings, op: Op, direction: Direction, running: Kernel
) -> tuple[str, list[Reason]]:
    """The verdict, and its reasons."""
    if running.outside:
        return WRONG, [Reason("outside_memory", _first_failed(findings))]
    refused = [(challenge, reply.outputs) for challenge, reply, _ in findings.refused]
    acts = [one for one in findings.unfair if one.kind in _ACTS]
    if acts:
        return UNFAIR, [acts[0], *_faults(findings)]
    mostly = 2 * len(refused) > sum(findings.asked.values()) - len(findings.declined)
    if mostly and (decoy := _decoy(refused)):
        return UNFAIR, [Reason(decoy, refused[0][0].name), *_faults(findings)]
    values = all(fault.kind in _VALUES for _, _, fault in findings.refused)
    families = {challenge.family for challenge, _, _ in findings.refused}
    told = values and len(families) >= FAMILIES_LOWER and not (findings.failed or findings.unfair)
    model = precision.found(refused) if told else None
    if refused and model is not None:
        details = {"format": model.format.name, "way": model.way, "refused": len(refused)}
        return LOWER, [Reason("lower_precision", refused[0][0].name, details)]
    if findings.unfair:
        return UNFAIR, [*findings.unfair[:1], *_faults(findings)]
    if refused or findings.failed:
        return WRONG, _faults(findings)
    first = op.names(direction)[0]
    number = sum(1 for telling in findings.telling.values() if telling)
    if findings.told[first] < FAMILIES_NEEDED or number < FAMILIES_NEEDED:
        return NOT_ENOUGH, [Reason("too_few_families", "", {"families": number})]
    return RIGHT, []


def _first_failed(findings: _Findings) -> str:
    return next((challenge.name for challenge, _ in findings.failed), "")


def _faults(findings: _Findings) -> list[Reason]:
    """One reason for each family and kind of fault, failures first."""
    reasons: dict[tuple[str, str], Reason] = {}
    for challenge, reply in findings.failed:
        details = {"status": reply.status, "reason": reply.reason}
        reasons.setdefault(
            (challenge.family, reply.status), Reason("no_answer", challenge.name, details)
        )
    for challenge, reply, fault in findings.refused:
        if lost := sum(map(unwritten, _arrays(reply.outputs))):
            written = Reason("unwritten", challenge.name, {"output": fault.output, "wrong": lost})
            reasons.setdefault((challenge.family, "unwritten"), written)
            continue
        figures = {**asdict(fault), "index": list(fault.index)}
        del figures["kind"]
        reasons.setdefault(
            (challenge.family, fault.kind), Reason(f"wrong_{fault.kind}", challenge.name, figures)
        )
    return list(reasons.values())


def _decoy(refused: Sequence[tuple[Challenge, Mapping[str, Any]]]) -> str | None:
    """The decoy that every refused answer is."""
    kinds = {"answers_zeros": _zeros, "answers_memory": _memory, "answers_nan": _nan}
    kinds["answers_input"] = _input
    for kind, matches in {**kinds, "answers_constant": _constant}.items():
        if all(matches(*one) for one in refused):
            return kind
    return None


def _arrays(outputs: Mapping[str, Any]) -> list[Any]:
    return [a for a in outputs.values() if isinstance(a, np.ndarray) and a.size]


def _zeros(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(not np.any(array != 0) for array in _arrays(outputs))


def _nan(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(np.isnan(array.astype(np.float64)).all() for array in _arrays(outputs))


def _memory(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    """Whether nearly every element is what the cell left in freed memory, or nothing wrote it."""
    return all(unwritten(array) > array.size // 2 for array in _arrays(outputs))


def unwritten(array: Any) -> int:
    """How many elements are NaNs that no arithmetic gives: those of the cell (`remote/cell.py`)."""
    if not formats.is_one(array.dtype):
        return 0
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(-1)
    canonical = np.array([np.nan, -np.nan], array.dtype).view(bits.dtype)
    odd = np.isnan(array.astype(np.float64)).reshape(-1) & ~np.isin(bits, canonical)
    return int(np.count_nonzero(odd))


def _input(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    given = [np.ascontiguousarray(array).tobytes() for array in challenge.floats.values()]
    return all(array.tobytes() in given for array in _arrays(outputs))


def _constant(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(
        np.all(array.reshape(-1) == array.reshape(-1)[0])
        for array in _arrays(outputs)
        if array.size > 1
    )


def _cause(findings: _Findings) -> Mapping[str, Any] | None:
    """What `explain` finds of the smallest wrong answer that is finite."""
    from refkernels.diagnosis.explain import explain

    sizes = {
        i: sum(array.size for array in _arrays(reply.outputs))
        for i, (challenge, reply, fault) in enumerate(findings.refused)
        if fault.kind in ("bound", "bits", "special") and challenge.family != "special"
    }
    known = {i: size for i, size in sizes.items() if _SMALLEST <= size <= _LARGEST}
    if not known:
        return None
    one, reply, _ = findings.refused[min(known, key=lambda i: known[i])]
    try:
        question = one.op, one.inputs, reply.outputs, one.params, one.direction
        return explain(*question).to_dict()
    except (ValueError, TypeError):
        return None
