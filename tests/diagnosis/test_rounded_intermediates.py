"""One intermediate result in a narrower format: named where it is, with the step it belongs to; the
same kernel without the cast is not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from presence import interpreter_of

import refkernels

F = np.float32
RNG = np.random.default_rng(3)
HEADS = {
    "q": RNG.standard_normal((3, 3, 9, 8)), "k": RNG.standard_normal((3, 3, 9, 8)),
    "v": RNG.standard_normal((3, 3, 9, 5)),
}  # fmt: skip
ROWS = {"x": 3 * RNG.standard_normal((14, 20))}
KEEP = np.tril(np.ones((9, 9), bool))
Cast = Callable[[Any], Any]


def cast(format: Any) -> Cast:
    return lambda array: array.astype(format).astype(array.dtype)


def kept(array: Any) -> Any:
    return array


def softmax(x: Any, step: str = "", narrow: Cast = kept) -> Any:
    casts = {name: narrow if name == step else kept for name in ("x - y", "exp(x)", "sum x")}
    e = casts["exp(x)"](np.exp(casts["x - y"](x - x.max(-1, keepdims=True))))
    return e / casts["sum x"](e.sum(-1, keepdims=True))


def log_softmax(x: Any, step: str = "", narrow: Cast = kept) -> Any:
    casts = {name: narrow if name == step else kept for name in ("exp(x)", "log(x)")}
    d = x - x.max(-1, keepdims=True)
    return d - casts["log(x)"](np.log(casts["exp(x)"](np.exp(d)).sum(-1, keepdims=True)))


def masked_scores(q: Any, k: Any, step: str, narrow: Cast) -> Any:
    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5)
    return np.where(KEEP, narrow(scores) if step == "x y" else scores, -np.inf)


def attention(q: Any, k: Any, v: Any, step: str = "", narrow: Cast = kept) -> Any:
    p = softmax(masked_scores(q, k, step, narrow))
    return (narrow(p) if step == "x / y" else p) @ v


def gradients(dy: Any, q: Any, k: Any, v: Any, step: str = "", narrow: Cast = kept) -> Any:
    """`scores`: the gradient of the cast of the scores is cast too."""
    p = softmax(masked_scores(q, k, "x y" if step == "scores" else step, narrow))
    dp = dy @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True))
    ds = narrow(ds) if step == "scores" else ds
    root = q.dtype.type(q.shape[-1] ** -0.5)
    dq, dk = ds @ k * root, ds.swapaxes(-1, -2) @ q * root
    return {"dq": dq, "dk": dk, "dv": p.swapaxes(-1, -2) @ dy}


CAUSAL = {"causal": "top_left"}
KERNELS: tuple[tuple[str, Any, dict[str, Any], dict[str, Any], tuple[str, ...]], ...] = (
    ("softmax", softmax, ROWS, {}, ("x - y", "exp(x)", "sum x")),
    ("log_softmax", log_softmax, ROWS, {}, ("exp(x)", "log(x)")),
    ("attention", attention, HEADS, CAUSAL, ("x y", "x / y")),
)
WRITTEN = {
    "x - y": "x - max(x)", "exp(x)": "exp(x - max(x))", "x y": "matmul(q, k) 1 / sqrt(8)",
    "x / y": "where(…, exp(… - …), 0) / where(…, sum(where(…, …, 0)), 1)",
}  # fmt: skip
CASES = [(*kernel[:4], step) for kernel in KERNELS for step in kernel[4]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[4]}")
def test_a_result_kept_in_float32_is_named_with_its_step(case: Any) -> None:
    op, kernel, inputs, params, step = case
    found = refkernels.explain(op, inputs, kernel(**inputs, step=step, narrow=cast(F)), params)
    cause = "intermediate_rounded" if step in WRITTEN else "float32_statistics"
    assert (found.cause, found.confidence) == (cause, "proven")
    assert step not in WRITTEN or found.candidates[0].details["intermediate"] == WRITTEN[step]


@pytest.mark.parametrize("format", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("step", ["x y", "x / y"])
def test_weights_or_scores_of_16_bits_in_float32_are_named(format: Any, step: str) -> None:
    inputs = {name: array.astype(F) for name, array in HEADS.items()}
    got = attention(**inputs, step=step, narrow=cast(format))
    found = refkernels.explain("attention", inputs, got, CAUSAL)
    assert (found.cause, found.confidence) == ("intermediate_rounded", "proven")
    assert found.candidates[0].details["intermediate"] == WRITTEN[step]


def test_a_norm_whose_results_are_stored_in_16_bits_has_no_one_pass_variance() -> None:
    stored = cast(ml_dtypes.bfloat16)
    x = stored(np.random.default_rng(0).standard_normal((16, 256)) + 100.0).astype(F)
    weight, bias = (stored(F(a + 0.1 * RNG.standard_normal(256))) for a in (1.0, 0.0))
    d = x - x.mean(-1, keepdims=True)
    scaled = stored(stored(d / np.sqrt(np.square(d).mean(-1, keepdims=True) + F(1e-5))) * weight)
    arrays = {"x": x, "weight": weight, "bias": bias}
    inputs = {name: array.astype(ml_dtypes.bfloat16) for name, array in arrays.items()}
    found = refkernels.explain("layernorm", inputs, (scaled + bias).astype(ml_dtypes.bfloat16))
    assert found.verdict == "exceeds_bound"
    assert all(c.cause != "naive_variance" for c in found.candidates if not c.ruled_out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel[0])
def test_the_same_kernel_without_the_cast_is_not_blamed(kernel: Any, dtype: Any) -> None:
    op, function, arrays, params, _ = kernel
    inputs = {name: array.astype(dtype) for name, array in arrays.items()}
    found = refkernels.explain(op, inputs, function(**inputs), params)
    assert found.cause in (None, "summation_order")
    assert found.verdict in ("exact", "correctly_rounded", "rounding")


@pytest.mark.parametrize("step", ["scores", "x y", ""])
def test_the_gradient_of_a_cast_is_a_cast(step: str) -> None:
    inputs = {"dy": RNG.standard_normal((3, 3, 9, 5)), **HEADS}
    got = gradients(**inputs, step=step, narrow=cast(F))
    found = refkernels.explain("attention", inputs, got, CAUSAL, "backward")
    assert found.cause == ("intermediate_rounded" if step else None)
    explained = {c.output for c in found.candidates if c.cause == "intermediate_rounded"}
    assert explained == ({"dq", "dk", "dv"} if step else set())


def test_errors_as_large_without_a_cast_are_no_rounded_intermediate() -> None:
    noise = 1 + RNG.uniform(-1, 1, ROWS["x"].shape) * 2.0**-25
    found = refkernels.explain("softmax", ROWS, softmax(ROWS["x"]) * noise)
    assert found.verdict == "exceeds_bound"
    assert all(c.cause != "intermediate_rounded" for c in found.candidates if not c.ruled_out)


def test_mindspore_masks_the_scores_of_attention_in_float32(session_for: Any) -> None:
    reply = session_for("mindspore").run("attention", "forward", HEADS, CAUSAL)
    assert reply.ok, reply.reason
    found = refkernels.explain("attention", HEADS, reply.outputs, CAUSAL)
    assert (found.cause, found.confidence) == ("intermediate_rounded", "proven")
    assert found.candidates[0].details == {"intermediate": WRITTEN["x y"], "format": "float32"}


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
