"""Tasks in KernelBench's form, whose Model is the oracle of its candidates.

    TASK.py         class Model, get_inputs(), get_init_inputs()
    CANDIDATE.py    class ModelNew, which should compute the same

The Model is read as a program at smaller sizes: the file's integers, halved until it computes at
most `MOST` elements (`remote/smaller.py`). It is judged first, and must be right; the candidate
gets its parameters and buffers.

What is right there is asked at the task's own sizes, beside the Model in float64. No enclosure is
computed there. With e = max |float32 - float64| of the Model's own answers, and n terms in its
longest sum, an element may err by

    min(4 sqrt(n) e, s / 8)         s: the standard deviation of the values; of one value, its size

since errors of sums in any order grow as sqrt(n), and rows of other data differ by s. That is a
statistic; it says nothing where s / 8 is below 64 e, and is left out there. Where a machine cannot
hold a call, each size is asked with the others made smaller.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.frameworks import catalog, environments
from refkernels.judging.examination import Examinations
from refkernels.judging.judge import judge
from refkernels.judging.judgement import NOT_ENOUGH, WRONG, Judgement, Reason, not_judged
from refkernels.judging.standard import wrong_element
from refkernels.op import Op
from refkernels.programs.program import Larger, ProgramError, TorchProgram
from refkernels.programs.program_op import op_of
from refkernels.programs.sources import of_file
from refkernels.records.texts import showable
from refkernels.target_names import KernelPath, TargetName

Doubles = npt.NDArray[np.float64]
SCRIPT = Path(catalog.__file__).parent / "remote" / "task.py"
SECONDS = 60.0  # of the start of torch, and of each size
FACTOR, SHARE, FEWEST = 4.0, 1 / 8, 64.0
BLOCK = 1 << 22
MOST = 1 << 12
WRAPPER = '''\
"""The {cls} of a task: made by refkernels."""
import importlib.util

import torch

_spec = importlib.util.spec_from_file_location("refkernels_task", {script!r})
_task = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_task)
candidate = _task.function({sizes!r}, {original!r}, {file!r}, {cls!r})
'''


def read(path: Path) -> tuple[Op, TorchProgram]:
    """The op of a task's Model, and the program of the smaller task. Raises ProgramError, also for
    what no rule reads of its example, FrameworkError and ValueError."""
    if not path.is_file():
        raise ValueError(f"{path} is no file.")
    program = of_file(path, "Model", None, MOST)
    op = op_of(program, f"task_{re.sub(r'[^0-9A-Za-z]', '_', path.stem)}")
    op.plain("forward", op.cases()[0].build(program.dtype)[0], {}, formats.get(program.dtype))
    registry.OWN[op.name] = op
    return op, program


def judge_candidate(
    task: Path, kernel: str, oracle: str | Op | None = None, **settings: Any
) -> Judgement:
    """The judgement of a candidate, FILE.py[:CLASS], or why it is not judged: where the
    Model cannot be read, or is not right itself. `settings` are those of `judge`. Model and
    candidate are asked the same, and share the truths. Where the Model differs from its program in
    special values alone, no NaN and no infinity is asked. Raises as `judge` does."""
    if oracle is not None:
        raise ValueError("A task's Model is the oracle: leave out the op.")
    file, _, cls = kernel.partition(".py:")
    candidate, cls = Path(file if file.endswith(".py") else f"{file}.py"), cls or "ModelNew"
    settings["seed"] = secrets.randbits(48) if settings.get("seed") is None else settings["seed"]
    settings |= {"examinations": Examinations(), "causes": False}  # a search takes minutes
    asked: dict[str, Any] = {"file": str(task)}
    try:
        op, program = read(task)
    except ProgramError as error:
        return not_judged(kernel, None, str(error), seed=settings["seed"], task=asked)
    settings["dtype"] = settings.get("dtype") or program.dtype
    asked |= {"sizes": dict(program.sizes), "larger": [dict(s.sizes) for s in program.larger]}
    with tempfile.TemporaryDirectory() as name:
        target = partial(_target, Path(name), task, program)
        once = {"level": "quick", "times": False, "mutants": False}
        model = judge(target(task, "Model"), op, **{**settings, **once})
        if any(reason.kind != "wrong_special" for reason in model.reasons):
            why = "task:cannot_tell" if model.verdict == NOT_ENOUGH else "task:other"
            known = {"seed": model.seed, "reasons": model.reasons, "task": asked}
            return not_judged(kernel, op.name, why, **known)
        judgement = judge(target(candidate, cls), op, finite=not model.right, **settings)
    if judgement.right and judgement.dtype == program.dtype:
        settings.get("progress", lambda *_: None)(0, len(program.larger), "own sizes")
        asks = {"file": candidate, "cls": cls, "device": settings.get("device") or "cpu"}
        judgement = _at_own_sizes(judgement, program, task, asks)
    return replace(judgement, kernel=kernel, task=asked)


def _target(folder: Path, task: Path, program: TorchProgram, file: Path, cls: str) -> str:
    """Write a kernel that calls a class of a file; return its target."""
    smaller, wrapper = folder / "smaller_task.py", folder / f"wrapped_{cls}.py"
    smaller.write_text(program.text, encoding="utf-8")
    named = {"sizes": str(smaller), "file": str(file.absolute()), "cls": cls}
    named |= {"original": str(task.absolute()), "script": str(SCRIPT)}
    wrapper.write_text(WRAPPER.format(**named), encoding="utf-8")
    return str(
        TargetName(kernel=KernelPath(str(wrapper), "candidate"), settings=(("python", "torch"),))
    )


def _at_own_sizes(
    judgement: Judgement, program: TorchProgram, task: Path, candidate: Mapping[str, Any]
) -> Judgement:
    """The judgement of a candidate that is right at smaller sizes, after its task's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = [str(folder / f"sizes_{k}.py") for k in range(len(program.larger))]
        for path, larger in zip(sizes, program.larger, strict=True):
            Path(path).write_text(larger.text, encoding="utf-8")
        own: dict[str, Any] = {"task": str(task.absolute()), "sizes": sizes, "seed": judgement.seed}
        ask = partial(_answered, folder, **own)
        model: dict[str, Any] = {"file": task, "cls": "Model", "device": "cpu"}
        if not (program.larger and ask(exact=True, **model) and ask(exact=False, **candidate)):
            return replace(judgement, flags=(*judgement.flags, "own_sizes_not_asked"))
        found = [_compared(folder, k, larger) for k, larger in enumerate(program.larger)]
    told = [reasons for reasons in found if reasons is not None]
    flags = *judgement.flags, "own_sizes" if told else "own_sizes_cannot_tell"
    families = {**judgement.families, "own_sizes": (len(found), len(told))}
    judgement = replace(judgement, flags=flags, families=families)
    if reasons := [reason for each in told for reason in each]:
        return replace(judgement, verdict=WRONG, reasons=tuple(reasons), score=0.0, time=None)
    return judgement


