"""Inputs that are read otherwise, and rows that are few: planted in NumPy, named by `explain`."""

import numpy as np
import pytest

import refkernels

RNG = np.random.default_rng(7)


def drawn(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(scores, axis=-1):
    exponentials = np.exp(scores - scores.max(axis, keepdims=True))
    return exponentials / exponentials.sum(axis, keepdims=True)


def attention(q, k, v, scale=0.25, axis=-1):
    scores = np.einsum("bmd,bnd->bmn", q, k) * np.float32(scale)
    return np.einsum("bmn,bne->bme", softmax(scores, axis), v).astype(np.float32)


def convolution(x, weight, low=0, stride=1):
    """With zeros after x's end, as many as the windows need, and `low` before it."""
    taps = weight.shape[-1]
    padded = np.pad(x, ((0, 0), (0, 0), (low, taps), (low, taps))).astype(np.float64)
    out = [range(0, n - taps + 1 + 2 * (stride > 1), stride) for n in x.shape[2:]]
    windows = np.array([[padded[:, :, i : i + taps, j : j + taps] for j in out[1]] for i in out[0]])
    return np.einsum("ijbckl,ockl->boij", windows, weight).astype(np.float32)


def of_heads():
    """Four queries' heads for each head of keys and values: tiled, not repeated."""
    q, k, v = drawn(8, 6, 16), drawn(2, 6, 16), drawn(2, 6, 16)
    asked = {"q": q, "k": np.repeat(k, 4, 0), "v": np.repeat(v, 4, 0)}
    return "attention", asked, attention(q, np.tile(k, (4, 1, 1)), np.tile(v, (4, 1, 1))), {}


def of_a_kernel():
    x, weight = drawn(2, 3, 8, 8), drawn(4, 3, 3, 3)
    return "conv2d", {"x": x, "weight": weight}, convolution(x, weight.swapaxes(2, 3)), {}


def of_padding():
    x, weight = drawn(2, 3, 8, 8), drawn(4, 3, 3, 3)
    params = {"padding": 1, "stride": 2}
    return "conv2d", {"x": x, "weight": weight}, convolution(x, weight, stride=2), params


def of_a_scale():
    arrays = {name: drawn(2, 8, 16) for name in "qkv"}
    return "attention", arrays, attention(**arrays, scale=1.0), {}


def of_an_axis():
    arrays = {name: drawn(2, 8, 16) for name in "qkv"}
    return "attention", arrays, attention(**arrays, axis=-2), {}


PLANTED = {
    of_heads: ("halves_and_pairs", {"part": "k, v", "axis": 0}),
    of_a_kernel: ("input_transposed", {"part": "weight", "axis": 2}),
    of_padding: ("padding_as_same", {}),
    of_a_scale: ("scale_missing", {}),
    of_an_axis: ("softmax_over_queries", {}),
}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.__name__)
def test_the_fault_is_proven(planted) -> None:
    cause, details = PLANTED[planted]
    op, inputs, y, params = planted()
    explanation = refkernels.explain(op, inputs, {"kernel": {"y": y}}, params)
    assert (explanation.cause, explanation.confidence) == (cause, "proven")
    told = explanation.kernels["kernel"].candidates[0].details
    assert {name: told[name] for name in details} == details


def test_a_right_kernel_of_few_rows_is_not_blamed() -> None:
    for _ in range(3):
        arrays = {name: drawn(2, 8, 16) for name in "qkv"}
        explanation = refkernels.explain(
            "attention", arrays, {"kernel": {"y": attention(**arrays)}}
        )
        assert explanation.verdict == "rounding"
        assert explanation.confidence not in ("proven", "matched") or not explanation.cause
