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


def of_a_stride():
    """The rows of a begin one element early each: a stride of n - 1."""
    a, b = drawn(24, 32), drawn(32, 24)
    rows = np.lib.stride_tricks.as_strided(a, (24, 32), (31 * 4, 4))
    return "matmul", {"a": a, "b": b}, rows @ b, {}


def of_groups():
    """The weight of a group's number for all of its channels."""
    x, weight = drawn(4, 8, 10), drawn(8)
    parts = x.reshape(4, 2, 40)
    centred = parts - parts.mean(-1, keepdims=True)
    y = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + np.float32(1e-5))
    scaled = y.reshape(4, 8, 10) * weight[np.arange(8) // 4, None]
    return "group_norm", {"x": x, "weight": weight}, scaled, {"num_groups": 2}


def of_a_step():
    param, grad, m, v = drawn(300), drawn(300), drawn(300), np.abs(drawn(300))
    m1, v1 = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad * grad
    step = 1e-3 * (m1 / (1 - 0.9**2)) / (np.sqrt(v1 / (1 - 0.999**2)) + 1e-8)
    asked = {"param": param, "grad": grad, "m": m, "v": v}
    return "adam", asked, (param - step).astype(np.float32), {"step": 3}


def of_a_variable():
    """The updated m in place of the gradient in the second moment."""
    param, grad, m, v = drawn(300), drawn(300), drawn(300), np.abs(drawn(300))
    m1 = 0.9 * m + 0.1 * grad
    v1 = 0.999 * v + 0.001 * m1 * m1
    step = 1e-1 * (m1 / (1 - 0.9**3)) / (np.sqrt(v1 / (1 - 0.999**3)) + 1e-8)
    asked = {"param": param, "grad": grad, "m": m, "v": v}
    return "adam", asked, (param - step).astype(np.float32), {"step": 3, "lr": 0.1}


def of_the_next_row():
    """Groups of three channels, loaded by four and masked at the end of the array."""
    x = drawn(24, 6, 5)
    y = np.empty_like(x)
    for own, loaded in ((slice(0, 3), slice(0, 4)), (slice(3, 6), slice(3, 6))):
        mean = x[:, loaded].sum((1, 2), keepdims=True) / np.float32(15)
        var = np.square(x[:, loaded] - mean).sum((1, 2), keepdims=True) / np.float32(15)
        y[:, own] = (x[:, own] - mean) / np.sqrt(var + np.float32(1e-5))
    return "group_norm", {"x": x}, y, {"num_groups": 2}


def of_a_buffer():
    """The second tile of a sum is read before it is loaded: the first is there."""
    a, b = drawn(12, 96), drawn(96, 16)
    return "matmul", {"a": a, "b": b}, 2 * a[:, :32] @ b[:32] + a[:, 64:] @ b[64:], {}


def of_a_column():
    """The sums of the rows, without keepdims: those of row j divide column j."""
    e = np.exp((x := drawn(24, 24)) - x.max(-1, keepdims=True))
    return "softmax", {"x": x}, e / e.sum(-1), {}


def of_a_shard():
    weight, indices = drawn(24, 8), RNG.integers(0, 24, (5, 12))
    return "embedding", {"weight": weight, "indices": indices}, weight[np.minimum(indices, 15)], {}


def of_a_batch():
    x = drawn(4, 5, 30) + np.arange(4, dtype=np.float32)[:, None, None]
    mean, var = (f(x, axis=(0, 2), keepdims=True) for f in (np.mean, np.var))
    return "instance_norm", {"x": x}, (x - mean) / np.sqrt(var + np.float32(1e-5)), {}


PLANTED = {
    of_the_next_row: ("next_row_counted", {"added": 5}),
    of_a_buffer: ("block_read_again", {"block": 32, "start": 32}),
    of_a_column: ("read_along_other_axis", {}),
    of_a_shard: ("whole_numbers_limited", {"how": "min(i, 15)"}),
    of_a_batch: ("wrong_axes", {"axes": [-3, -1]}),
    of_heads: ("halves_and_pairs", {"part": "k, v", "axis": 0}),
    of_a_kernel: ("input_transposed", {"part": "weight", "axis": 2}),
    of_padding: ("padding_as_same", {}),
    of_a_stride: ("index_differs", {"part": "a", "how": "short rows"}),
    of_groups: ("index_differs", {"part": "weight", "how": "i // 4"}),
    of_a_step: ("param_differs", {"param": "step", "value": 2}),
    of_a_variable: ("other_input", {"part": "grad"}),
    of_a_scale: ("scale_missing", {}),
    of_an_axis: ("other_axis", {}),
}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.__name__)
def test_the_fault_is_proven(planted) -> None:
    cause, details = PLANTED[planted]
    op, inputs, y, params = planted()
    (output, *_) = refkernels.registry.get(op).outputs
    explanation = refkernels.explain(op, inputs, {"kernel": {output: y}}, params)
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


def test_a_form_that_loses_digits_hides_no_other_question() -> None:
    x = (2 * RNG.standard_normal(500)).astype(np.float32)
    inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3)
    y = np.float32(0.5) * x * (1 + np.tanh(inner))
    explanation = refkernels.explain("gelu", {"x": x}, {"kernel": {"y": y}})
    assert (explanation.cause, explanation.confidence) == ("tanh_gelu", "proven")


def test_an_output_that_is_one_number_proves_nothing() -> None:
    """A maximum that starts at 0, of negative numbers: many a fault gives 0."""
    x = -np.abs(drawn(8, 32))
    y = np.zeros(8, np.float32)
    explanation = refkernels.explain("max", {"x": x}, {"kernel": {"y": y}})
    proven = [c for c in explanation.kernels["kernel"].candidates if c.confidence == "proven"]
    assert all(c.cause in ("unwritten_elements", "floored") for c in proven)
