"""Tasks in KernelBench's form: candidates judged by their Model, read as a program."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hunting import one_in
from typer.testing import CliRunner

from refkernels import registry
from refkernels.cli.app import app
from refkernels.judging import questions, tasks
from refkernels.judging.challenges import Drawer
from refkernels.programs.program import Larger
from refkernels.testing import judge, junit

TASKS = Path(__file__).parent / "tasks"
NORMED = """
import torch
length, groups = 4096, 4
shape = (length, 1)
class Model(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(shape))
        self.norm = torch.nn.BatchNorm1d(8)
    def forward(self, x, target):
        return self.norm((x * target).transpose(0, 1) * self.scale.view(-1, 1, 1))
def get_inputs():
    return [torch.rand(8, 4096, 64), torch.rand(4096, 64)]
def get_init_inputs():
    return [shape]
"""
TASK = """
import torch
batch_size, features, scale = {batch_size}, 8192, 3
class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, 7)
    def forward(self, x, factor):
        return torch.relu(self.linear(x)) * factor
def get_inputs():
    return [torch.rand(batch_size, features), scale]
def get_init_inputs():
    return [features]
"""
FIXED = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {answer}
ModelNew = Model
def get_inputs():
    return [torch.rand(8, 64, dtype=torch.float16)]
def get_init_inputs():
    return []
"""


@pytest.mark.framework("torch")
def test_a_model_is_read_at_sizes_that_are_small_enough(tmp_path: Path) -> None:
    text = TASK.format(batch_size=4096)
    (tmp_path / "large.py").write_text(text, encoding="utf-8")
    op, program = tasks.read(tmp_path / "large.py")
    assert registry.get("task_large") is op
    assert program.sizes.keys() == {"batch_size", "features"}
    shape = program.sizes["batch_size"], program.sizes["features"]
    assert shape[0] < 4 < shape[1]  # batches first
    assert 8 <= np.prod(shape) + 7 * (shape[1] + 1) + 7 * shape[0] <= tasks.MOST
    assert program.text == text.replace("4096, 8192", f"{shape[0]}, {shape[1]}")
    assert program.larger == (Larger(text, {}, 8192),)
    x = np.ones(shape, np.float32)
    weight, bias = np.ones((7, shape[1]), np.float32), np.arange(7, dtype=np.float32)
    inputs = {"x": x, "linear.weight": weight, "linear.bias": bias}
    y = op.evaluate("forward", inputs, {})["y"]
    assert np.array_equal(y.hi, np.broadcast_to(3.0 * (shape[1] + bias), (shape[0], 7)))
    (tmp_path / "small.py").write_text(program.text, encoding="utf-8")
    result = CliRunner().invoke(app, ["tolerances", "--oracle", f"{tmp_path / 'small.py'}:Model"])
    assert (result.exit_code, result.output.split()[:4]) == (0, ["output", "atol", "rtol", "ulp"])


@pytest.mark.framework("torch")
def test_what_no_machine_can_hold_is_asked_in_each_of_its_sizes_alone(tmp_path: Path) -> None:
    text = TASK.format(batch_size=1 << 36)
    (tmp_path / "huge.py").write_text(text, encoding="utf-8")
    (larger,) = tasks.read(tmp_path / "huge.py")[1].larger  # none has the whole batch
    assert larger.sizes.keys() == {"batch_size"}
    assert 8192 * larger.sizes["batch_size"] <= 1 << 24


@pytest.mark.framework("torch")
def test_integers_that_are_equal_shrink_together_and_a_norm_keeps_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MOST", 1)
    (tmp_path / "normed.py").write_text(NORMED, encoding="utf-8")
    op, program = tasks.read(tmp_path / "normed.py")
    length, places = (program.sizes[name] for name in ("length", "64 in line 13"))
    sizes = {"length": length, "4096 in line 13": length, "64 in line 13": places}
    assert program.sizes == sizes
    given = [item.tensor.shape for item in program.inputs if item.kind == "input"]
    assert given == [(8, length, places), (length, places)]
    monkeypatch.setattr(questions, "ELEMENTS", (1, 1, 1))  # the example is larger than a round's
    drawer = Drawer(op, "forward", "float32")
    assert [*drawer.roles.arguments] == ["x", "target"]  # the parameters have their own values
    assert [c.inputs["x"].shape for c in drawer.typicals(np.random.default_rng(8))] == given[:1] * 2
    assert 32 <= length * places < 64
    (scale,) = (item.array for item in program.inputs if item.name == "scale")
    assert len(np.unique(scale)) == length  # ones would not show that it is left out


@pytest.mark.framework("torch")
def test_channels_that_a_class_fixes_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST", 1)
    answer = "torch.nn.functional.conv_transpose1d(x, x.new_ones(8, 1, 3))"
    (tmp_path / "fixed.py").write_text(FIXED.format(answer=answer), encoding="utf-8")
    assert tasks.read(tmp_path / "fixed.py")[1].inputs[0].tensor.shape[0] == 8


