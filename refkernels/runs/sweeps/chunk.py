"""One chunk of a sweep: a pure function from a question and a range of patterns to a tally.

It runs wherever an executor puts it. The framework's interpreter makes the inputs itself and writes
its answers into shared memory; blocks of them are judged while they are in the cache.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats, tiers
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.fast import Fast
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.frameworks.gateway import Session
from refkernels.op import Arrays, Op
from refkernels.runs.sweeps import judging, kept, patterns, plain
from refkernels.runs.sweeps.inversions import inverted
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.pool import failed
from refkernels.runs.sweeps.question import SweepQuestion
from refkernels.runs.sweeps.tally import BEYOND, Json, Side, SweepTally

BLOCK = 1 << 16  # answers judged at a time: Python spends 20 us on each block
_EVALUATED = 1 << 16  # elements that the oracle evaluates at a time
_CACHED = 1 << 14  # elements that the fast tier's intervals judge at a time
_WARM_UP = (8, 64)
"""Warm-up calls, and inputs of each: MindSpore's CPU kernels try numbers of threads in their first
five calls, which keep subnormals, and flush them from the sixth on."""
_ONE_ORACLE = threading.Lock()  # a process sweeps on one thread, whatever threads its executor has


Last = tuple[float, float]  # the answer to the last pattern of a call, and the fast tier's hi


class ChunkFailed(Exception):
    """The framework gave no answer. Its arguments are a status and a reason."""


@with_default_fenv
def run_chunk(question: SweepQuestion, start: int, stop: int) -> Json:
    """Sweep the patterns start ... stop - 1: {"status", "reason", "version", "tally"}, JSON-able.

    A fault of the framework raises nothing: the result has a status, a reason of one sentence and
    no tally.
    """
    op, format = registry.get(question.op), formats.get(question.dtype)
    begin = time.perf_counter()
    with kept.taken(question) as session, kept.quiet():
        tally = SweepTally(format)
        last = None
        try:
            if kept.cold((question.op, question.dtype, question.device)):
                for _ in range(_WARM_UP[0]):
                    _ask(session, question, Span(start, min(start + _WARM_UP[1], stop)), tally)
                tally.seconds.clear()
            for span in patterns.split([Span(start, stop)], question.call):
                answers = _ask(session, question, span, tally)
                if last is None:
                    tally.borders[start] = {"after": side(op, start, answers[:1])}
                last = judge_call(op, span, answers, tally, last)
            tally.borders[stop] = {"before": side(op, stop - 1, answers[-1:])}
        except ChunkFailed as failure:
            return failed(*failure.args)
        version = session.info.get("version")
    if tally.inputs != stop - start:
        raise RuntimeError(f"{tally.inputs} of {stop - start} inputs were judged: report this bug.")
    tally.seconds["total"] = time.perf_counter() - begin
    return {"status": "ok", "reason": None, "version": version, "tally": tally.to_json()}


def describe(question: SweepQuestion) -> Json:
    """The framework as records describe it: {"status", "reason", "version", "environment"}."""
    registry.get(question.op)
    with kept.taken(question) as session:
        if not session.start():
            status, reason = session.status, session.reason
            return {"status": status, "reason": reason, "version": None, "environment": {}}
        environment = dict(session.info["environment"])
        environment.pop("executable", None)  # a path on one machine means nothing to a reader
        identity = {"version": session.info["version"], "environment": environment}
        reason = _why_not(session, question)
        return {"status": "unsupported" if reason else "ok", "reason": reason, **identity}


def _why_not(session: Session, question: SweepQuestion) -> str | None:
    devices = session.info["capabilities"]
    if question.device not in devices:
        available = ", ".join(devices)
        return f"{session.spec} reports no device {question.device}: it has {available}."
    ops = devices[question.device]
    if question.op not in ops:
        return f"The adapter of {session.spec} has no op named {question.op}."
    reason: str | None = ops[question.op]["forward"].get(question.dtype)
    return reason


def _ask(
    session: Session, question: SweepQuestion, span: Span, tally: SweepTally
) -> npt.NDArray[Any]:
    reply = session.sweep(
        question.op, question.dtype, span.start, len(span), question.device, question.timeout
    )
    if not reply.ok:
        raise ChunkFailed(reply.status, reply.reason)
    tally.seconds["framework"] = tally.seconds.get("framework", 0.0) + reply.seconds
    return reply.outputs[""]


@with_default_fenv
def judge_call(
    op: Op, span: Span, got: npt.NDArray[Any], tally: SweepTally, last: Last | None = None
) -> Last:
    """Judge answers to consecutive patterns and add them to the tally.

    `last` is the result for the patterns just before them; the step between the two is judged too.
    """
    if op.fast is not None and tally.format is formats.BINARY32:
        return _judge_fast(op, op.fast, span, got, tally, last)
    return _judge_carefully(op, span, got, tally, last)


def side(op: Op, pattern: int, got: npt.NDArray[Any]) -> Side:
    """One side of the step between two chunks: the answer at the border, and the exact value by the
    fast tier (None where the tier gives none)."""
    format = formats.of(got)
    bits = int(got.view(format.bits_dtype)[0])
    if op.fast is None or format is not formats.BINARY32:
        return bits, None
    hi = np.empty(1)
    op.fast.kernel(patterns.values_of([pattern], format), hi)
    return bits, float(hi[0]) if np.isfinite(hi[0]) else None


def settle_borders(op: Op, tally: SweepTally) -> None:
    """Judge the steps between adjoining chunks, and clear the borders."""
    sign = 1 << (patterns.width(tally.format) - 1)  # from the last NaN to -0 is not a step
    known = [(b, s) for b, s in sorted(tally.borders.items()) if len(s) == 2 and b != sign]
    tally.borders.clear()
    if not known:
        return
    after = np.array([border for border, _ in known], np.int64)
    before_got, after_got = (
        patterns.values_of(np.array([sides[end][0] for _, sides in known]), tally.format)
        for end in ("before", "after")
    )
    hi, hi_after = (
        np.array([sides[end][1] for _, sides in known], np.float64)  # None becomes NaN
        for end in ("before", "after")
    )
    error = plain.widened(op.fast.error) if op.fast is not None else 0.0
    exact = (Enclosure(ends, 0.0, np.nan_to_num(np.abs(ends) * error)) for ends in (hi, hi_after))
    wide, wide_after = judging.widest(before_got), judging.widest(after_got)
    against, unknown = inverted(wide, wide_after, *exact)
    _count_inversions(after, after_got, against, tally)
    unknown |= np.isnan(hi + hi_after) & ((wide < wide_after) | (wide > wide_after))
    after, before_got, after_got = after[unknown], before_got[unknown], after_got[unknown]
    _settle_steps(op, after, before_got, after_got, tally)


def _judge_fast(
    op: Op, fast: Fast, span: Span, got: npt.NDArray[Any], tally: SweepTally, last: Last | None
) -> Last:
    """Judge float32 by the float64 tier; later tiers get only what it cannot settle."""
    bits, size = got.view(np.int32), len(span)
    room = kept.room(size, BLOCK)
    widening = plain.widened(fast.error)
    room.filled[:] = 0
    room.previous[:] = last if last is not None else np.nan
    before = room.previous[0]
    for block in patterns.split([span], BLOCK):
        offset, length = block.start - span.start, len(block)
        plain.fill_patterns(room.x[:length], block.start)
        fast.kernel(room.x[:length].view(np.float32), room.hi[:length])
        answers = got[offset : offset + length]
        plain.judge_block(
            answers, bits[offset : offset + length], room.hi[:length], room.previous, widening,
            block.start, offset, block.start >> 23, tally.table, room.listed, room.listed_hi,
            room.steps, room.filled,
        )  # fmt: skip
        room.previous[:] = float(answers[-1]), room.hi[length - 1]
    listed_count, steps = room.filled.tolist()
    _judge_listed(op, fast, span.start, got, room.listed[:listed_count],
                  room.listed_hi[:listed_count], tally)  # fmt: skip
    tally.add_tiers({"float64": size})
    places = room.steps[:steps].astype(np.int64)
    earlier = np.where(places > 0, judging.widest(got[places - 1]), before)
    _settle_steps(op, span.start + places, earlier, got[places], tally)
    return float(room.previous[0]), float(room.previous[1])


def _judge_listed(
    op: Op,
    fast: Fast,
    first: int,
    got: npt.NDArray[Any],
    listed: npt.NDArray[Any],
    hi: npt.NDArray[np.float64],
    tally: SweepTally,
) -> None:
    """Judge the elements that are not plain: by the fast tier's interval if that settles them, else
    by the oracle."""
    left: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    for start in range(0, listed.size, _CACHED):
        places, part_hi = (part[start : start + _CACHED] for part in (listed, hi))
        codes = first + places.astype(np.int64)
        radius = np.where(np.isfinite(part_hi), np.abs(part_hi) * plain.widened(fast.error), 0.0)
        exact = Enclosure(part_hi, 0.0, radius)
        left.append(codes[_judge_elements(op, codes, got[places], exact, tally, final=False)])
    codes = np.concatenate(left)
    tally.add_tiers({"float64": -codes.size})
    for start in range(0, codes.size, _EVALUATED):
        part = codes[start : start + _EVALUATED]
        judge_any(op, part, got[part - first], tally)


def judge_any(
    op: Op, codes: npt.NDArray[np.int64], got: npt.NDArray[Any], tally: SweepTally
) -> Enclosure:
    """Judge answers to any patterns, or to pairs by their codes in a batch. Returns the oracle's
    enclosure of the exact values."""
    exact = evaluate(op, codes, tally, ("rounding", tally.format))
    _judge_elements(op, codes, got, exact, tally, final=True)
    return exact


def _judge_carefully(
    op: Op, span: Span, got: npt.NDArray[Any], tally: SweepTally, last: Last | None
) -> Last:
    """Judge any format, every element by the oracle's certified rounding."""
    for start in range(span.start, span.stop, _EVALUATED):
        codes = np.arange(start, min(start + _EVALUATED, span.stop), dtype=np.int64)
        answers = got[start - span.start :][: codes.size]
        exact = judge_any(op, codes, answers, tally)
        wide = judging.widest(answers)
        sign = 1 << (patterns.width(tally.format) - 1)
        steps = codes[1:] != sign
        against, unknown = inverted(wide[:-1], wide[1:], exact[:-1], exact[1:])
        _count_inversions(codes[1:], answers[1:], against & steps, tally)
        places = np.flatnonzero(unknown & steps)
        _settle_steps(op, codes[1:][places], wide[:-1][places], answers[1:][places], tally)
        if last is not None and start != sign:
            _settle_steps(op, codes[:1], np.array([last[0]]), answers[:1], tally)
        last = float(wide[-1]), 0.0
    assert last is not None
    return last


