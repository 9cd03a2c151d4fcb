"""Causes that the data cannot separate are not proven, but for what they share; and a model answers
only for its outputs."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy_kernels import cast, normal

import refkernels
from refkernels.arithmetic import formats
from refkernels.diagnosis.variants.precision import narrowings, rounded
from refkernels.testing import assert_kernel

Array = npt.NDArray[Any]
P = {"tf32 even": 11, "tf32 away": 11, "tf32": 11, "float16": 11, "bfloat16": 8}


def narrowed(a: Array, b: Array) -> dict[str, tuple[str, list[Array]]]:
    """By the way in which factors may be narrowed: the cause, and the factors."""
    ways = {}
    for format in (formats.TF32, formats.BFLOAT16, formats.BINARY16):
        *rounded_ways, _ = narrowings({"a": a, "b": b}, format)
        for cause, told, arrays in rounded_ways:
            ways[" ".join((format.name, *told.values()))] = cause, [arrays["a"], arrays["b"]]
    return ways


def in_sequence(a: Array, b: Array) -> Array:
    return np.add.accumulate(a[:, :, None] * b, axis=1)[:, -1]


def inputs(bits: int, rng: np.random.Generator) -> Array:
    """Numbers of so many bits, near 1."""
    return (1 + rng.integers(0, 2 ** (bits - 1), (12, 12)) * 2.0 ** (1 - bits)).astype(np.float32)


@pytest.mark.parametrize(
    ("way", "bits"),
    [
        (way, bits)
        for way in P
        for bits in (9, 12, 13, 24)
        if bits > P[way] and not (way == "tf32" and bits < 24) and not (" " in way and bits == 24)
    ],  # of 24 bits no number here is a tie
)
def test_formats_that_round_the_inputs_alike_prove_what_they_share(way: str, bits: int) -> None:
    rng = np.random.default_rng(bits)
    a, b = inputs(bits, rng), inputs(bits, rng)
    ways = narrowed(a, b)
    c = in_sequence(*ways[way][1])
    alike = {cause for cause, arrays in ways.values() if np.array_equal(arrays, ways[way][1])}
    explanation = refkernels.explain("matmul", {"a": a, "b": b}, {"c": c})
    assert {c.cause for c in explanation.candidates if not c.ruled_out and c.model} == alike
    proven = {c.cause for c in explanation.candidates if c.confidence == "proven"}
    # Both keep 11 bits, which is what the first says.
    shared = {"tf32_inputs"} if alike == {"tf32_inputs", "fp16_inputs"} else alike
    assert proven <= shared
    assert len(shared) == 1


def test_a_right_looking_answer_proves_no_format_either_where_two_agree() -> None:
    """One input of 2048 loses its last bit: the errors are ordinary, and any format does that."""
    a, b = (rounded(normal(*s, seed=1), "bfloat16") for s in ((1, 2048), (2048, 48)))
    a[0, 0] = 1 + 2.0**-12
    narrow = np.where(a == a[0, 0], np.float32(1), a)
    explanation = refkernels.explain("matmul", {"a": a, "b": b}, {"c": in_sequence(narrow, b)})
    assert explanation.verdict == "rounding"
    fits = {candidate.cause for candidate in explanation.candidates if not candidate.ruled_out}
    assert fits >= {"tf32_inputs", "bf16_inputs", "fp16_inputs"}
    assert "proven" not in {candidate.confidence for candidate in explanation.candidates}


def test_a_model_of_narrow_factors_says_nothing_of_the_bias() -> None:
    x, weight, bias = normal(16, 24), normal(16, 24, seed=1), normal(16, seed=3)
    y = in_sequence(rounded(x, "bfloat16"), rounded(weight, "bfloat16").T) + bias
    explanation = refkernels.explain("linear", {"x": x, "weight": weight, "bias": bias}, {"y": y})
    assert (explanation.cause, explanation.confidence) == ("bf16_inputs", "proven")
    best = explanation.candidates[0]
    assert best.model
    assert best.details["format"] == "bfloat16"
    assert "bias" not in best.details.get("inputs", "")


@pytest.mark.usefixtures("causes")
def test_an_op_of_one_s_own_is_explained_and_probed() -> None:
    """`assert_kernel` quotes the cause, and `probe` takes the op, though no registry has it."""

    def doubled(xp: Any, x: Any) -> Any:
        return x + x

    mine = refkernels.oracle(doubled, "x[...] -> y[...]").op
    x = np.random.default_rng(4).standard_normal(64).astype(np.float32)
    with pytest.raises(AssertionError, match=r"Cause: .*scale_factor.*\n.*Next step") as failure:
        assert_kernel(mine, {"x": x}, 3 * x)
    assert "refkernels.explain failed" not in str(failure.value)
    assert refkernels.probe(mine, {"x": x}, {"y": 3 * x}).to_dict()["op"] == mine.name


def test_a_flush_that_leaves_a_block_of_zeros_is_not_an_unwritten_block() -> None:
    x = np.linspace(-100, 3, 400).astype(np.float32)
    y = np.exp(x.astype(np.float64)).astype(np.float32)
    y[y < 2.0**-126] = 0
    explanation = refkernels.explain("exp", {"x": x}, {"y": y})
    assert (explanation.cause, explanation.confidence) == ("flush_to_zero", "proven")
    assert "unwritten" not in explanation.summary


def test_a_nan_is_no_lost_digit_and_three_in_a_row_are_one_block_or_single() -> None:
    """Two patterns of the same elements prove neither."""
    x = np.random.default_rng(5).uniform(-99, 9, 1000).astype(np.float32)
    y = np.sin(x.astype(np.float64)).astype(np.float32)
    y[400] = np.nan
    single = refkernels.explain("sin", {"x": x}, {"y": y})
    assert (single.cause, single.confidence) == ("corrupted_elements", "proven")
    y[401:403] = np.nan
    several = refkernels.explain("sin", {"x": x}, {"y": y})
    named = [c for c in several.candidates if c.confidence and c.evidence]
    assert {candidate.cause for candidate in named} == {"unwritten_elements", "corrupted_elements"}
    assert {candidate.confidence for candidate in named} == {"consistent"}
    assert several.confidence == "consistent"
    assert all(set(c.evidence.survivors) == {rival.cause for rival in named} for c in named)


def test_right_elements_are_no_evidence_of_a_cause_that_says_nothing_of_them() -> None:
    """Eight elements have a bias that is left out: thousands of right ones beside it do not tell
    more, but for scales from s to s / 2^7."""
    rng, bits = np.random.default_rng(6), []
    for n in (64, 4096):
        x, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 1), (n, 1)))
        bias = np.zeros(n, np.float32)
        bias[1 :: n // 8] = 0.7
        inputs = {"x": x, "weight": weight, "bias": bias}
        explanation = refkernels.explain("linear", inputs, {"y": x @ weight.T})
        (named,) = (c for c in explanation.candidates if c.cause == "missing_bias")
        assert named.evidence is not None
        bits.append(named.evidence.bits)
    assert bits[1] < bits[0] + 8 * 7.0 + 3.0  # the 8 scales are 3 bits


def test_a_cause_is_not_named_first_where_another_output_refutes_it() -> None:
    """A gradient that is not scaled is the same whether it was rounded to float16 before or after:
    the norm of the unrounded gradients tells."""
    grads = normal(203, scale=0.01)
    inputs = {"grads": grads, "tensor": np.zeros(203, np.int64)}
    outputs = {"clipped": cast(grads, np.float16), "norm": np.max(np.abs(grads))}
    params = {"max_norm": 1.0, "norm_type": np.inf}
    found = refkernels.explain("clip_by_global_norm", inputs, outputs, params)
    assert found.cause in ("wrong_dtype", "intermediate_rounded")  # of the result: the same
    assert "fp16_inputs" in {c.cause for c in found.candidates if not c.ruled_out}


def test_rotated_running_sums_are_permuted_though_some_are_near_each_other() -> None:
    x = normal(1000)
    y = np.roll(np.cumsum(x), 1)
    assert refkernels.explain("cumsum", {"x": x}, {"y": y}, {"axis": 0}).cause == "permuted"
