"""A task's Model is a program, read at smaller sizes of its file."""

from pathlib import Path

import numpy as np
import pytest

from refkernels import registry
from refkernels.programs import tasks

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
batch_size, features, scale = 4096, 8192, 3
class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, 7)
    def forward(self, x):
        return torch.relu(self.linear(x)) * scale
def get_inputs():
    return [torch.rand(batch_size, features)]
def get_init_inputs():
    return [features]
"""


@pytest.mark.framework("torch")
def test_a_model_is_read_at_sizes_that_are_small_enough(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text(TASK, encoding="utf-8")
    op, program = tasks.task_op(tmp_path / "large.py")
    assert registry.get("task_large") is op
    assert program.sizes.keys() == {"batch_size", "features"}
    shape = program.sizes["batch_size"], program.sizes["features"]
    assert shape[0] < 4 < shape[1]  # batches first
    assert 8 <= np.prod(shape) + 7 * (shape[1] + 1) + 7 * shape[0] <= tasks.MOST
    assert program.text == TASK.replace("4096, 8192", f"{shape[0]}, {shape[1]}")
    x = np.ones(shape, np.float32)
    weight = np.ones((7, shape[1]), np.float32)
    bias = np.arange(7, dtype=np.float32)
    inputs = {"x": x, "linear.weight": weight, "linear.bias": bias}
    y = op.evaluate("forward", inputs, {})["y"]
    assert np.array_equal(y.hi, np.broadcast_to(3.0 * (shape[1] + bias), (shape[0], 7)))


@pytest.mark.framework("torch")
def test_integers_that_are_equal_shrink_together_and_a_norm_keeps_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MOST", 1)
    (tmp_path / "normed.py").write_text(NORMED, encoding="utf-8")
    _, program = tasks.task_op(tmp_path / "normed.py")
    length, places = (program.sizes[name] for name in ("length", "64 in line 13"))
    assert program.sizes == {
        "length": length, "4096 in line 13": length, "64 in line 13": places,
    }  # fmt: skip
    assert [item.tensor.shape for item in program.inputs if item.kind == "input"] == [
        (8, length, places), (length, places),
    ]  # fmt: skip
    assert 32 <= length * places < 64
