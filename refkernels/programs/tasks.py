"""Tasks in KernelBench's form, whose Model is the oracle: any program, at smaller sizes.

    TASK.py         class Model, get_inputs(), get_init_inputs()
    CANDIDATE.py    class ModelNew, which should compute the same

The sizes are the file's integers (batch_size, in_features), halved until the Model computes at most
`MOST` elements (`in_torch`). Model and candidate are made with the same seed and sizes;
the candidate gets the Model's parameters and buffers, by name, or else by shape in their order.
"""

from __future__ import annotations

import re
from pathlib import Path

from refkernels import registry
from refkernels.op import Op
from refkernels.programs.program import TorchProgram
from refkernels.programs.program_op import op_of
from refkernels.programs.sources import of_file

MOST = 1 << 15
HEADER = '''\
"""The {cls} of a task: made by refkernels."""
import importlib.util
import sys

import torch


def _loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


'''
WRAPPER = """\
def _made(cls):
    torch.manual_seed(0)
    return cls(*_task.get_init_inputs())


sys.path.insert(0, {home!r})
_task = _loaded("task", {task!r})
_model = _made(_task.Model)
_new = _made(getattr(_loaded("candidate", {file!r}), {cls!r}))
_state, _own = _model.state_dict(), _new.state_dict()
if _state.keys() != _own.keys():
    _state = dict(zip(_own, _state.values()))
_new.load_state_dict(_state)


def {op}(*arrays):
    with torch.no_grad():
        return _new(*arrays)
"""


def task_op(path: Path) -> tuple[Op, TorchProgram]:
    """The op of a task's Model, and the program of the smaller task. Raises ProgramError and
    FrameworkError."""
    program = of_file(path, "Model", None, MOST)
    op = op_of(program, f"task_{re.sub(r'[^0-9A-Za-z]', '_', path.stem)}")
    registry.OWN[op.name] = op
    return op, program


def write_wrapper(
    folder: Path, task: Path, program: TorchProgram, file: Path, cls: str, op: str
) -> Path:
    """A file with a function `op` that calls a class of a file, made as the smaller task says."""
    smaller, wrapper = folder / "smaller_task.py", folder / f"{cls}_{op}.py"
    smaller.write_text(program.text, encoding="utf-8")
    named = {"task": str(smaller), "file": str(file.absolute()), "cls": cls, "op": op}
    named["home"] = str(task.absolute().parent)
    wrapper.write_text((HEADER + WRAPPER).format(**named), encoding="utf-8")
    return wrapper
