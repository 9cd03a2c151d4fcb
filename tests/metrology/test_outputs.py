"""Outputs as kernels return them: names, kept axes, and a bound for every mix of formats."""

from collections import namedtuple
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hunting import HUNT
from hypothesis import given, settings
from hypothesis import strategies as st

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.metrology import outputs
from refkernels.metrology.judgement import judge
from refkernels.op import DTYPES
from refkernels.truth import Truth

LAYERNORM, SIN = registry.get("layernorm"), registry.get("sin")
Y, MEAN, RSTD = np.ones((2, 3), np.float32), np.ones(2, np.float32), np.full(2, 2, np.float32)
Triple = namedtuple("Triple", "y mean rstd")


@pytest.mark.parametrize(
    ("handed_in", "names"),
    [
        (Y, ["y"]),
        ((Y,), ["y"]),
        ((Y, MEAN, RSTD), ["y", "mean", "rstd"]),
        ([Y, MEAN], ["y", "mean"]),
        ((Y, None, RSTD), ["y", "rstd"]),
        (Triple(Y, MEAN, RSTD), ["y", "mean", "rstd"]),
        ({"rstd": RSTD, "y": Y, "mean": None}, ["y", "rstd"]),
        ([[1.0, 2.0]], ["y"]),
        ([1.0, 2.0], ["y"]),
        ((1.0, 2.0), ["y"]),
    ],
)
def test_outputs_come_by_name_in_order_or_alone(handed_in: Any, names: list[str]) -> None:
    arrays = outputs.named(LAYERNORM, "forward", handed_in)
    assert list(arrays) == names
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    assert "rstd" not in arrays or arrays["rstd"] is RSTD


@pytest.mark.parametrize(
    ("handed_in", "words"),
    [
        ((), "y, mean, rstd, but none of them was given"),
        ((None, None), "y, mean, rstd, but none of them was given"),
        ({}, "y, mean, rstd, but none of them was given"),
        ({"z": Y}, "gives y, mean, rstd, not 'z'"),
        ((Y, MEAN, RSTD, Y), "in this order, but 4 outputs"),
        (namedtuple("Other", "out")(Y), "not 'out'"),
    ],
)
def test_what_the_op_does_not_give_is_refused(handed_in: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        outputs.named(LAYERNORM, "forward", handed_in)


def test_only_statistics_may_keep_their_axes() -> None:
    shapes = {"y": (2, 3), "mean": (2,), "rstd": (2,)}
    arrays = {"y": Y, "mean": MEAN[:, None], "rstd": RSTD[None]}
    trimmed = outputs.without_kept_axes(LAYERNORM, "forward", arrays, shapes)
    assert {name: array.shape for name, array in trimmed.items()} == {
        "y": (2, 3), "mean": (2,), "rstd": (1, 2),
    }  # fmt: skip
    gradients = {"dx": (2, 3), "dweight": (3,)}
    kept = {"dweight": np.ones((3, 1), np.float32)}
    assert outputs.without_kept_axes(LAYERNORM, "backward", kept, gradients) == kept


SHAPES = {
    "matmul": {"a": (3, 7), "b": (7, 2), "dc": (3, 2)},
    "linear": {"x": (3, 7), "weight": (2, 7), "bias": (2,), "dy": (3, 2)},
    "layernorm": {"x": (3, 7), "weight": (7,), "bias": (7,), "dy": (3, 7)},
}


@settings(max_examples=12 * HUNT, deadline=None)
@given(
    name=st.sampled_from(["matmul", "linear", "layernorm", "sin", "gelu", "exp"]),
    direction=st.sampled_from(["forward", "backward"]),
    given_formats=st.lists(st.sampled_from(DTYPES), min_size=4, max_size=4),
    format=st.sampled_from(DTYPES),
    exponent=st.sampled_from([-150, -130, -20, -10, 0, 3, 6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_mix_of_formats_accuses_a_kernel_that_rounds_once(
    name: str, direction: Any, given_formats: list[str], format: str, exponent: int, seed: int
) -> None:
    """The plain algorithm in a working format that holds the inputs, rounded once to the output's,
    keeps the output's bound: with inputs of any formats, the output wider or narrower."""
    op, rng = registry.get(name), np.random.default_rng(seed)
    target = formats.get(format)
    shapes = SHAPES.get(name, {"x": (7,), "dy": (7,)})
    same = given_formats[:1] * 4 if op.elementwise else given_formats  # dy and x have one format
    inputs = {
        key: formats.round_to(np.ldexp(rng.standard_normal(shapes[key]), exponent), own_format)
        for key, own_format in zip(op.takes(direction), same, strict=False)
    }
    asked = outputs.ask(
        op, direction, inputs, op.params, dict.fromkeys(op.names(direction), target)
    )
    finer = op.plain(direction, inputs, op.params, formats.BINARY64)
    answers = [asked.plain]
    if format != "float64":
        answers.append({key: formats.round_to(to_float64(a), target) for key, a in finer.items()})
    looked_at = 0
    for answer in answers:
        for output, got in answer.items():
            record = judge(
                op, direction, output, got, asked.reference[output],
                bound=asked.bound[output], inputs=inputs, params=op.params,
            )  # fmt: skip
            assert record["verdict"] in ("rounding", "correctly_rounded"), (output, record)
            looked_at += got.size
    assert looked_at


@pytest.mark.parametrize("format", ["float16", "bfloat16"])
def test_statistics_in_float32_leave_y_its_bound_and_have_float32_s(format: str) -> None:
    storage = formats.get(format).storage
    x = np.random.default_rng(3).standard_normal((4, 9)).astype(storage)
    narrow = {"y": formats.get(format)}
    mixed = {**narrow, "mean": formats.BINARY32, "rstd": formats.BINARY32}
    same = dict.fromkeys(mixed, formats.get(format))
    asked = outputs.ask(LAYERNORM, "forward", {"x": x}, {"eps": 1e-5}, mixed)
    stored = outputs.ask(LAYERNORM, "forward", {"x": x}, {"eps": 1e-5}, same)
    wide = LAYERNORM.bound("forward", {"x": x}, {"eps": 1e-5}, formats.BINARY32)
    np.testing.assert_array_equal(asked.bound["y"], stored.bound["y"])
    for name in ("mean", "rstd"):
        np.testing.assert_array_equal(asked.bound[name], wide[name])
        assert np.all(asked.bound[name] < stored.bound[name])
        assert asked.plain[name].dtype == np.float32


def test_the_plain_algorithm_reads_wider_inputs_as_they_are() -> None:
    x = np.array([1.0, 1.0 + 2.0**-20], np.float32)
    answer = Truth(SIN, "forward", {"x": 1003 * x}, {}, formats.BFLOAT16).plain()["y"]
    assert answer.dtype == ml_dtypes.bfloat16
    right = np.sin((1003 * x).astype(np.float64)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(answer, right)
    assert answer[0] != SIN.plain("forward", {"x": 1003 * x}, {}, formats.BFLOAT16)["y"][0]
