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
    return {name: one["format"] for name, one in explanation.evidence["outputs"].items()}


def test_statistics_in_float32_beside_y_in_16_bits_are_nothing_to_explain() -> None:
    y, mean, rstd = normalised(X)
    found = refkernels.explain("layernorm", {"x": X}, (y, mean, rstd), EPS)
    assert found.verdict in ("rounding", "correctly_rounded")
    assert formats_of(found) == {"y": "bfloat16", "mean": "float32", "rstd": "float32"}
    assert found.format == "bfloat16"


def test_a_statistic_that_lost_digits_is_found_in_its_own_format() -> None:
    y, mean, rstd = normalised(X)
    stored = rstd.astype(X.dtype).astype(np.float32)
    found = refkernels.explain("layernorm", {"x": X}, (y, mean, stored), EPS)
    assert found.verdict == "exceeds_bound"
    assert found.cause == "wrong_dtype"
    assert "the named float32 forms" in found.summary
    found.to_markdown()


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_as_many_outputs_as_there_are_in_the_op_s_order(outputs: int) -> None:
    found = refkernels.explain("layernorm", {"x": X}, normalised(X)[:outputs], EPS)
    assert len(found.evidence["outputs"]) == outputs


def test_float32_out_of_16_bits_is_explained_as_float32() -> None:
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((5, 64), (64, 7)))
    c = a.astype(np.float32) @ b.astype(np.float32)
    assert refkernels.explain("matmul", {"a": a, "b": b}, c).verdict == "rounding"
    narrow = c.astype(np.float16).astype(np.float32)
    found = refkernels.explain("matmul", {"a": a, "b": b}, {"c": narrow})
    assert (found.verdict, found.format, found.cause) == ("exceeds_bound", "float32", "wrong_dtype")


@pytest.mark.parametrize("op", ["sin", "gelu"])
@pytest.mark.parametrize("narrow", [np.float16, ml_dtypes.bfloat16])
def test_functions_of_one_variable_are_explained_in_the_output_s_format(
    op: str, narrow: Any
) -> None:
    wide = np.random.default_rng(10).normal(0, 2, 300).astype(np.float32)
    exact = refkernels.registry.get(op).evaluate("forward", {"x": wide}, {})["y"]
    found = refkernels.explain(op, {"x": wide}, exact.round(np.dtype(narrow).name)[0])
    assert found.verdict == "correctly_rounded"
    x = wide.astype(narrow)
    exact = refkernels.registry.get(op).evaluate("forward", {"x": x}, {})["y"]
    assert refkernels.explain(op, {"x": x}, exact.round("float32")[0]).cause is None
    wrong = 1.01 * np.asarray(exact).astype(np.float32)
    found = refkernels.explain(op, {"x": x}, wrong)
    assert found.verdict in ("exceeds_bound", "invariant_violated")


def test_kernels_may_keep_statistics_in_different_formats() -> None:
    y, mean, rstd = normalised(X)
    narrow = {"y": y, "mean": mean[:, 0].astype(X.dtype)}
    other = {"y": y, "mean": mean[:, 0].astype(np.float16)}
    kernels = {"a": (y, mean, rstd), "b": narrow, "c": other}
    found = refkernels.explain("layernorm", {"x": X}, kernels, EPS)
    assert formats_of(found.kernels["b"]) == {"y": "bfloat16", "mean": "bfloat16"}
    assert formats_of(found.kernels["a"])["mean"] == "float32"
    assert {one.verdict for one in found.kernels.values()} <= {"rounding", "correctly_rounded"}
    assert set(found.differences["a", "b"].outputs) == {"y", "mean"}
    assert found.differences["b", "c"].outputs["mean"]["elements"] == 6


def test_first_outputs_of_two_formats_are_one_sentence() -> None:
    y = normalised(X)[0]
    with pytest.raises(ValueError, match=r"y is float16 where the first kernel's is bfloat16"):
        refkernels.explain("layernorm", {"x": X}, {"a": {"y": y}, "b": {"y": y.astype(np.float16)}})
    with pytest.raises(ValueError, match=r"mean has shape \(1, 6\)"):
        refkernels.explain("layernorm", {"x": X}, {"y": y, "mean": np.zeros((1, 6), np.float32)})


def test_an_explanation_shows_itself_in_a_line_and_in_markdown() -> None:
    x = np.random.default_rng(1).normal(100, 1, (32, 64)).astype(np.float32)
    right = normalised(x)[0]
    found = refkernels.explain("layernorm", {"x": x}, 3 * right, EPS)
    shown = "layernorm forward in float32: exceeds_bound; unusual; scale_factor, proven"
    assert repr(found) == f"<Explanation of {shown}>"
    both = refkernels.explain("layernorm", {"x": x}, {"mine": {"y": right}, "old": {"y": right}})
    assert repr(both).startswith("<Explanation of layernorm forward in float32: rounding")
    assert repr(both).endswith("; 2 kernels>")
    assert len(repr(both)) < 200
    markdown = found._repr_markdown_()
    assert found.summary[:40] in markdown
    assert "scale_factor" in markdown
    assert len(markdown) < len(found.to_markdown())
