"""Outputs in several formats, or in another than the inputs': each is judged in its own."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import refkernels

EPS = {"eps": 1e-5}
X = np.random.default_rng(8).normal(3, 1, (6, 40)).astype(ml_dtypes.bfloat16)


def normalised(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As Triton's tutorial: y in x's format, statistics in float32."""
    wide = x.astype(np.float32)
    mean = wide.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(((wide - mean) ** 2).mean(axis=1, keepdims=True) + np.float32(1e-5))
    return ((wide - mean) * rstd).astype(x.dtype), mean, rstd


def formats_of(explanation: Any) -> dict[str, str]:
    return {name: record["format"] for name, record in explanation.evidence["outputs"].items()}


def test_statistics_in_float32_beside_y_in_16_bits_are_nothing_to_explain() -> None:
    y, mean, rstd = normalised(X)
    explanation = refkernels.explain("layernorm", {"x": X}, (y, mean, rstd), EPS)
    assert explanation.verdict in ("rounding", "correctly_rounded")
    assert formats_of(explanation) == {"y": "bfloat16", "mean": "float32", "rstd": "float32"}
    assert explanation.format == "bfloat16"


def test_a_statistic_that_lost_digits_is_found_in_its_own_format() -> None:
    y, mean, rstd = normalised(X)
    stored = rstd.astype(X.dtype).astype(np.float32)
    explanation = refkernels.explain("layernorm", {"x": X}, (y, mean, stored), EPS)
    assert explanation.verdict == "exceeds_bound"
    assert explanation.cause == "wrong_dtype"
    assert "the named float32 forms" in explanation.summary
    explanation.to_markdown()


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_outputs_in_the_op_s_order_may_stop_early(outputs: int) -> None:
    explanation = refkernels.explain("layernorm", {"x": X}, normalised(X)[:outputs], EPS)
    assert len(explanation.evidence["outputs"]) == outputs


def test_float32_out_of_16_bits_is_explained_as_float32() -> None:
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((5, 64), (64, 7)))
    c = a.astype(np.float32) @ b.astype(np.float32)
    assert refkernels.explain("matmul", {"a": a, "b": b}, c).verdict == "rounding"
    narrow = c.astype(np.float16).astype(np.float32)
    explanation = refkernels.explain("matmul", {"a": a, "b": b}, {"c": narrow})
    assert (explanation.verdict, explanation.format, explanation.cause) == (
        "exceeds_bound",
        "float32",
        "wrong_dtype",
    )


@pytest.mark.parametrize("op", ["sin", "gelu"])
@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
def test_functions_of_one_variable_are_explained_in_the_output_s_format(
    op: str, narrow: Any
) -> None:
    wide = np.random.default_rng(10).normal(0, 2, 300).astype(np.float32)
    exact = refkernels.registry.get(op).evaluate("forward", {"x": wide}, {})["y"]
    explanation = refkernels.explain(op, {"x": wide}, exact.round(np.dtype(narrow).name)[0])
    assert explanation.verdict == "correctly_rounded"
    x = wide.astype(narrow)
    exact = refkernels.registry.get(op).evaluate("forward", {"x": x}, {})["y"]
    assert refkernels.explain(op, {"x": x}, exact.round("float32")[0]).cause is None
    wrong = 1.01 * np.asarray(exact).astype(np.float32)
    explanation = refkernels.explain(op, {"x": x}, wrong)
    assert explanation.verdict in ("exceeds_bound", "invariant_violated")


def test_kernels_may_keep_statistics_in_different_formats() -> None:
    y, mean, rstd = normalised(X)
    narrow = {"y": y, "mean": mean[:, 0].astype(X.dtype)}
    half = {"y": y, "mean": mean[:, 0].astype(np.float16)}
    kernels = {"a": (y, mean, rstd), "b": narrow, "c": half}
    explanation = refkernels.explain("layernorm", {"x": X}, kernels, EPS)
    assert formats_of(explanation.kernels["b"]) == {"y": "bfloat16", "mean": "bfloat16"}
    assert formats_of(explanation.kernels["a"])["mean"] == "float32"
    assert {explained.verdict for explained in explanation.kernels.values()} <= {
        "rounding",
        "correctly_rounded",
    }
    assert set(explanation.differences["a", "b"].outputs) == {"y", "mean"}
    assert explanation.differences["b", "c"].outputs["mean"]["elements"] == 6


def test_first_outputs_of_two_formats_are_one_sentence() -> None:
    y = normalised(X)[0]
    with pytest.raises(ValueError, match=r"y is float16 where the first kernel's is bfloat16"):
        refkernels.explain("layernorm", {"x": X}, {"a": {"y": y}, "b": {"y": y.astype(np.float16)}})
    with pytest.raises(ValueError, match=r"mean has shape \(1, 6\)"):
        refkernels.explain("layernorm", {"x": X}, {"y": y, "mean": np.zeros((1, 6), np.float32)})


def test_an_explanation_has_a_repr_of_one_line_and_markdown() -> None:
    x = np.random.default_rng(1).normal(100, 1, (32, 64)).astype(np.float32)
    right = normalised(x)[0]
    explanation = refkernels.explain("layernorm", {"x": x}, 3 * right, EPS)
    shown = "layernorm forward in float32: exceeds_bound; unusual; scale_factor, proven"
    assert repr(explanation) == f"<Explanation of {shown}>"
    pair = refkernels.explain("layernorm", {"x": x}, {"mine": {"y": right}, "old": {"y": right}})
    assert repr(pair).startswith("<Explanation of layernorm forward in float32: rounding")
    assert repr(pair).endswith("; 2 kernels>")
    assert len(repr(pair)) < 200
    markdown = explanation._repr_markdown_()
    assert explanation.summary[:40] in markdown
    assert "scale_factor" in markdown
    assert len(markdown) < len(explanation.to_markdown())


CODES = {"scale": "codes_as_numbers", "x": "sign_bit_as_digit"}


@pytest.mark.parametrize("part", CODES)
def test_codes_that_are_taken_for_numbers(part: str) -> None:
    x = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
    scale = (2.0 ** (np.arange(16)[:, None] % 7 - 3)).astype(ml_dtypes.float8_e8m0fnu)
    inputs = {"x": x, "scale": scale}
    taken = {**inputs, part: inputs[part].view(np.uint8)}
    y = taken["x"] * taken["scale"].astype(np.float32)
    found = refkernels.explain("dequantize", inputs, y)
    assert (found.cause, found.confidence) == (CODES[part], "proven")
