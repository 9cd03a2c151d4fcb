"""Tasks in KernelBench's form, whose Model is the oracle of its candidates.

    TASK.py         class Model, get_inputs(), get_init_inputs()
    CANDIDATE.py    class ModelNew, which should compute the same

The Model is read as a program at smaller sizes: the file's integers, halved until it computes at
most `MOST` elements (`remote/smaller.py`). It is judged first, and must be right; the candidate
gets its parameters and buffers. What is right there is asked at the task's own sizes (`own_sizes`).
"""

from __future__ import annotations

import re
import secrets
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from refkernels import registry
from refkernels.judging import own_sizes
from refkernels.judging.examination import Examinations
from refkernels.judging.judge import judge
from refkernels.judging.judgement import NOT_ENOUGH, Judgement, not_judged
from refkernels.op import Op
from refkernels.programs.program import ProgramError, TorchProgram
from refkernels.programs.program_op import op_of
from refkernels.programs.sources import of_file
from refkernels.target_names import KernelPath, TargetName

MOST = 1 << 12
WRAPPER = '''\
"""The {cls} of a task: made by refkernels."""
import importlib.util

import torch

_spec = importlib.util.spec_from_file_location("refkernels_task", {script!r})
_task = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_task)
{op} = _task.function({sizes!r}, {home!r}, {file!r}, {cls!r})
'''


def read(path: Path) -> tuple[Op, TorchProgram]:
    """The op of a task's Model, and the program of the smaller task. Raises ProgramError,
    FrameworkError and ValueError."""
    if not path.is_file():
        raise ValueError(f"{path} is no file.")
    program = of_file(path, "Model", None, MOST)
    op = op_of(program, f"task_{re.sub(r'[^0-9A-Za-z]', '_', path.stem)}")
    registry.OWN[op.name] = op
    return op, program


def judge_candidate(
    task: Path, kernel: str, oracle: str | Op | None = None, **settings: Any
) -> Judgement:
    """The judgement of a candidate, FILE.py[:CLASS], or why it is not judged: where the
    Model cannot be read, or is not right itself. `settings` are those of `judge`. Model and
    candidate are asked the same, and share the truths. Where the Model differs from its program in
    special values alone, the candidate may give either's. Raises as `judge` does."""
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
    asked |= {"sizes": dict(program.sizes), "larger": [dict(s.sizes) for s in program.larger]}
    with tempfile.TemporaryDirectory() as name:
        target = partial(_target, Path(name), task, program, op.name)
        definition = target(task, "Model")
        once = {"level": "quick", "times": False, "mutants": False}
        model = judge(definition, op, **{**settings, **once})
        if any(reason.kind != "wrong_special" for reason in model.reasons):
            why = "task:cannot_tell" if model.verdict == NOT_ENOUGH else "task:other"
            known = {"seed": model.seed, "reasons": model.reasons, "task": asked}
            return not_judged(kernel, op.name, why, **known)
        other = None if model.right else definition
        judgement = judge(target(candidate, cls), op, definition=other, **settings)
    if judgement.right and judgement.dtype == program.dtype:
        device = settings.get("device") or "cpu"
        judgement = own_sizes.asked(judgement, program, task, (candidate, cls), device)
    return replace(judgement, kernel=kernel, task=asked)


def _target(folder: Path, task: Path, program: TorchProgram, op: str, file: Path, cls: str) -> str:
    """Write a kernel that calls a class of a file; return its target."""
    smaller, wrapper = folder / "smaller_task.py", folder / f"{cls}_{op}.py"
    smaller.write_text(program.text, encoding="utf-8")
    named = {"sizes": str(smaller), "file": str(file.absolute()), "cls": cls, "op": op}
    named |= {"home": str(task.absolute().parent), "script": str(own_sizes.SCRIPT)}
    wrapper.write_text(WRAPPER.format(**named), encoding="utf-8")
    return str(TargetName(kernel=KernelPath(str(wrapper), op), settings=(("python", "torch"),)))
