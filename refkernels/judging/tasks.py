"""Tasks in KernelBench's form: which of a Model's calls have an oracle, and candidates judged.

    TASK.py         class Model, get_inputs(), get_init_inputs()
    CANDIDATE.py    class ModelNew, which should compute the same

For each torch function that the Model calls, the coverage says whether it is an op with an oracle,
rounds nothing, or is not covered. A Model of one op is judged as this op, in many shapes. Any other
is a program (`programs.tasks`), in one. Whether the task means the same op (which axis, which eps)
is not guessed: the Model itself is judged first, and must be right.

A Model's parameters are inputs of the op (`bindings`, `remote/bound_model.py`). The candidate's
have the same names, or the same shapes in the same order.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from refkernels import registry
from refkernels.frameworks import catalog, environments
from refkernels.frameworks.torch_names import NO_ROUNDING, SAME
from refkernels.judging.bindings import Binding, bound
from refkernels.judging.examination import Examinations
from refkernels.judging.judge import judge
from refkernels.judging.judgement import Judgement
from refkernels.programs import tasks as programs
from refkernels.seat_names import KernelPath, SeatName

REMOTE = Path(catalog.__file__).parent / "remote"
SCRIPT, BOUND_MODEL = REMOTE / "task.py", REMOTE / "bound_model.py"
READING = 300.0  # seconds, in which torch is imported and a model made
EXACT = ("unknown", "exact")
UNSEEN = frozenset(("get", "size", "dim", "numel", "len"))  # these compute nothing

LOADED = (
    programs.HEADER
    + """\
_task = _loaded("task", {task!r})
_model = getattr(_loaded("candidate", {file!r}), {cls!r})(*_task.get_init_inputs()).eval()
"""
)
WITHOUT_STATE = """

def {op}(*arrays):
    if [array.dim() for array in arrays] != {axes!r}:
        raise NotImplementedError("the task has other numbers of axes")
    with torch.no_grad():
        return _model(*arrays)
"""
WITH_STATE = """
{op} = _loaded("bound_model", {bound_model!r}).kernel(
    _model, {binding!r}, {shapes!r}, {axes!r}, _task.get_inputs()
)
"""


@dataclass(frozen=True)
class Task:
    """What a Model calls. `calls`: each function once, with its op if it has one; `inputs`: the
    shapes of its tensors; `others`: how many of its inputs are not tensors; `binding`: how its
    parameters are inputs of its op; `state`: the shapes of its parameters and buffers."""

    path: Path
    calls: tuple[tuple[str, str | None], ...]
    inputs: tuple[tuple[int, ...], ...]
    others: int = 0
    parameters: tuple[str, ...] = ()
    binding: Binding | None = None
    state: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def ops(self) -> list[str]:
        return [op for _, op in self.calls if op is not None]

    @property
    def is_op(self) -> bool:
        """Whether the Model is one op, which takes all its inputs and parameters."""
        if not self.ops or len(self.calls) > 1 or self.others:
            return False
        if self.parameters:
            return self.binding is not None and {*self.binding.state.values()} >= {*self.parameters}
        op = registry.get(self.ops[0])
        return len({*op.takes("forward")} - {*op.optional}) == len(self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON: each function with "op", "exact" or "unknown"."""
        return {
            "task": str(self.path),
            "calls": [
                {"function": name, "op": op, "covered": "op" if op else EXACT[name in NO_ROUNDING]}
                for name, op in self.calls
            ],
            "inputs": [list(shape) for shape in self.inputs],
        }


