"""Searches a format with too many inputs to try them all: random inputs, then a climb.

A search is a list of islands. Each draws inputs from all binades equally, then climbs: it moves the
worst inputs so far by ± 2^k patterns, with k drawn uniformly, so that near and far neighbours are
tried. An island depends only on its seed. The largest error found is a lower bound.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import in_default_mode
from refkernels.frameworks.gateway import Session
from refkernels.metrology import ulp_error
from refkernels.op import Op
from refkernels.runs.sweeps import kept, patterns
from refkernels.runs.sweeps.chunk import ChunkFailed, SweepQuestion, judge_any
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import Json, SweepTally

BATCH = 1 << 14  # inputs of one call
_CLIMBERS = 64  # the worst inputs, from which the climb goes on
_STRATIFIED = 0.5  # this share of the tries is drawn from all binades, the rest climbs


@in_default_mode
def run_island(
    question: SweepQuestion, ranges: Sequence[Sequence[int]], seed: int, island: int, tries: int
) -> Json:
    """Search the patterns of `ranges` ([start, stop] each) with `tries` inputs; returns what
    `run_chunk` does."""
    op, random = registry.get(question.op), np.random.default_rng([seed, island])
    spans = [Span(start, stop) for start, stop in ranges]
    tally = SweepTally(formats.get(question.dtype))
    arguments = (question, op, spans, random, tries, tally)
    return searched(question, tally, lambda session: _search(session, *arguments))


def searched(question: SweepQuestion, tally: SweepTally, search: Callable[[Session], None]) -> Json:
    """The result of a search that fills a tally."""
    begin = time.perf_counter()
    with kept.taken(question) as session, kept.quiet():
        try:
            search(session)
        except ChunkFailed as failure:
            status, reason = failure.args
            return {"status": status, "reason": reason, "version": None, "tally": None}
        version = session.info.get("version")
    tally.seconds["total"] = time.perf_counter() - begin
    return {"status": "ok", "reason": None, "version": version, "tally": tally.to_json()}


def _search(
    session: Session,
    question: SweepQuestion,
    op: Op,
    spans: Sequence[Span],
    random: np.random.Generator,
    tries: int,
    tally: SweepTally,
) -> None:
    worst = np.empty(0, np.uint64)
    errors = np.empty(0)
    left = tries
    while left > 0:
        size = min(BATCH, left)
        climbing = left <= tries * (1 - _STRATIFIED) and len(worst) > 0
        candidates = (
            _neighbours(worst, size, spans, random)
            if climbing
            else stratified(size, spans, tally.format, random)
        )
        tried_errors = _try(session, question, op, candidates, tally)
        worst, errors = np.concatenate([worst, candidates]), np.concatenate([errors, tried_errors])
        worst, first = np.unique(worst, return_index=True)
        errors = errors[first]
        best = np.argsort(-errors, kind="stable")[:_CLIMBERS]
        worst, errors = worst[best], errors[best]
        left -= size


def _try(
    session: Session,
    question: SweepQuestion,
    op: Op,
    tried: npt.NDArray[np.uint64],
    tally: SweepTally,
) -> npt.NDArray[np.float64]:
    """|error| of each input in ulp; -1 where it is not defined."""
    x = patterns.values_of(tried, tally.format)
    reply = session.run(op.name, "forward", {op.inputs[0]: x}, {}, question.device)
    if not reply.ok:
        raise ChunkFailed(reply.status, reply.reason)
    got = reply.outputs.get(op.outputs[0])
    if got is None or got.shape != x.shape or got.dtype != x.dtype:
        raise ChunkFailed(
            "wrong_shape", f"{session.spec} does not answer {x.dtype}{list(x.shape)}."
        )
    tally.seconds["framework"] = tally.seconds.get("framework", 0.0) + reply.seconds
    exact = judge_any(op, tried.view(np.int64), got, tally)
    return np.nan_to_num(np.abs(ulp_error(got, exact).value), nan=-1.0)


def stratified(
    size: int, spans: Sequence[Span], format: Format, random: np.random.Generator
) -> npt.NDArray[np.uint64]:
    """Patterns drawn from all binades of the spans equally, and uniformly within each."""
    pieces = patterns.split(spans, 1 << (format.p - 1))
    chosen = random.integers(0, len(pieces), size)
    starts = np.array([piece.start for piece in pieces], np.uint64)
    lengths = np.array([len(piece) for piece in pieces], np.uint64)
    inside: Any = random.integers(0, lengths[chosen], dtype=np.uint64)
    return np.asarray(starts[chosen] + inside, np.uint64)


def _neighbours(
    worst: npt.NDArray[np.uint64], size: int, spans: Sequence[Span], random: np.random.Generator
) -> npt.NDArray[np.uint64]:
    """Patterns at random distances from the worst ones, inside the spans."""
    chosen = worst[random.integers(0, len(worst), size)]
    steps = np.exp2(random.uniform(0.0, 50.0, size)).astype(np.uint64)
    moved = np.where(random.random(size) < 0.5, chosen + steps, chosen - steps)  # modulo 2^64
    inside = np.zeros(size, np.bool_)
    for span in spans:
        inside |= (moved >= np.uint64(span.start)) & (moved <= np.uint64(span.stop - 1))
    return np.where(inside, moved, chosen)
