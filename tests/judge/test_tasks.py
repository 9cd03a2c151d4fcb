"""Tasks in KernelBench's form: which functions are covered; candidates judged by a Model's op."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hunting import one_in
from once import once
from typer.testing import CliRunner

from refkernels.cli.app import app
from refkernels.frameworks import environments
from refkernels.frameworks.catalog import FrameworkError
from refkernels.frameworks.torch_names import NO_ROUNDING, SAME
from refkernels.judging import tasks
from refkernels.judging.bindings import Binding, bound
from refkernels.judging.judgement import Judgement
from refkernels.judging.tasks import SCRIPT, Task, covered, read, task_of
from refkernels.registry import get
from refkernels.reporting.judging.views import coverage

ONE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.{function}(x, dim={dim})
def get_inputs():
    return [torch.rand(4096, 393216)]
def get_init_inputs():
    return []
"""
NEW = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True){change}
"""


def task(calls: list[str], *inputs: tuple[int, ...], parameters: tuple[str, ...] = ()) -> Task:
    return Task(Path("task.py"), tuple(covered(calls)), inputs, parameters=parameters)


def test_every_other_name_is_that_of_an_op() -> None:
    assert all(get(op).name == op for op in SAME.values())
    assert not NO_ROUNDING & SAME.keys()


@pytest.mark.parametrize(
    ("calls", "inputs", "is_op"),
    [
        (["softmax"], 1, True),
        (["layer_norm"], 1, True),
        (["__matmul__", "__get__"], 2, True),
        (["mm"], 1, False),
        (["softmax", "cumprod"], 1, False),
        (["softmax", "gelu"], 1, False),
        (["transpose", "softmax"], 1, False),
        (["relu"], 1, False),
    ],
)
def test_a_model_is_one_op_or_a_program(calls: list[str], inputs: int, is_op: bool) -> None:
    example = task(calls, *[(2, 3)] * inputs)
    assert example.is_op == is_op
    assert len(coverage(example.to_dict())) == len(example.calls)
    assert len(coverage(example.to_dict(), "zh")) == len(coverage(example.to_dict()))


def test_a_model_whose_parameters_its_call_does_not_take_is_not_one_op() -> None:
    assert not task(["layer_norm"], (2, 3), parameters=("weight",)).is_op


def test_a_model_and_its_candidate_are_asked_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "judge", asked := Mock(return_value=Mock(reasons=())))
    for seed in (None, 5):
        tasks.judge_candidate(task(["softmax"], (2, 3)), Path("new.py"), seed=seed)
        model, candidate = (call.kwargs for call in asked.call_args_list[-2:])
        assert model["seed"] == candidate["seed"] is not None
        assert seed in (None, candidate["seed"])
        assert model["examinations"] is candidate["examinations"]


X, OWN = {"input": 0}, [{"state": "w"}, {"state": "b"}]


def of(*values: Any) -> list[dict[str, Any]]:
    return [{"value": value} for value in values]


@pytest.mark.parametrize(
    ("function", "positional", "named", "shapes", "params", "lengths"),
    [
        ("linear", [X, *OWN], {}, [(5, 3), (5,)], {}, {"o": (5,), "k": (3,)}),
        ("linear", [X, OWN[0], *of(None)], {}, [(5, 3)], {}, {"o": (5,), "k": (3,)}),
        (
            "layer_norm", [X, *of([7]), *OWN, *of(1e-3)], {}, [(7,), (7,)],
            {"eps": 1e-3, "normalized_shape": None}, {"n": (7,)},
        ),
        (
            "conv2d", [X, *OWN, *of([2, 2], [1, 1], [1, 1], 1)], {}, [(4, 3, 5, 5), (4,)],
            {"stride": 2, "padding": 1, "dilation": 1, "groups": 1},
            {"o": (4,), "c": (3,), "k": (5,), "l": (5,)},
        ),
        (
            "group_norm", of(), {"input": X, "num_groups": {"value": 2}, "weight": OWN[0],
            "bias": OWN[1], "eps": {"value": 1e-5}}, [(6,), (6,)], {"num_groups": 2, "eps": 1e-5},
            {"c": (6,)},
        ),
        ("layer_norm", [X, *of([7, 5]), *OWN, *of(1e-3)], {}, [(7, 5), (7, 5)], None, {}),
        ("conv2d", [X, *OWN, *of(1, [1, 2], 1, 1)], {}, [(4, 3, 5, 5), (4,)], None, {}),
        ("conv2d", [X, *OWN, *of(1, 0, 1, 3)], {}, [(4, 1, 5, 5), (4,)], None, {}),
        ("linear", [X, {}, OWN[1]], {}, [(5, 3), (5,)], None, {}),
        ("linear", [X, *OWN], {}, [(2048, 2048), (2048,)], None, {}),
        ("linear", [X, *OWN], {}, [(5, 3), (4,)], None, {}),
        ("softmax", [X], {}, [], None, {}),
    ],
)  # fmt: skip
def test_the_arguments_of_a_call_are_inputs_parameters_and_params_of_its_op(
    function: str, positional: Any, named: Any, shapes: Any, params: Any, lengths: Any
) -> None:
    op = get({"layer_norm": "layernorm"}.get(function, function))
    binding = bound(op, function, (positional, named), dict(zip("wb", shapes, strict=False)))
    if params is None:
        assert binding is None
        return
    assert binding is not None
    assert (dict(binding.params), dict(binding.lengths)) == (params, lengths)
    assert binding.inputs == {"x": 0}
    assert list(binding.state.values()) == ["w", "b"][: len(shapes)]


TASKS = Path(__file__).parent / "tasks"
OPS = {
    "batched_matmul": (("matmul",), True),
    "transposed_matmul": (("matmul",), True),
    "gelu": (("gelu",), True),
    "attention": (("attention",), True),
    "running_sum": (("cumsum",), True),
    "sum_of_columns": (("sum",), True),
    "swish": (("sigmoid",), False),
    "relu": ((), False),
    "max_pool": ((), False),
    "layer_norm": (("layernorm",), False),
    "convolution": (("conv2d",), True),
    "linear": (("linear",), True),
    "cross_entropy": (("cross_entropy",), True),
    "triplet_margin_loss": ((), False),
}
VERDICTS = {
    "linear": ("right", ""),
    "batched_matmul": ("right", ""),
    "attention": ("right", ""),
    "gelu": ("wrong", ""),
    "cross_entropy": ("right", ""),
    "running_sum": ("lower_precision", ""),
    "transposed_matmul": (None, "the Model itself is not right"),
    "sum_of_columns": (None, "the Model itself is not right"),
}


def has_torch() -> bool:
    try:
        return environments.find("torch").local
    except FrameworkError:
        return False


needs_torch = pytest.mark.skipif(not has_torch(), reason="no torch here")


READ_ALL = """
import json, sys
sys.path.insert(0, sys.argv[1])
import task
print(json.dumps({path: task.main(path) for path in sys.argv[2:]}))
"""


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Path, Task]:
    """The tasks as `read` reads them, all in one process: its first use of torch takes seconds."""
    softmax = tmp_path_factory.mktemp("task") / "softmax_of_columns.py"
    softmax.write_text(ONE.format(function="softmax", dim=0), encoding="utf-8")
    paths = [softmax, *(TASKS / f"{name}.py" for name in OPS)]
    torch = environments.find("torch").python
    command = [torch, "-c", READ_ALL, str(SCRIPT.parent), *map(str, paths)]
    answers = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {path: task_of(path, answers[str(path)]) for path in paths}


@needs_torch
def test_a_task_without_a_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(FrameworkError, match="it has no Model"):
        read(tmp_path / "none.py")


@pytest.fixture
def one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task is read, and its Model judged, once for several candidates and assertions."""
    kept: dict[Any, Any] = {}
    judge = tasks.judge

    def judged(kernel: str, op: Any, **settings: Any) -> Judgement:
        if not Path(kernel).name.startswith("Model_"):
            return judge(kernel, op, **settings)
        if "Model" not in kept:
            kept["Model"] = judge(kernel, op, **settings)
        return kept["Model"]

    monkeypatch.setattr(tasks, "read", once(tasks.read, kept))
    monkeypatch.setattr(tasks, "judge", judged)


