"""The cost of a sweep of all float32 inputs of one function of torch, beside torch alone and a pass
of NumPy's over as many numbers; and of judging in it, by the binade of the input."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import peers
from stopwatch import Row

from refkernels import registry
from refkernels.arithmetic.formats import BINARY32
from refkernels.runs.sweeps.chunk import judge_call
from refkernels.runs.sweeps.patterns import Span
from refkernels.runs.sweeps.tally import SweepTally

CHUNK = 1 << 24
CALL = 1 << 20
"""Inputs of one call, in the sweep and of torch alone: torch is fastest with 2^18 to 2^22."""
ALONE, PASS = "torch alone", "np.subtract, float32"
BARS = {"sin": (3.0, ALONE), "erf": (4.0, PASS)}
"""At most 3 times torch's own time; where torch is faster than an oracle can be, 4 times a pass."""


def sweep(op: str, torch: peers.Torch, patterns: range) -> Iterator[Row]:
    """The whole command, from its start to its page, once; torch alone, within its function, on as
    many threads, half of the calls before it and half after."""
    bar, against = BARS[op]
    size, n = f"{len(patterns):,}".replace(",", " "), len(patterns)
    theirs = Row("sweep", op, size, ALONE, n, base=ALONE)
    memory = Row("sweep", op, size, PASS, n, base=ALONE)
    ours = Row("sweep", op, size, "refkernels", n, base=against, bar=bar)
    try:
        alone, passing = _alone(op, torch, patterns[:: 2 * CALL]), _pass(n)
        if len(patterns) > 8 * CALL:  # compiles the kernels first
            _whole(op, patterns[:CALL], torch.threads)
        wall = _whole(op, patterns, torch.threads)
        alone += _alone(op, torch, patterns[CALL :: 2 * CALL])
        passing = (passing + _pass(n)) / 2
    except RuntimeError as error:
        for row in (theirs, memory, ours):
            row.missing = str(error)
    else:
        base = {ALONE: alone, PASS: passing}
        times = {ALONE: alone, PASS: passing, ours.who: wall}
        for row in (theirs, memory, ours):
            row.seconds, row.ratios = [times[row.who]], [times[row.who] / base[str(row.base)]]
        ours.note = "with starting up and the page"
        theirs.ratios = []
    yield from (ours, theirs, memory)


def binades(names: Sequence[str], each: int) -> Iterator[Row]:
    """What right answers cost to judge at two places of each of the 512 binades, in processor time,
    the least of three: all, at most 4 times those of sin, and the slowest, at most 100 ns each."""
    base: list[float] = []
    for name in names:
        op = registry.get(name)
        cost = np.full((512, 2), np.inf)
        for place in 3 * [*np.ndindex(*cost.shape)]:
            first = (place[0] << 23) + (place[1] << 22)
            x, hi = np.arange(first, first + each, dtype=np.uint32).view(np.float32), np.empty(each)
            with np.errstate(all="ignore"):
                op.fast.kernel(x, hi)
                asked = op, Span(first, first + each), hi.astype(np.float32), SweepTally(BINARY32)
            began = time.process_time()
            judge_call(*asked)
            cost[place] = min(cost[place], time.process_time() - began)
        seconds, slowest = [float(cost.sum())], float(cost.sum(1).max())
        base = base or seconds
        mean = Row("binades", name, "all", "refkernels", cost.size * each, seconds, "sin", bar=4.0)
        mean.ratios = [seconds[0] / base[0]]
        yield mean
        at = f"at {np.uint32(int(cost.sum(1).argmax()) << 23).view(np.float32):.3g}"
        bar = {"bar": 2 * each * 1e-7, "unit": "s"}
        yield Row("binades", name, at, "refkernels, slowest", 2 * each, [slowest], None, [], **bar)


def _pass(n: int) -> float:
    """Seconds of NumPy's subtraction of n float32 numbers from others into a third array, in arrays
    that no cache holds; a sixteenth of them is timed."""
    arrays = [np.full(min(n, CHUNK), value, np.float32) for value in (1.0, 2.0, 3.0)]
    times = max(2, n // CHUNK // 16)
    np.subtract(arrays[0], arrays[1], out=arrays[2])
    began = time.perf_counter()
    for _ in range(times):
        np.subtract(arrays[0], arrays[1], out=arrays[2])
    return (time.perf_counter() - began) * n / (times * arrays[0].size)


def _alone(op: str, torch: peers.Torch, starts: Sequence[int]) -> float:
    if torch.reason is not None:
        raise RuntimeError(torch.reason)
    seconds = 0.0
    torch.session.sweep(op, "float32", starts[0], CALL)  # the first of its kind, not counted
    for first in starts:
        reply = torch.session.sweep(op, "float32", first, CALL)
        if not reply.ok or reply.seconds is None:
            raise RuntimeError(str(reply.reason))
        seconds += reply.seconds
    return seconds


def _whole(op: str, patterns: range, workers: int) -> float:
    """Seconds of the command."""
    with tempfile.TemporaryDirectory() as folder:
        selection = f"{patterns.start:#x}:{patterns.stop - 1:#x}"
        command = [sys.executable, "-m", "refkernels", "sweep", op, "--framework", "torch"]
        command += ["--range", selection, "--workers", str(workers), "--out", folder]
        began = time.perf_counter()
        completed = subprocess.run(command, capture_output=True, text=True)
        wall = time.perf_counter() - began
        if completed.returncode:
            errors = completed.stderr.strip().splitlines()
            raise RuntimeError(errors[-1] if errors else "the sweep failed")
        lines = (Path(folder) / "sweeps.jsonl").read_text(encoding="utf-8").splitlines()
    record = next(swept for swept in map(json.loads, lines) if "seconds" in swept)
    if record["counts"]["inputs"] != len(patterns):
        raise RuntimeError(f"only {record['counts']['inputs']} inputs were swept")
    return wall