def _answered(folder: Path, file: Path, exact: bool, **request: Any) -> bool:
    """Let a class of a file answer into a folder of its name; whether it had the time and memory.
    An exception that it raises is kept there."""
    out = folder / ("exact" if exact else "got")
    out.mkdir()
    asked = {**request, "file": str(file.absolute()), "exact": exact, "out": str(out)}
    path = out / "request.json"
    path.write_text(json.dumps(asked), encoding="utf-8")
    command = [environments.find("torch").python, str(SCRIPT), str(path)]
    seconds, quiet = SECONDS * (1 + len(request["sizes"])), subprocess.DEVNULL
    try:
        ended = subprocess.run(command, stdout=quiet, stderr=quiet, timeout=seconds).returncode
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
            details = {"output": output, "limit": f"{limit:.3g}"}
            details |= wrong_element(got, exact, wrong, first)
            reasons.append(Reason("own_sizes", where, details))
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
    error = max(error, formats.BINARY32.u * math.sqrt(square))
    limit = min(FACTOR * math.sqrt(terms) * error, SHARE * spread)
    return limit if FEWEST * error <= SHARE * spread else None


def _blocks(*arrays: Any) -> Iterator[tuple[int, tuple[Doubles, ...]]]:
    """The same elements of several arrays, some at a time, with the number of the first."""
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, flat[0].size, BLOCK):
        yield start, tuple(a[start : start + BLOCK].astype(np.float64) for a in flat)
