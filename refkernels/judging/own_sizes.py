"""A candidate at its task's own sizes, beside the Model in float64.

No enclosure is computed there. With e = max |float32 - float64| of the Model's own answers, and n
terms in its longest sum, an element may err by

    min(4 sqrt(n) e, s / 8)         s: the standard deviation of the values; of one value, its size

since errors of sums in any order grow as sqrt(n), and rows of other data differ by s. That is a
statistic; it says nothing where s / 8 is below 64 e, and is left out there. Where a machine cannot
hold a call, each size is asked with the others made smaller (`remote/smaller.py`).
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.formats import BINARY32
from refkernels.frameworks import catalog, environments
from refkernels.judging.judgement import WRONG, Judgement, Reason
from refkernels.programs.program import Larger, TorchProgram
from refkernels.records.texts import showable

Doubles = npt.NDArray[np.float64]
SCRIPT = Path(catalog.__file__).parent / "remote" / "task.py"
SECONDS = 60.0  # of the start of torch, and of each size
FACTOR, SHARE, FEWEST = 4.0, 1 / 8, 64.0
BLOCK = 1 << 22


def asked(
    judgement: Judgement,
    program: TorchProgram,
    task: Path,
    candidate: tuple[Path, str],
    device: str = "cpu",
) -> Judgement:
    """The judgement of a candidate that is right at smaller sizes, after its task's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = [str(folder / f"sizes_{k}.py") for k in range(len(program.larger))]
        home = str(task.absolute().parent)
        request = {"home": home, "seed": judgement.seed, "sizes": sizes}
        for path, larger in zip(sizes, program.larger, strict=True):
            Path(path).write_text(larger.text, encoding="utf-8")
        ask = partial(_answered, folder, request)
        if not (program.larger and ask(task, "Model", exact=True) and ask(*candidate, device)):
            return replace(judgement, flags=(*judgement.flags, "own_sizes_not_asked"))
        found = [_compared(folder, k, larger) for k, larger in enumerate(program.larger)]
    told = [reasons for reasons in found if reasons is not None]
    flags = *judgement.flags, "own_sizes" if told else "own_sizes_cannot_tell"
    families = {**judgement.families, "own_sizes": (len(found), len(told))}
    judgement = replace(judgement, flags=flags, families=families)
    if reasons := [reason for each in told for reason in each]:
        return replace(judgement, verdict=WRONG, reasons=tuple(reasons), score=0.0, time=None)
    return judgement


def _answered(
    folder: Path,
    request: Mapping[str, Any],
    file: Path,
    cls: str,
    device: str = "cpu",
    exact: bool = False,
) -> bool:
    """Let a class of a file answer into a folder of its name; whether it had the time and memory.
    An exception that it raises is kept there."""
    out = folder / ("exact" if exact else "got")
    out.mkdir()
    asked = {**request, "file": str(file.absolute()), "cls": cls, "device": device, "exact": exact}
    path = out / "request.json"
    path.write_text(json.dumps({**asked, "out": str(out)}), encoding="utf-8")
    command = [environments.find("torch").python, str(SCRIPT), str(path)]
    seconds = SECONDS * (1 + len(request["sizes"]))
    try:
        ended = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds
        ).returncode
    except subprocess.TimeoutExpired:
        return False
    return ended == 0 and not (exact and (out / "error.txt").is_file())


def _compared(folder: Path, number: int, larger: Larger) -> list[Reason] | None:
    """The faults of one size, the first of each output; None if its answers tell nothing."""
    where = ", ".join(f"{name}={length}" for name, length in larger.sizes.items())
    reasons, tells = list[Reason](), False
    for path in sorted((folder / "exact").glob(f"{number}-*-exact.npy")):
        name = path.name.replace("-exact", "")
        exact, own = (np.load(p, mmap_mode="r") for p in (path, folder / "exact" / name))
        limit = _limit(exact, own, larger.terms)
        if limit is None:
            continue
        tells, output = True, f"y{name.split('-')[1].removesuffix('.npy')}"
        if not (folder / "got" / name).is_file():
            error = folder / "got" / "error.txt"
            said = error.read_text(encoding="utf-8") if error.is_file() else f"no {output}"
            return [Reason("no_answer", where, {"status": "error", "reason": showable(said)})]
        got = np.load(folder / "got" / name, mmap_mode="r")
        if got.shape != exact.shape:
            shapes = {"got": str(got.shape), "right": str(exact.shape)}
            reasons.append(Reason("wrong_shape", where, {"output": output, **shapes}))
            continue
        wrong, first = 0, 0
        for start, (right, other, new) in _blocks(exact, own, got):
            off = np.isfinite(right) & np.isfinite(other) & ~(np.abs(new - right) <= limit)
            first = first if wrong or not off.any() else start + int(np.argmax(off))
            wrong += int(np.count_nonzero(off))
        if wrong:
            index = tuple(map(int, np.unravel_index(first, exact.shape)))
            details = {"wrong": wrong, "elements": exact.size, "index": index}
            details["limit"] = f"{limit:.3g}"
            details |= {
                k: f"{float(a.flat[first]):.9g}" for k, a in (("got", got), ("right", exact))
            }
            reasons.append(Reason("own_sizes", where, {"output": output, **details}))
    return reasons if tells else None


def _limit(exact: Doubles, own: Any, terms: int) -> float | None:
    """The largest error that an element may have; None where other data may err no more."""
    error, count, sums = 0.0, 0, np.zeros(2)
    for _, (right, other) in _blocks(exact, own):
        usable = np.isfinite(right) & np.isfinite(other)
        right, other = right[usable], other[usable]
        error = max(error, float(np.max(np.abs(other - right), initial=0.0)))
        count += right.size
        sums += right.sum(), np.square(right).sum()
    mean, square = sums / max(count, 1)
    spread = math.sqrt(max(square - mean * mean, 0.0) if count > 1 else square)
    error = max(error, BINARY32.u * math.sqrt(square))
    if not FEWEST * error <= SHARE * spread:
        return None
    return min(FACTOR * math.sqrt(terms) * error, SHARE * spread)


def _blocks(*arrays: Any) -> Iterator[tuple[int, tuple[Doubles, ...]]]:
    """The same elements of several arrays, some at a time, with the number of the first."""
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, flat[0].size, BLOCK):
        yield start, tuple(a[start : start + BLOCK].astype(np.float64) for a in flat)