@needs_torch
@pytest.mark.usefixtures("one_model")
def test_a_candidate_is_judged_as_the_op_of_its_model(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(ONE.format(function="softmax", dim=1), encoding="utf-8")
    """Right ones: test_a_new_model_is_judged_as_the_op_of_its_task."""
    (tmp_path / "bad.py").write_text(NEW.format(change=" * 1.001"), encoding="utf-8")
    command = ["judge", str(tmp_path / "bad.py"), "--task", str(tmp_path / "task.py")]
    result = CliRunner().invoke(app, [*command, "--level", "quick", "--seed", "3", "--json"])
    record = json.loads(result.stdout)
    assert (result.exit_code, record["verdict"], record["leading_axes"]) == (1, "wrong", [1])
    assert record["task"]["calls"][0]["covered"] == "op"
    example = tasks.read(tmp_path / "task.py")  # without its 1.6 billion numbers
    assert (example.calls, example.inputs) == ((("softmax", "softmax"),), ((4096, 393216),))


@needs_torch
def test_a_model_that_is_another_op_here_is_not_judged(
    readings: Mapping[Path, Task], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tasks, "read", readings.__getitem__)
    (tmp_path / "new.py").write_text(NEW.format(change=""), encoding="utf-8")
    command = ["judge", str(tmp_path / "new.py"), "--task", str(next(iter(readings)))]
    result = CliRunner().invoke(app, [*command, "--level", "quick"])
    assert result.exit_code == 3  # not judged, which is not wrong
    assert "as softmax, the Model itself is not right" in " ".join(result.output.split())
    assert "times the bound (call 1 of " in " ".join(result.output.split())


@needs_torch
def test_a_candidate_that_keeps_what_its_constructor_computed_is_refused(tmp_path: Path) -> None:
    names = {"weight": "layer.weight", "bias": "layer.bias"}
    example = Task(
        TASKS / "linear.py", (("linear", "linear"),), ((64, 96),), parameters=tuple(names.values()),
        binding=Binding({"x": 0}, names, {}, {"o": (80,), "k": (96,)}),
        state={"layer.weight": (80, 96), "layer.bias": (80,)},
    )  # fmt: skip
    seat = tasks._seat(tmp_path, example, example.path, "PackedOnce", "linear")
    with pytest.raises(FrameworkError, match=r"does not change with its parameter layer\.weight"):
        tasks.judge(seat, "linear", level="quick")


@needs_torch
@pytest.mark.parametrize("name", OPS)
def test_each_function_of_a_task_is_said_to_be_covered_or_not(
    name: str, readings: Mapping[Path, Task]
) -> None:
    ops, is_op = OPS[name]
    example = readings[TASKS / f"{name}.py"]
    assert (tuple(example.ops), example.is_op) == (ops, is_op)
    told = coverage(example.to_dict())
    assert len(told) == len(example.calls)
    assert all(any(name in line for line in told) for name, _ in example.calls)


@needs_torch
@pytest.mark.parametrize("name", one_in(4, VERDICTS))
def test_a_new_model_is_judged_as_the_op_of_its_task(
    name: str, readings: Mapping[Path, Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "read", readings.__getitem__)
    verdict, told = VERDICTS[name]
    task = str(TASKS / f"{name}.py")
    command = ["judge", task, "--task", task, "--level", "quick", "--seed", "3"]
    result = CliRunner().invoke(app, command if told else [*command, "--json"])
    assert result.exit_code == (3 if verdict is None else verdict != "right")
    assert told in result.output
    if verdict:
        assert json.loads(result.stdout)["verdict"] == verdict