def judged(path: Path, candidate: str, *options: str) -> tuple[int, dict[str, Any]]:
    command = ["judge", candidate, "--task", str(path), "--level", "quick", "--seed", "3"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is doubtful is a flag, no warning
        result = CliRunner().invoke(app, [*command, "--json", *options])
    return result.exit_code, json.loads(result.stdout)


CANDIDATES = [
    ("linear", "ModelNew", "right", ""),
    ("linear", "OtherAtItsOwnSize", "wrong", "own_sizes"),
    ("layer_norm", "ModelNew", "wrong", "wrong_bound"),
    ("attention", "ModelNew", "right", ""),
    ("gelu", "ModelNew", "wrong", "wrong_bound"),
    ("cross_entropy", "ModelNew", "right", ""),
    ("running_sum", "ModelNew", "lower_precision", "lower_precision"),
    ("lookup", "ModelNew", "right", ""),
    ("lookup", "Neighbours", "wrong", "wrong_bound"),
]


@pytest.mark.framework("torch")
@pytest.mark.parametrize(("name", "cls", "verdict", "reason"), one_in(4, CANDIDATES))
def test_a_candidate_is_judged_by_its_model(
    name: str, cls: str, verdict: str, reason: str, tmp_path: Path
) -> None:
    path, page = TASKS / f"{name}.py", tmp_path / "junit.xml"
    code, record = judged(path, f"{path}:{cls}", "--junit", str(page))
    assert (code, record["verdict"]) == (int(verdict != "right"), verdict)
    assert reason in [*(fault["kind"] for fault in record["reasons"]), ""]
    assert ("own_sizes" in record["flags"]) == (verdict == "right" or reason == "own_sizes")
    assert ElementTree.parse(page).getroot().get("failures") == str(code)


@pytest.mark.framework("torch")
def test_a_candidate_that_replaces_a_comparison_is_refused(tmp_path: Path) -> None:
    path, always = TASKS / "gelu.py", "import torch\ntorch.Tensor.allclose = lambda *a: True\n"
    own = always + path.read_text(encoding="utf-8") + "ModelNew = Model\n"
    (tmp_path / "own.py").write_text(own, encoding="utf-8")
    code, record = judged(path, f"{tmp_path / 'own.py'}:ModelNew")
    assert (code, record["verdict"]) == (1, "unfair")
    assert "torch.Tensor.allclose" in str(record["reasons"])


@pytest.mark.framework("torch")
def test_a_task_that_is_fixed_or_cannot_be_read_is_not_judged(tmp_path: Path) -> None:
    path, page = tmp_path / "fixed.py", tmp_path / "junit.xml"
    path.write_text(FIXED.format(answer="x - x"), encoding="utf-8")
    code, record = judged(path, str(path), "--junit", str(page))
    assert (code, record["verdict"], record["score"]) == (3, "not_judged", None)
    assert record["reasons"][0]["kind"] == "too_few_families"
    assert ElementTree.parse(page).getroot().get("errors") == "1"
    unread = {"torch.special.bessel_j0(x)": "bessel_j0"}
    unread["torch.where(x > 2, x, -torch.inf).sin()"] = "a masked -inf, for which it has no rule"
    for answer, said in unread.items():
        path.write_text(FIXED.format(answer=answer), encoding="utf-8")
        judgement = judge(str(path), task=path, seed=3)
        assert (judgement.verdict, judgement.seed) == ("not_judged", 3)
        assert said in judgement.why
        assert judgement.why in junit([judgement])
    with pytest.raises(ValueError, match="leave out the op"):
        judge(str(path), "gelu", task=path)
    path = tmp_path / "log_backward.py"  # forward, in the example's format, of positive numbers
    path.write_text(FIXED.format(answer="x.log(), (2 * x).float()"), encoding="utf-8")
    told = judge(str(path), task=path, seed=3, level="quick")
    assert (told.verdict, told.dtype, told.direction) == ("right", "float16", "forward")


def test_what_rounds_as_the_model_does_is_right_at_its_sizes_and_another_row_is_not(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(0)
    exact = rng.standard_normal((64, 96))
    other = exact.copy()
    other[-1] = exact[0]
    for got, told in ((exact, 0), (other, 1)):
        for folder in ("exact", "got"):
            (tmp_path / folder).mkdir(exist_ok=True)
        np.save(tmp_path / "exact" / "0-0-exact.npy", exact)
        np.save(tmp_path / "exact" / "0-0.npy", exact.astype(np.float32))
        np.save(tmp_path / "got" / "0-0.npy", got.astype(np.float32))
        reasons = tasks._compared(tmp_path, 0, Larger("", {}, 64))
        assert reasons is not None
        assert len(reasons) == told


@pytest.mark.parametrize("values", [np.ones((8, 8)), 1.0 + 1e-7 * np.arange(64.0)])
def test_values_that_differ_by_less_than_rounding_tell_nothing(values: Any) -> None:
    assert tasks._limit(values, values.astype(np.float32), 64) is None
