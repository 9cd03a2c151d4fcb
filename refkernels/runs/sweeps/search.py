"""Searches a format with too many inputs to try them all: random inputs, then a climb.

A search is a list of restarts. Each draws inputs from all binades equally, then climbs: it moves
the worst inputs so far by ± 2^k patterns, with k drawn uniformly, so that near and far neighbours
are tried. A restart depends only on its seed. The largest error found is a lower bound.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.frameworks.gateway import Session
from refkernels.metrology import ulp_error
from refkernels.op import Op
from refkernels.runs.sweeps import kept, patterns
from refkernels.runs.sweeps.chunk import ChunkFailed, SweepQuestion, judge_any
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.pool import failed
from refkernels.runs.sweeps.tally import Json, SweepTally

BATCH = 1 << 14  # inputs of one call
_CLIMBERS = 64  # the worst inputs, from which the climb goes on
_DRAWN = 0.5  # this share of the tries is drawn, the rest climbs

Patterns = npt.NDArray[np.uint64]  # of the inputs: (n,), or (n, 2) of pairs
Scores = npt.NDArray[np.float64]


@with_default_fenv
def run_restart(
    question: SweepQuestion, ranges: Sequence[Sequence[int]], seed: int, restart: int, tries: int
) -> Json:
    """Search the patterns of `ranges` ([start, stop] each) with `tries` inputs; returns what
    `run_chunk` does."""
    op, random = registry.get(question.op), np.random.default_rng([seed, restart])
    spans = [Span(start, stop) for start, stop in ranges]
    tally = SweepTally(formats.get(question.dtype))

    def attempt(session: Session, tried: Patterns) -> tuple[Patterns, Scores]:
        got, seconds = ask(session, question, op, [patterns.values_of(tried, tally.format)])
        tally.seconds["framework"] = tally.seconds.get("framework", 0.0) + seconds
        exact = judge_any(op, tried.view(np.int64), got, tally)
        return tried, error_of(got, exact)

    return searched(
        question, tally, tries,
        draw=lambda size: stratified(size, spans, tally.format, random),
        move=lambda worst, size: _neighbours(worst, size, spans, random),
        attempt=attempt,
        best=lambda errors: np.argsort(-errors, kind="stable")[:_CLIMBERS],
    )  # fmt: skip


def searched(
    question: SweepQuestion,
    tally: SweepTally,
    tries: int,
    *,
    draw: Callable[[int], Patterns],
    move: Callable[[Patterns, int], Patterns],
    attempt: Callable[[Session, Patterns], tuple[Patterns, Scores]],
    best: Callable[[Scores], npt.NDArray[np.intp]],
) -> Json:
    """The result of a search that fills a tally: draws and attempts inputs, then moves the `best`
    of those that were judged."""
    begin = time.perf_counter()
    found: Any = ()  # the best so far
    scores = np.empty(0)
    with kept.taken(question) as session, kept.quiet():
        try:
            for left in range(tries, 0, -BATCH):
                size = min(BATCH, left)
                climbing = left <= tries * (1 - _DRAWN) and len(found) > 0
                candidates = move(found, size) if climbing else draw(size)
                judged, judged_scores = attempt(session, candidates)
                if len(found):
                    judged = np.concatenate([found, judged])
                    judged_scores = np.concatenate([scores, judged_scores])
                judged, first = np.unique(judged, axis=0, return_index=True)
                chosen = best(judged_scores[first])
                found, scores = judged[chosen], judged_scores[first][chosen]
        except ChunkFailed as failure:
            return failed(*failure.args)
        version = session.info.get("version")
    tally.seconds["total"] = time.perf_counter() - begin
    return {"status": "ok", "reason": None, "version": version, "tally": tally.to_json()}


def ask(
    session: Session, question: SweepQuestion, op: Op, inputs: Sequence[npt.NDArray[Any]]
) -> tuple[npt.NDArray[Any], float]:
    """The answers, and the framework's seconds."""
    named, (x, *_) = dict(zip(op.inputs, inputs, strict=True)), inputs
    reply = session.run(op.name, "forward", named, {}, question.device)
    if not reply.ok:
        raise ChunkFailed(reply.status, reply.reason)
    got = reply.outputs.get(op.outputs[0])
    if got is None or got.shape != x.shape or got.dtype != x.dtype:
        expected = f"{x.dtype}{list(x.shape)}"
        raise ChunkFailed("wrong_shape", f"{session.spec} does not answer {expected}.")
    return got, reply.seconds


def error_of(got: npt.NDArray[Any], exact: Enclosure) -> Scores:
    """|error| of each answer in ulp; -1 where it is not defined."""
    return np.nan_to_num(np.abs(ulp_error(got, exact).value), nan=-1.0)


def stratified(
    size: int, spans: Sequence[Span], format: Format, random: np.random.Generator
) -> Patterns:
    """Patterns drawn from all binades of the spans equally, and uniformly within each."""
    pieces = patterns.split(spans, 1 << (format.p - 1))
    chosen = random.integers(0, len(pieces), size)
    starts = np.array([piece.start for piece in pieces], np.uint64)
    lengths = np.array([len(piece) for piece in pieces], np.uint64)
    inside: Any = random.integers(0, lengths[chosen], dtype=np.uint64)
    return np.asarray(starts[chosen] + inside, np.uint64)


def _neighbours(
    worst: Patterns, size: int, spans: Sequence[Span], random: np.random.Generator
) -> Patterns:
    """Patterns at random distances from the worst ones, inside the spans."""
    chosen = worst[random.integers(0, len(worst), size)]
    steps = np.exp2(random.uniform(0.0, 50.0, size)).astype(np.uint64)
    moved = np.where(random.random(size) < 0.5, chosen + steps, chosen - steps)  # modulo 2^64
    inside = np.zeros(size, np.bool_)
    for span in spans:
        inside |= (moved >= np.uint64(span.start)) & (moved <= np.uint64(span.stop - 1))
    return np.where(inside, moved, chosen)
