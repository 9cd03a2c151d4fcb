"""What the sweep tests share; a module, so that workers in processes of their own can import it."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.frameworks import catalog
from refkernels.frameworks.catalog import Framework
from refkernels.op import Op
from refkernels.runs import sweeps
from refkernels.runs.sweeps import chunk, patterns
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import SweepTally

Json = dict[str, Any]


def rounded(op: Op, span: Span, dtype: str = "float32") -> Any:
    """The correctly rounded answers to a span of patterns."""
    format = formats.get(dtype)
    x = patterns.values_of(np.arange(span.start, span.stop), format)
    with np.errstate(invalid="ignore"):
        exact = op.evaluate("forward", {op.inputs[0]: x}, {}, ("rounding", format))
    return exact[op.outputs[0]].round(format)[0]


def judged(
    op: Op, span: Span, got: Any, cuts: tuple[int, ...] = (), order: Any = None
) -> SweepTally:
    """The tally of answers to a span, judged in the pieces that `cuts` makes, merged in `order`."""
    format = formats.of(got)
    ends = [span.start, *sorted(cuts), span.stop]
    pieces = [Span(a, b) for a, b in pairwise(ends) if b > a]
    tallies = []
    for piece in pieces:
        part = np.ascontiguousarray(got[piece.start - span.start : piece.stop - span.start])
        tally = SweepTally(format)
        chunk.judge_call(op, piece, part, tally)
        tally.borders = {
            piece.start: {"after": chunk.side(op, piece.start, part[:1])},
            piece.stop: {"before": chunk.side(op, piece.stop - 1, part[-1:])},
        }
        tallies.append(tally)
    whole = SweepTally(format)
    for place in order if order is not None else range(len(tallies)):
        whole.merge(tallies[place])
    chunk.settle_borders(op, whole)
    return whole


def careful(op: Op) -> Op:
    """The op without its float64 tier: every element goes through the certified rounding."""
    return replace(op, fast=None)


def figures(tally: SweepTally) -> Json:
    """What must not depend on the way of judging: all but errors' last digits, tiers and times."""
    tally.worst = np.round(tally.worst * [1, 1, 0], 6)
    return {name: tally.to_json()[name] for name in ("arrays", "invariants")}


def comparable(records: list[Json]) -> list[Json]:
    """The records without what differs from run to run."""
    return [{k: v for k, v in r.items() if k != "seconds"} for r in records if r["kind"] == "sweep"]


@contextmanager
def in_this_process() -> Iterator[sweeps.WorkerPool]:
    """A pool of one thread, where a registry that a test has changed is seen."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as executor:
        yield sweeps.ExternalExecutor(executor, 1)
        executor.submit(chunk.kept.release).result()


def square(number: int) -> Json:
    return {"status": "ok", "number": number * number}


def die_once(folder: str, number: int) -> Json:
    """Kills its process the first time it is called, in whatever process that is."""
    mark = Path(folder) / f"died-{number}"
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return square(number)


def die(number: int) -> Json:
    os._exit(1)


def sleep(woke: str) -> Json:
    time.sleep(60)
    Path(woke).touch()
    return {"status": "ok"}


def fail(status: str) -> Json:
    return {"status": status, "reason": "planted"}


def fake_of(adapter: Path) -> Framework:
    return Framework("fake", adapter, module="numpy", python=sys.executable)


def sweep_of_fake(directory: Path, pool: sweeps.WorkerPool, resume: bool = False) -> list[Json]:
    """In 32 chunks; the fake is in the catalog."""
    plan = sweeps.plan(["cos"], ["fake"], range="0x3f000000:0x3f03ffff", chunk=1 << 13)
    return sweeps.sweep(plan, directory, resume=resume, pool=pool)


def main() -> None:
    """A sweep in a process of its own, for tests that kill it: DIRECTORY, the adapter and mode."""
    directory, adapter, mode = sys.argv[1:]
    catalog.register(fake_of(Path(adapter)))
    sweep_of_fake(Path(directory), sweeps.Processes(2), mode == "resume")


if __name__ == "__main__":
    main()
