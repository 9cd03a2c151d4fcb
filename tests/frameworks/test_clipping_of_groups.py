"""Frameworks that clip group by group: within the bound, and distinguished from the global norm."""

from collections.abc import Callable

import numpy as np
import pytest

from refkernels import explain
from refkernels.frameworks.gateway import Session

TENSOR = np.repeat(np.arange(5), [5, 98, 100, 7, 40])
GRADS = np.random.default_rng(5).standard_normal(TENSOR.size).astype(np.float32)


@pytest.mark.parametrize("name", ["torch", "oneflow", "mindspore"])
def test_a_group_is_clipped_by_its_own_norm(
    name: str, session_for: Callable[[str], Session]
) -> None:
    params, inputs = {"max_norm": 1.0}, {"grads": GRADS, "tensor": TENSOR}
    grouped = {"grads": GRADS, "tensor": np.array([0, 0, 1, 1, 1])[TENSOR]}
    own = {**params, "way": "eps"}
    reply = session_for(name).run("clip_by_norm", "forward", grouped, own)
    assert reply.ok, reply.reason
    right = explain("clip_by_norm", grouped, reply.outputs, own)
    assert right.verdict in ("rounding", "correctly_rounded")
    explanation = explain("clip_by_global_norm", inputs, reply.outputs, params)
    assert (explanation.verdict, explanation.cause) == ("exceeds_bound", "clipped_per_group")
    assert dict(explanation.candidates[0].details) == {"groups": "0, 1; 2, 3, 4"}