def read(path: Path) -> Task:
    """What a task's Model calls, as seen in an interpreter with torch.

    Raises FrameworkError (one sentence) if there is no such interpreter or the file is not a task.
    """
    interpreter = environments.find("torch")
    try:
        completed = subprocess.run(
            [interpreter.python, str(SCRIPT), str(path)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=READING, check=False,
        )  # fmt: skip
        answer = json.loads(completed.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        answer = {"error": "no answer"}
    if "error" in answer:
        raise catalog.FrameworkError(f"{path} is not a task that runs ({answer['error']})")
    return task_of(path, answer)


def task_of(path: Path, answer: Mapping[str, Any]) -> Task:
    """A task from the script's answer."""
    calls = tuple(covered(answer["calls"]))
    state = {name: tuple(shape) for name, shape in answer["state"].items()}
    return Task(
        path, calls, tuple(map(tuple, answer["inputs"])), answer["others"],
        tuple(answer["parameters"]), _binding(calls, answer, state), state,
    )  # fmt: skip


def _binding(
    calls: Sequence[tuple[str, str | None]], answer: Mapping[str, Any], state: Mapping[str, Any]
) -> Binding | None:
    """The binding of the Model's call, if it has parameters and makes one call, of an op."""
    names = [call.strip("_") for call in answer["calls"]]
    places = [i for i, name in enumerate(names) if name not in UNSEEN]
    if len(places) != 1 or calls[0][1] is None or not answer["parameters"]:
        return None
    (place,) = places
    return bound(registry.get(calls[0][1]), names[place], answer["arguments"][place], state)


def covered(calls: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each function that computes something, with its op."""
    ops = {name.replace("_", ""): name for name in registry.ops()}
    for name in dict.fromkeys(call.strip("_") for call in calls):
        if name not in UNSEEN:
            yield name, SAME.get(name, ops.get(name.replace("_", "")))


def judge_candidate(
    task: Task, candidate: Path, cls: str = "ModelNew", **settings: Any
) -> tuple[Judgement, Judgement | None]:
    """The Model's judgement, and the candidate's if the Model is this op; `settings` are those of
    `judge`. Both are asked the same, and share its truths. Where the Model differs from the op in
    special values alone, as torch's attention does for a NaN in q on a CPU, the candidate may give
    either's. A Model that is not one op is a program (`programs.tasks`). Raises as `judge` does."""
    settings["seed"] = secrets.randbits(48) if settings.get("seed") is None else settings["seed"]
    settings["examinations"] = Examinations()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if task.is_op:
            op, seat = registry.get(task.ops[0]), partial(_seat, folder, task)
        else:
            op, program = programs.task_op(task.path)
            seat = partial(_seat_of_program, folder, task.path, program)
            settings["causes"] = False  # a search in a whole program takes minutes
        if task.is_op and task.binding is not None:
            op = replace(op, params=task.binding.params)
            settings["lengths"] = task.binding.lengths
        definition = seat(task.path, "Model", op.name)
        once = {"level": "quick", "causes": False, "times": False, "mutants": False}
        model = judge(definition, op, **{**settings, **once})
        if any(reason.kind != "wrong_special" for reason in model.reasons):
            return model, None
        other = None if model.right else definition
        return model, judge(seat(candidate, cls, op.name), op, definition=other, **settings)


def _seat_of_program(folder: Path, task: Path, program: Any, file: Path, cls: str, op: str) -> str:
    wrapper = programs.write_wrapper(folder, task, program, file, cls, op)
    return str(SeatName(kernel=KernelPath(str(wrapper), op), settings=(("python", "torch"),)))


def _seat(folder: Path, task: Task, file: Path, cls: str, op: str) -> str:
    """Write a kernel that calls a class of a file; return its seat."""
    wrapper = folder / f"{cls}_{op}.py"
    axes = [len(shape) for shape in task.inputs]
    named: dict[str, Any] = {"op": op, "cls": cls, "axes": axes, "shapes": dict(task.state)}
    named |= {"task": str(task.path.absolute()), "file": str(file.absolute())}
    text = LOADED + WITHOUT_STATE
    if task.binding is not None:
        text = LOADED + WITH_STATE
        takes = registry.get(op).takes("forward")
        named["binding"] = {
            "inputs": dict(task.binding.inputs), "state": dict(task.binding.state),
            "params": {n: v for n, v in task.binding.params.items() if v is not None},
            "takes": list(takes),
        }  # fmt: skip
        named["bound_model"] = str(BOUND_MODEL)
    wrapper.write_text(text.format(**named), encoding="utf-8")
    return str(SeatName(kernel=KernelPath(str(wrapper), op), settings=(("python", "torch"),)))
