"""Section 2: a hundred steps of SGD on three linear layers, clipped as one group or by parameter.

`clip_seed.npz`: the survey's weights, its one row, and PyTorch's losses in float64.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from facts.asked import SIZE, Fact, Seats, Seen, compared
from refkernels.frameworks import environments

DATA = Path(__file__).parent / "clip_seed.npz"
WHOLE, EACH = "one group", "each parameter"
PRINTED = (0, 1, 2, 3, 5, 10, 20, 50, 99)
EARLY = 10  # steps in which rounding has not grown yet
START = """
import json, sys
import numpy as np
data, dtype, each = np.load({path!r}), {dtype!r}, {each!r}
names = [f"fc{{k}}.{{kind}}" for k in (1, 2, 3) for kind in ("weight", "bias")]
arrays = [data[name].astype(dtype) for name in names]
row, label = data["x"].astype(dtype), data["y"].astype(dtype)
losses = []
def loss_of(x, y, w):
    for k in (0, 2, 4):
        x = x @ w[k].T + w[k + 1] if hasattr(w[k], "T") else x @ w[k].t() + w[k + 1]
    return ((x - y) ** 2).sum()
"""
LIKE_TORCH = """
import {module} as framework
{clip}
w = [framework.nn.Parameter(framework.tensor(array)) for array in arrays]
x, y = framework.tensor(row), framework.tensor(label)
stepper = framework.optim.SGD(w, lr=0.02, momentum=0.9)
for step in range(100):
    loss = loss_of(x, y, w)
    stepper.zero_grad()
    loss.backward()
    losses.append(float(loss.detach().numpy()))
    for group in ([p] for p in w) if each else [w]:
        framework.nn.utils.clip_grad_norm_(group, 1.0)
    stepper.step()
print(json.dumps(losses))
"""
PADDLE = """
import paddle
w = []
for array in arrays:
    w.append(paddle.create_parameter(array.shape, dtype))
    w[-1].set_value(array)
x, y = paddle.to_tensor(row), paddle.to_tensor(label)
by_class = {clip!r} == "ClipGradByGlobalNorm"
stepper = paddle.optimizer.Momentum(0.02, 0.9, w)
for step in range(100):
    loss = loss_of(x, y, w)
    stepper.clear_grad()
    loss.backward()
    losses.append(float(loss))
    for group in ([p] for p in w) if each else [w]:
        if by_class:
            for p, grad in paddle.nn.ClipGradByGlobalNorm(1.0)([(p, p.grad) for p in group]):
                p.grad = grad
        else:
            paddle.nn.utils.clip_grad_norm_(group, 1.0)
    stepper.step()
print(json.dumps(losses))
"""
MINDSPORE = """
import mindspore as ms
from mindspore import nn, ops
ms.set_device("CPU")
w = [ms.Parameter(ms.Tensor(array), name=name) for name, array in zip(names, arrays)]
x, y = ms.Tensor(row), ms.Tensor(label)
slopes = ms.value_and_grad(lambda: loss_of(x, y, w), None, ms.ParameterTuple(w))
stepper = nn.SGD(w, 0.02, 0.9)
clip = {{"clip_by_global_norm": ops.clip_by_global_norm,
         "clip_by_norm": lambda grads, most: ops.clip_by_norm(grads, most)}}[{clip!r}]
for step in range(100):
    loss, grads = slopes()
    losses.append(float(loss.asnumpy()))
    stepper(tuple(clip((g,), 1.0)[0] for g in grads) if each else tuple(clip(grads, 1.0)))
print(json.dumps(losses))
"""
SCRIPTS = {
    "torch": LIKE_TORCH.replace("{module}", "torch"),
    "oneflow": LIKE_TORCH.replace("{module}", "oneflow"),
    "paddle": PADDLE,
    "mindspore": MINDSPORE,
}
# The largest relative difference from PyTorch's float64 in the first steps: one group, each.
DIFFERENCES = (
    ("torch", "float32", "clip_grad_norm_", 1.2e-6, 1.5e-6),
    ("oneflow", "float32", "clip_grad_norm_", 1.2e-5, 2.8e-6),
    ("oneflow", "float64", "clip_grad_norm_", 1.5e-6, 3.5e-6),
    ("paddle", "float32", "ClipGradByGlobalNorm", 9.6e-7, 1.5e-6),
    ("paddle", "float64", "ClipGradByGlobalNorm", 1.3e-6, None),
    ("paddle", "float32", "nn.utils.clip_grad_norm_", 1.2e-5, 7.8e-6),
    ("paddle", "float64", "nn.utils.clip_grad_norm_", 1.3e-6, 3.0e-6),
    ("mindspore", "float32", "clip_by_global_norm", 1.5e-6, 3.4e-6),
    ("mindspore", "float32", "clip_by_norm", 1.4e-6, 3.4e-6),
)
SUMS = "rounding, in another order of summation: the largest of eleven differences"


def losses(framework: str, dtype: str, clip: str, scope: str) -> list[float] | str:
    """The framework's losses, or why there are none."""
    start = START.format(path=str(DATA), dtype=dtype, each=scope == EACH)
    code = start + SCRIPTS[framework].format(
        clip=clip if framework in ("paddle", "mindspore") else ""
    )
    python = environments.find(framework).python
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=300)
    if ran.returncode:
        return f"no answer: {ran.stderr.strip().splitlines()[-1][:120]}"
    return list(map(float, json.loads(ran.stdout.strip().splitlines()[-1])))


def _reference(scope: str) -> list[float]:
    with np.load(DATA, allow_pickle=False) as data:
        return list(map(float, data["one_group" if scope == WHOLE else "per_parameter"]))


def prints(scope: str) -> Callable[[Seats, Fact], Seen]:
    """Whether PyTorch's losses in float64 are the survey's."""

    def see(seats: Seats, fact: Fact) -> Seen:
        got, expected = losses("torch", "float64", "clip_grad_norm_", scope), _reference(scope)
        if isinstance(got, str):
            return Seen(got, False)
        return compared([got[k] for k in PRINTED], [expected[k] for k in PRINTED], 7)

    return see


def differs(dtype: str, clip: str, scope: str, figure: float) -> Callable[[Seats, Fact], Seen]:
    """Whether the largest early difference has the size of the survey's, or is smaller."""

    def see(seats: Seats, fact: Fact) -> Seen:
        got, expected = losses(fact.framework, dtype, clip, scope), np.array(_reference(scope))
        if isinstance(got, str):
            return Seen(got, False)
        early = slice(EARLY + 1)
        largest = float(np.max(np.abs(np.array(got)[early] / expected[early] - 1)))
        return Seen(f"{largest:.1e}", 1 / SIZE <= largest / figure <= SIZE)

    return see


CURVES = [
    Fact("2", "torch", f"losses of a hundred clipped steps, {scope} (float64)",
         ", ".join(f"{_reference(scope)[k]:.7g}" for k in PRINTED), prints(scope))
    for scope in (WHOLE, EACH)
]  # fmt: skip
FACTS = [
    *CURVES,
    *(
        Fact("2", framework, f"{clip}, {scope}: losses beside PyTorch's float64, {dtype}",
             f"{figure:.1e}", differs(dtype, clip, scope, figure), SUMS)
        for framework, dtype, clip, *figures in DIFFERENCES
        for scope, figure in zip((WHOLE, EACH), figures, strict=True)
        if figure is not None
    ),
]  # fmt: skip