def evaluate(op: Op, codes: npt.NDArray[np.int64], tally: SweepTally, certify: Any) -> Enclosure:
    """The oracle's answer to some patterns, its tiers counted in the tally."""
    with tiers.counted() as counted:
        exact = _oracle(op, tally.inputs_of(codes), certify)
    tally.add_tiers(counted)
    return exact


def _oracle(op: Op, inputs: Sequence[npt.NDArray[Any]], certify: Any) -> Enclosure:
    named = dict(zip(op.inputs, inputs, strict=True))
    with _ONE_ORACLE, np.errstate(invalid="ignore"):
        exact: Enclosure = op.evaluate("forward", named, {}, certify)[op.outputs[0]]
    return exact


def _judge_elements(
    op: Op,
    codes: npt.NDArray[np.int64],
    got: npt.NDArray[Any],
    exact: Enclosure,
    tally: SweepTally,
    final: bool,
) -> npt.NDArray[np.intp]:
    """Judge answers by an enclosure. Returns the places of those that it leaves open, unless it is
    the `final` one.

    Invariants and the bound hold for every faithful answer: only the others are checked.
    """
    parts = [np.ascontiguousarray(part) for part in (exact.lo, exact.radius, exact.scale)]
    got_bits = got.view(tally.format.bits_dtype).astype(np.int64)
    outcomes = np.empty(codes.size, np.int8)
    judging.judge_elements(
        codes, judging.widest(got), got_bits, np.ascontiguousarray(exact.hi), *parts,
        (tally.format.p, tally.format.emin, tally.format.emax), tally.shift, final,
        _least(op, codes, tally.format), tally.table, outcomes,
    )  # fmt: skip
    unfaithful = np.flatnonzero(outcomes >= judging.WITHIN_BOUND)
    if unfaithful.size:
        _check_invariants(op, codes[unfaithful], got[unfaithful], tally)
    doubtful = np.flatnonzero(outcomes == judging.UNFAITHFUL)
    if doubtful.size and op.limit is None:  # a limit in ulp needs no such count
        _check_bound(op, codes[doubtful], got[doubtful], exact[doubtful], tally)
    return np.flatnonzero(outcomes == judging.OPEN)


