"""One intermediate result in a narrower format: in gradients, beside others, and in MindSpore."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy_kernels import F, cast, layernorm, normal, softmax
from presence import interpreter_of

import refkernels

RNG = np.random.default_rng(3)
HEADS = {name: RNG.standard_normal((3, 3, 9, n)) for name, n in (("q", 8), ("k", 8), ("v", 5))}
CAUSAL = {"causal": "top_left"}


def gradients(dy: Any, q: Any, k: Any, v: Any, of_scores: Any, of_slopes: Any = np.copy) -> Any:
    """`of_slopes`: the gradient of a cast of the scores is cast too."""
    root = q.shape[-1] ** -0.5
    scores = of_scores(q @ k.swapaxes(-1, -2) * root)
    p = softmax(np.where(np.tri(9, dtype=bool), scores, -np.inf))
    dp = dy @ v.swapaxes(-1, -2)
    ds = of_slopes(p * (dp - (p * dp).sum(-1, keepdims=True)))
    return {
        "dq": ds @ k * root,
        "dk": ds.swapaxes(-1, -2) @ q * root,
        "dv": p.swapaxes(-1, -2) @ dy,
    }


def test_a_norm_whose_results_are_stored_in_16_bits_has_no_one_pass_variance() -> None:
    def stored(array: Any) -> Any:
        return array.astype(ml_dtypes.bfloat16).astype(array.dtype)

    x, weight, bias = (
        stored(F(mean + spread * normal(*shape)))
        for mean, spread, shape in ((100, 1, (16, 256)), (1, 0.1, (256,)), (0, 0.1, (256,)))
    )
    scaled = stored(stored(layernorm(x)) * weight)
    arrays = {"x": x, "weight": weight, "bias": bias}
    inputs = {name: array.astype(ml_dtypes.bfloat16) for name, array in arrays.items()}
    found = refkernels.explain("layernorm", inputs, (scaled + bias).astype(ml_dtypes.bfloat16))
    assert found.verdict == "exceeds_bound"
    assert all(c.cause != "naive_variance" for c in found.candidates if not c.ruled_out)


@pytest.mark.parametrize("casts", [(cast, cast), (cast,), (np.copy,)])
def test_the_gradient_of_a_cast_is_a_cast(casts: Any) -> None:
    inputs = {"dy": RNG.standard_normal((3, 3, 9, 5)), **HEADS}
    found = refkernels.explain(
        "attention",
        inputs,
        gradients(**inputs, **dict(zip(("of_scores", "of_slopes"), casts, strict=False))),
        CAUSAL,
        "backward",
    )
    rounded = casts != (np.copy,)
    assert found.cause == ("intermediate_rounded" if rounded else None)
    explained = {c.output for c in found.candidates if c.cause == "intermediate_rounded"}
    assert explained == ({"dq", "dk", "dv"} if rounded else set())


def test_mindspore_masks_the_scores_of_attention_in_float32(session_for: Any) -> None:
    reply = session_for("mindspore").run("attention", "forward", HEADS, CAUSAL)
    assert reply.ok, reply.reason
    found = refkernels.explain("attention", HEADS, reply.outputs, CAUSAL)
    assert (found.cause, found.confidence) == ("intermediate_rounded", "proven")
    told = {"intermediate": "matmul(q, k) 1 / sqrt(8)", "format": "float32"}
    assert found.candidates[0].details == told


MASKED = """
import sys
import mindspore as ms
import numpy as np

x, mask = ms.Tensor(np.load(sys.argv[1])), ms.Tensor(np.array([True, False]))
fills = -1.0, ms.Tensor(-1.0, ms.float64)
print(*(float(ms.ops.masked_fill(x, mask, fill).asnumpy()[1]) for fill in fills))
"""


def test_masked_fill_of_mindspore_rounds_only_beside_a_number(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([0.0, 0.1]))
    command = [interpreter_of("mindspore").python, "-c", MASKED, str(tmp_path / "x.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [float(word) for word in done.stdout.split()[-2:]] == [float(F(0.1)), 0.1]
