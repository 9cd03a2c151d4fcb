"""The cost of a sweep of all float32 inputs of one function of torch, beside torch alone, and
beside NumPy's pass over as many float32 numbers, which is bound by memory."""

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

CHUNK = 1 << 24
CALL = 1 << 20
"""Inputs of one call, in the sweep and of torch alone: torch is fastest with 2^18 to 2^22."""
ALONE, PASS = "torch alone", "np.subtract, float32"
BARS = {"sin": (3.0, ALONE), "erf": (4.0, PASS)}
"""At most 3 times torch's own time; where torch is faster than an oracle can be, 4 times a pass."""


def sweep(op: str, torch: peers.Torch, patterns: range) -> Iterator[Row]:
    """The whole command, from its start to its page, once; torch alone before it and after it.

    Torch's time is that within its function, on inputs in memory, with as many threads as the sweep
    has workers: half of the calls before, the others after.
    """
    bar, against = BARS[op]
    size, n = f"{len(patterns):,}".replace(",", " "), len(patterns)
    theirs = Row("sweep", op, size, ALONE, n, base=ALONE)
    inside = Row("sweep", op, size, "torch within the sweep", n, base=ALONE)
    memory = Row("sweep", op, size, PASS, n, base=ALONE)
    ours = Row("sweep", op, size, "refkernels", n, base=against, bar=bar)
    try:
        alone, passing = _alone(op, torch, patterns[:: 2 * CALL]), _pass(n)
        if len(patterns) > 8 * CALL:  # compiles the kernels first
            _whole(op, patterns[:CALL], torch.threads)
        wall, within = _whole(op, patterns, torch.threads)
        alone += _alone(op, torch, patterns[CALL :: 2 * CALL])
        passing = (passing + _pass(n)) / 2
    except RuntimeError as error:
        for row in (theirs, inside, memory, ours):
            row.missing = str(error)
    else:
        base = {ALONE: alone, PASS: passing}
        times = {ALONE: alone, inside.who: within, PASS: passing, ours.who: wall}
        for row in (theirs, inside, memory, ours):
            row.seconds, row.ratios = [times[row.who]], [times[row.who] / base[str(row.base)]]
        ours.note = "with starting up and the page"
        theirs.ratios = []
    yield from (ours, theirs, inside, memory)


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


def _whole(op: str, patterns: range, workers: int) -> tuple[float, float]:
    """(seconds of the command, seconds within torch for each worker)."""
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
    return wall, record["seconds"]["framework"] / workers