def _check_bound(
    op: Op, codes: npt.NDArray[np.int64], got: npt.NDArray[Any], exact: Enclosure, tally: SweepTally
) -> None:
    """Count answers beyond the bound of the op's forms, which are kept with the violated
    invariants."""
    with _ONE_ORACLE, np.errstate(all="ignore"):
        radius = exact.radius * np.exp2(exact.scale)
        error = np.abs(judging.widest(got) - np.asarray(exact)) - radius
        beyond = np.arange(codes.size)
        for bound in _bounds(op, tally.format):
            if not beyond.size:
                break
            inputs = dict(zip(op.inputs, tally.inputs_of(codes[beyond]), strict=True))
            beyond = beyond[error[beyond] > bound(inputs)[op.outputs[0]]]
    _add_violations(BEYOND, beyond, codes, got, tally)


def _least(op: Op, codes: npt.NDArray[np.int64], format: formats.Format) -> tuple[float, float]:
    """What the bound is at least, over the exact value and in all; 0 where that is unknown. Inputs
    of one binade have it in common, but for the power of two that begins it."""
    formulas, shift = op.formulas, format.p - 1
    binade = int(codes[0]) >> shift if codes.size else 0
    if formulas is None or op.inputs != ("x",) or op.params or (codes >> shift != binade).any():
        return 0.0, 0.0
    ends = np.sort(patterns.values_of([binade << shift, ((binade + 1) << shift) - 1], format))
    return formulas.least((float(ends[0]), float(ends[1])), format)


