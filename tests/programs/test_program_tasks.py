"""A task's Model is a program, read at smaller sizes of its file."""

from pathlib import Path

import numpy as np
import pytest

from refkernels import registry
from refkernels.programs import tasks

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
    op, sizes = tasks.task_op(tmp_path / "large.py")
    assert registry.get("task_large") is op
    assert sizes.keys() == {"batch_size", "features"}
    shape = sizes["batch_size"], sizes["features"]
    assert 8 <= np.prod(shape) + 7 * (shape[1] + 1) + 7 * shape[0] <= tasks.MOST
    x = np.ones(shape, np.float32)
    weight = np.ones((7, shape[1]), np.float32)
    bias = np.arange(7, dtype=np.float32)
    inputs = {"x": x, "linear.weight": weight, "linear.bias": bias}
    y = op.evaluate("forward", inputs, {})["y"]
    assert np.array_equal(y.hi, np.broadcast_to(3.0 * (shape[1] + bias), (shape[0], 7)))