def _bounds(op: Op, format: formats.Format) -> Iterator[Callable[[Arrays], Arrays]]:
    """The bounds whose maximum is the op's, by inputs: each is read only where an error exceeds
    those before, and the first holds for nearly every kernel."""
    formulas = op.formulas
    if formulas is None:
        yield partial(op.bound, "forward", params={}, format=format)
        return
    forms = formulas.forward.forms
    for form in [forms[formulas.widest]] if formulas.widest else forms.values():
        yield partial(formulas.bounded, "forward", form, params={}, format=format)


def _add_violations(
    name: str,
    violated: npt.NDArray[np.intp],
    codes: npt.NDArray[np.int64],
    got: npt.NDArray[Any],
    tally: SweepTally,
) -> None:
    if violated.size:
        first = violated[np.argmin(codes[violated])]
        answer = int(got.view(tally.format.bits_dtype)[first])
        tally.add_violations(name, violated.size, int(codes[first]), answer)


def _check_invariants(
    op: Op, codes: npt.NDArray[np.int64], got: npt.NDArray[Any], tally: SweepTally
) -> None:
    """Count violated invariants. One between elements (for example, that answers rise) is left to
    the inversions, because only some of its elements are seen here."""
    inputs = dict(zip(op.inputs, tally.inputs_of(codes), strict=True))
    for invariant in op.invariants:
        if (invariant.direction, invariant.output) != ("forward", op.outputs[0]):
            continue
        if invariant.between:
            continue
        with np.errstate(invalid="ignore"):
            violated = np.flatnonzero(invariant.violated(got, inputs, {}))
        _add_violations(invariant.name, violated, codes, got, tally)


def _settle_steps(
    op: Op,
    after: npt.NDArray[np.int64],
    got_before: npt.NDArray[Any],
    got_after: npt.NDArray[Any],
    tally: SweepTally,
) -> None:
    """Judge the steps to the patterns `after`, whose order the fast tier cannot decide, in
    double-doubles, as for float64 inputs. A step that stays undecided is not counted."""
    for first in range(0, after.size, _EVALUATED):
        part = slice(first, first + _EVALUATED)
        exact_before, exact_after = (
            _oracle(op, [judging.widest(*tally.inputs_of(codes))], "enclosure")
            for codes in (after[part] - 1, after[part])
        )
        wide = judging.widest(got_before[part]), judging.widest(got_after[part])
        against, _ = inverted(*wide, exact_before, exact_after)
        _count_inversions(after[part], got_after[part], against, tally)


def _count_inversions(
    codes: npt.NDArray[np.int64], got: npt.NDArray[Any], against: Any, tally: SweepTally
) -> None:
    if not against.any():
        return
    column = judging.INVERSIONS
    shift = tally.format.p - 1
    np.add.at(tally.counts[:, column], codes[against] >> shift, 1)
    answers = got.view(tally.format.bits_dtype).astype(np.int64)[against]
    first = int(np.argmin(codes[against]))
    judging.note_first(tally.firsts, column, int(codes[against][first]), int(answers[first]))
