"""Wrong kernels in NumPy, each named for what it does; and the right ones, which are not blamed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import planting
from hunting import one_in
from numpy_kernels import (
    F,
    adam,
    at,
    attention,
    binary,
    clipped_to,
    conv1d,
    conv2d,
    cross_entropy_dx,
    gelu_tanh,
    group_norm,
    int8,
    keras,
    layernorm,
    lion,
    log_softmax,
    next_row_counted,
    norm_dx,
    normal,
    normed,
    rms_gradients,
    rms_norm,
    rotary,
    sgd,
    sigmoid,
    silu,
    smoothed,
    softmax,
)

from refkernels.contexts.special_functions import tanh

BF16 = ml_dtypes.bfloat16
PLANTED: list[planting.Planted] = []
of = partial(planting.Asked, PLANTED)


def without(x: Any, start: int, stop: int) -> Any:
    return np.delete(x, range(start, stop), -1)


# --- softmax, its logarithm, and losses of it -----------------------------------------------------

ROWS = {"x": normal(16, 50), "weight": normal(50, seed=1)}
X = {"x": ROWS["x"]}
LABELLED = {"x": normal(40, 10, scale=6), "target": np.arange(40) % 10}
CUBE = {"x": normal(6, 9, 12), "dy": normal(6, 9, 12, seed=1)}


def shifted(x: Any) -> Any:
    return np.exp(x - x.max(-1, keepdims=True))


def by_softplus(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / np.log1p(e).sum(-1, keepdims=True)


fault = of("softmax", X)
fault(None, softmax)
fault("other_axis", partial(softmax, axis=(0, 1)))
fault.unsure("constant_differs", lambda x: shifted(x) / (shifted(x).sum() * F(1.000003)))
fault("part_multiplied", lambda x: softmax(x / 0.7), interval=1 / 0.7)
fault("clamped", lambda x: softmax(np.clip(x, -1.5, 1.5)), value=1.5)
fault("function_for_another", by_softplus, other="softplus", use="sum(exp(x - max(x)))")
fault("zero_padding", lambda x: softmax(np.pad(x, [(0, 0), (0, 1)]))[:, :-1], padded=51)
fault("dropped_tail", partial(softmax, kept=slice(46)), n=50, dropped=4)
hole = lambda x: shifted(x) / without(shifted(x), 18, 24).sum(-1, keepdims=True)  # noqa: E731
fault("part_of_sum_left_out", hole, n=50, start=18, stop=24)
fault("base_two", partial(softmax, base=2.0))
fault("quantised_activations", lambda x: softmax(int8(x, 1)), scale="each row")
fault = of("softmax", {"x": normal(24, 24)})
fault("read_along_other_axis", lambda x: shifted(x) / shifted(x).sum(-1))
fault = of("softmax", CUBE)
fault("constant_normaliser", lambda dy, x: softmax(x) * dy)
dx = lambda dy, x, over=0: softmax(x) * (dy - (softmax(x) * dy).sum(over, keepdims=True))  # noqa: E731
fault("reduced_over_rows", dx)
fault("other_axis", partial(dx, over=(0, 1, 2)))  # one number; a constant would be one by chance
fault = of("log_softmax", CUBE)
dx = lambda dy, x: dy - softmax(x) * dy.sum(1, keepdims=True)  # noqa: E731
fault("reduced_over_rows", dx)
fault = of("log_softmax", {"x": LABELLED["x"]})
fault(None, log_softmax)
fault("added_inside_logarithm", lambda x: np.log(softmax(x) + 1e-7), value=1e-7)
fault = of("cross_entropy", LABELLED, reduction="none")
shifted_log = lambda x, target: -at(np.log(softmax(x) + 1e-7), target)  # noqa: E731
fault("added_inside_logarithm", shifted_log, value=1e-7)
fault = of("cross_entropy", {"dloss": normal(40, seed=3), **LABELLED}, reduction="none")
fault("first_for_all", partial(cross_entropy_dx, first=True), part="dloss")
SPARSE = {"dloss": np.ones((), BF16), "x": normal(4, 1500).astype(BF16), "target": np.arange(4)}
fault = of("cross_entropy", SPARSE)  # four of 6,000 elements, of which all are rounded
fault("stop_gradient", lambda dloss, x, target: softmax(x) / 4, part="x - max(x)")
NO_CLASS = {"x": normal(8, 7), "target": np.array([3, 1, -1, 0, 2, 4, 5, 6])}
fault = of("nll", NO_CLASS, reduction="none")
fault("label_wrapped", lambda x, target: -at(x, target))
fault("invalid_label_ignored", lambda x, target: np.where(target < 0, 0, -at(x, target)))
fault = of("cross_entropy", {"dloss": np.ones((), F), **LABELLED})
for cause, batches in ((None, [40]), ("mean_of_block_means", [16, 16, 8])):
    share = np.repeat(1 / F(len(batches) * np.array(batches)), batches)
    fault(cause, lambda dloss, x, target, share=share: cross_entropy_dx(share, x, target))
fault = of("cross_entropy", LABELLED)
fault("sum_instead_of_mean", lambda x, target: -at(log_softmax(x), target).sum())
fault = of("cross_entropy", LABELLED, reduction="none", label_smoothing=0.125)
fault(None, smoothed)
fault("divisor_differs", partial(smoothed, classes=11), divisor=11)
fault("constant_differs", partial(smoothed, classes=32), value=32)

# --- attention ------------------------------------------------------------------------------------

QKV = {"q": normal(2, 20, 8), "k": normal(2, 20, 8, seed=1), "v": normal(2, 20, 8, seed=2)}
HEADS = {name: normal(3, 3, 9, 8, seed=seed) for seed, name in enumerate("qkv")}
GROUPED = {"q": normal(8, 6, 16), **{n: np.repeat(normal(2, 6, 16), 4, 0) for n in "kv"}}
QUERY, KEY = np.arange(20)[:, None], np.arange(20)


def merged(q: Any, k: Any, v: Any, weight: Any) -> Any:
    """Two halves of the keys, each with a softmax of its own."""
    parts = np.split(np.exp(q @ k.swapaxes(-1, -2) * F(8**-0.5)), 2, -1)
    weights = [weight(part.sum(-1, keepdims=True)) for part in parts]
    answers = (
        e / e.sum(-1, keepdims=True) @ w for e, w in zip(parts, np.split(v, 2, 1), strict=True)
    )
    return sum(a * w for a, w in zip(answers, weights, strict=True)) / sum(weights)


fault = of("attention", QKV)
fault(None, attention)
fault(None, partial(merged, weight=np.copy))
with_zeros = lambda a: np.pad(a, ((0, 0), (0, 12), (0, 0)))  # noqa: E731
fault("zero_padding", lambda q, k, v: attention(q, with_zeros(k), with_zeros(v)), padded=32)
fault("splits_merged_otherwise", partial(merged, weight=np.ones_like), length="10", weight="1")
fault("saturated", partial(attention, cap=2.0), value=2.0)
fault("dropped_tail", lambda q, k, v: attention(q, k[:, :16], v[:, :16]), n=20, dropped=4)
fault("other_axis", partial(attention, axis=-2))
fault("scale_missing", partial(attention, scale=1.0))
fault("scale_squared", partial(attention, scale=1 / 8))
fault("scale_inverted", partial(attention, scale=8**0.5))
fault = of("attention", QKV, causal="top_left")
fault(None, partial(attention, keep=QUERY >= KEY))
fault("mask_by_blocks", partial(attention, keep=QUERY // 4 * 4 + 3 >= KEY), block=4)
fault("masked_with_number", partial(attention, keep=QUERY >= KEY, fill=-7.5), value=-7.5)
fault = of("attention", QKV, window=(4, 0))
fault("param_differs", partial(attention, keep=abs(QUERY - KEY) <= 4), value=(4, 4))
fault = of("attention", {**QKV, "q": 36 * QKV["q"]}, causal="top_left")
fault.never("other_op", partial(attention, mask=np.where(QUERY >= KEY, F(0), F(-10))))
fault = of("attention", {**QKV, "q": QKV["q"][:, :14]}, causal="top_left")
fault("param_differs", partial(attention, keep=QUERY[:14] + 6 >= KEY), param="causal")
fault = of("attention", {**QKV, "mask": normal(20, 20)})
fault("applied_elsewhere", lambda mask, **a: attention(**a, mask=mask * 8**-0.5))
fault = of("attention", HEADS)
fault(None, attention)
fault("axes_exchanged", lambda q, k, v: attention(q, k, v).swapaxes(1, 2).reshape(q.shape))
fault = of("attention", GROUPED)
tiled = lambda q, k, v: attention(q, *(np.tile(a[::4], (4, 1, 1)) for a in (k, v)))  # noqa: E731
fault("halves_and_pairs", tiled, part="k, v", axis=0)

# --- norms and moments ----------------------------------------------------------------------------

AFFINE = {**ROWS, "bias": normal(50, seed=2)}
BACK = {"dy": normal(16, 50, seed=5), **ROWS}
CHANNELS = {"x": normal(4, 12, 7, scale=3) + 2, "weight": normal(12), "bias": normal(12, seed=1)}
RUNNING = {"x": normal(4, 6, 3), "running_mean": normal(6), "running_var": normal(6, seed=1) ** 2}


def within(place: Any, **wrong: Any) -> Callable[..., Any]:
    """A LayerNorm that is wrong in a tile."""

    def kernel(**given: Any) -> Any:
        y = layernorm(**given)
        y[place] = layernorm(**{**given, **wrong})[place]
        return y

    return kernel


def rms_of(x: Any, weight: Any, part: Callable[[Any], Any], n: int = 50) -> Any:
    """Of the mean square of a part."""
    return x / np.sqrt(np.square(part(x)).sum(-1, keepdims=True) / n + 1e-5) * weight


fault = of("layernorm", AFFINE)
fault(None, layernorm)
fault("inputs_exchanged", lambda x, weight, bias: layernorm(x, bias, weight))
fault("quantised_activations", lambda x, **a: layernorm(int8(x, 1), **a), scale="each row")
# Elements of a row share their statistic's rounding, so that they tell less of eps.
fault("eps_outside_sqrt", partial(layernorm, eps=1e-3, outside=True), interval=1e-3)
fault = of("layernorm", AFFINE, float)
for eps in one_in(2, (1e-3, 2e-3, 2.0**-10)):
    fault("eps_outside_sqrt", partial(layernorm, eps=eps, outside=True), interval=eps)
fault("missing_bias", within(np.s_[:, 32:], bias=0), block="y[:, 32:50]")
fault("missing_bias", within(np.s_[4:8, 16:32], bias=0), block="y[4:8, 16:32]")
fault("unbiased_variance", within(np.s_[12:], ddof=1), block="y[12:16, :]")
scales = np.exp(np.random.default_rng(15).uniform(-3, -1, (16, 1))).astype(F)
SMALL = {**AFFINE, "x": AFFINE["x"] * scales}
for eps in one_in(2, (2e-5, 3e-4, 0.5)):
    of("layernorm", SMALL)("eps_differs", partial(layernorm, eps=eps), eps=eps)
    fault = of("layernorm", {**SMALL, "x": SMALL["x"][:1]})  # the one row was needed to find it
    fault.consistent("eps_differs", partial(layernorm, eps=eps), eps=eps)
fault = of("layernorm", {"x": normal(3, 6, 16)})
fault("param_differs", partial(layernorm, axes=(1, 2)), param="normalized_shape", value=(6, 16))
fault = of("layernorm", BACK)
fault(None, lambda **a: {"dx": norm_dx(**a)})
fault("mean_not_subtracted", rms_gradients)
fault("constant_mean", lambda **a: {"dx": norm_dx(**a, mean=False)})
fault("constant_variance", lambda **a: {"dx": norm_dx(**a, variance=False)})
fault("constant_statistics", lambda **a: {"dx": norm_dx(**a, mean=False, variance=False)})
fault("weight_missing_in_dx", lambda dy, x, weight: {"dx": norm_dx(dy, x)})
fault = of("layernorm", {**BACK, "bias": AFFINE["bias"]})
exchanged = lambda dy, x, **_: {"dweight": dy.sum(0), "dbias": (dy * layernorm(x)).sum(0)}  # noqa: E731
fault("swapped_weight_bias_grad", exchanged)
fault = of("rms_norm", BACK)
fault(None, rms_gradients)
fault = of("rms_norm", ROWS)
fault(None, rms_norm)
fault("constant_differs", lambda x, weight: x / 2.5 * weight)
fault("sum_of_squares", partial(rms_of, part=lambda x: x, n=1))
fault("dropped_tail", partial(rms_of, part=lambda x: x[:, :46]), n=50, dropped=4)
fault("dropped_tail", partial(rms_of, part=lambda x: x[:, :46], n=46), n=50, dropped=4)
fault("part_of_sum_left_out", partial(rms_of, part=lambda x: without(x, 32, 48)), start=32, stop=48)
fault = of("rms_norm", ROWS, eps=1e-6)
for eps in one_in(2, (2.0**-7, 2.0**-10, 3e-4)):
    fault("eps_differs", partial(rms_norm, eps=eps), interval=eps)
fault = of("rms_norm", {"x": normal(16, 96) * F(10) ** -np.arange(16, dtype=F)[:, None]})
mean_square = lambda x: np.square(x).mean(-1, keepdims=True)  # noqa: E731
fault("maximum_for_sum", lambda x: x / np.sqrt(np.maximum(mean_square(x), 1e-5)))
fault("exponent_differs", lambda x: x / (mean_square(x) + 1e-5) ** 2, taken=-2)
fault("constant_scaled", lambda x: rms_norm(x / np.abs(x).max(-1, keepdims=True), 1), part="eps")
fault = of("group_norm", CHANNELS, num_groups=3, eps=1e-2)
fault("unbiased_variance", partial(group_norm, eps=1e-2, ddof=1))
fault(None, partial(group_norm, eps=1e-2))
fault("eps_outside_sqrt", partial(group_norm, eps=1e-2, outside=True))
fault = of("group_norm", CHANNELS, num_groups=3)
fault("weight_plus_one", lambda x, weight, bias: group_norm(x, 1 + weight, bias))
for how, of_each in (("i // 4", np.arange(12) // 4), ("max(i - 1, 0)", [0, *range(11)])):
    read = lambda x, weight, bias, k=of_each: group_norm(x, weight[k], bias)  # noqa: E731
    fault("index_differs", read, part="weight", how=how)
fault = of("group_norm", {"x": normal(24, 6, 5)}, num_groups=2)
fault("next_row_counted", next_row_counted, added=5)
fault = of("instance_norm", {"x": normal(4, 5, 30) + np.arange(4, dtype=F)[:, None, None]})
fault("wrong_axes", partial(normed, axes=(0, 2)), axes=[-3, -1])
fault = of("batch_norm", {"x": normal(6, 8, 5)})
fault(None, partial(normed, axes=(0, 2)))
fault("reduced_in_parts", partial(normed, axes=2), apart="i // 5")
fault("reduced_in_parts", partial(normed, axes=0), apart="i % 5")
fault = of("batch_norm", RUNNING)
fault("running_statistics_kept", lambda x, **kept: (normed(x, (0, 2)), *kept.values()))
fault = of("norm", X, axis=-1)
fault("dropped_tail", lambda x: np.linalg.norm(x[:, :46], axis=-1), n=50, dropped=4)
for n, lanes in ((13, 3), (40, 24)):
    fault = of("var", {"x": normal(16, n) + F(1.5)}, ddof=0)
    var = lambda x, n=n, more=lanes: np.var(x, -1) + more / n * np.square(x.mean(-1))  # noqa: E731
    fault("padding_counted", var, padded=n + lanes)
fault = of("var", {"x": 1 + normal(16, 200)}, ddof=0)

within_two = lambda x: 128 * x[:, :128].var(-1) + 72 * x[:, 128:].var(-1)  # noqa: E731
between = lambda x: np.square(x[:, :128].mean(-1) - x[:, 128:].mean(-1))  # noqa: E731
fault(None, lambda x: (within_two(x) + F(46.08) * between(x)) / 200)
full = lambda x: (within_two(x) + 64 * between(x)) / 256  # noqa: E731
fault("merged_with_full_count", full, block=128, divisor=256)
fault = of("var", {"x": ROWS["x"] + 1})
fault("mean_square", lambda x: np.square(x).mean(-1))
fault("root_unasked", lambda x: x.std(-1))
fault = of("std", {"x": ROWS["x"] + 1})
fault("root_missing", lambda x: x.var(-1))

# --- products, convolutions and sums --------------------------------------------------------------

SQUARE = {"a": normal(12, 12), "b": normal(12, 12, seed=1)}
LAYER = {"x": normal(24, 64), "weight": normal(10, 64, seed=1), "bias": normal(10, seed=2)}
LONG = {"a": normal(12, 96), "b": normal(96, 16, seed=1)}

fault = of("matmul", SQUARE)
fault("inputs_exchanged", lambda a, b: b @ a)
fault("output_moved", lambda a, b: (a @ b).reshape(3, 4, 3, 4).swapaxes(0, 2).reshape(12, 12))
fault = of("matmul", {**SQUARE, "dc": normal(12, 12, seed=2)})
fault("outputs_exchanged", lambda a, b, dc: {"da": a.T @ dc, "db": dc @ b.T})
fault = of("matmul", {"a": normal(24, 32), "b": normal(32, 24)})
rows = partial(np.lib.stride_tricks.as_strided, shape=(24, 32), strides=(31 * 4, 4))
fault("index_differs", lambda a, b: rows(a) @ b, part="a", how="short rows")
fault = of("matmul", LONG)
again = lambda a, b: 2 * a[:, :32] @ b[:32] + a[:, 64:] @ b[64:]  # noqa: E731
fault("block_read_again", again, block=32, start=32)
warp = np.arange(96) % 64 < 32
fault("stride_left_out", lambda a, b: a[:, warp] @ b[warp], width=32, stride=64, first=32)
hole = lambda a, b: without(a, 40, 56) @ without(b.T, 40, 56).T  # noqa: E731
fault("part_of_sum_left_out", hole, n=96, start=40, stop=56)
fault = of("matmul", {"a": normal(12, 50), "b": normal(50, 16, seed=1)})
next_row = lambda x: np.vstack([x[1:, :14], 0 * x[:1, :14]])  # noqa: E731  (of 64 lanes)
fault("next_row_counted", lambda a, b: a @ b + next_row(a) @ b[[-1] * 14], added=14, formula="a")
fault("last_term_repeated", lambda a, b: a @ b + 14 * a[:, -1:] * b[-1], n=50, added=14)
fault(None, lambda a, b: np.pad(a, ((0, 0), (0, 14)), "edge") @ np.pad(b, ((0, 14), (0, 0))))
fault = of("linear", {"x": normal(24, 50), "weight": normal(10, 50, seed=1), "bias": normal(10)})
both = lambda x, weight, bias: x @ weight.T + next_row(x) @ next_row(weight).T + bias  # noqa: E731
fault("next_row_counted", both, added=14, formula="x, weight")
fault = of("linear", LAYER)
fault(None, lambda x, weight, bias: x @ weight.T + bias)
fault("doubled_bias", lambda x, weight, bias: x @ weight.T + 2 * bias)
fault("sign_error", lambda x, weight, bias: -(x @ weight.T + bias))
fault("permuted", lambda x, weight, bias: np.roll(x @ weight.T + bias, 5, 0))
fault("fused_relu", lambda x, weight, bias: np.maximum(x @ weight.T + bias, 0))
applied = lambda x, weight, bias: silu(x @ weight.T + bias)  # noqa: E731
fault("fused_activation", applied, function="x / (1 + exp(-x))")
fault("quantised_weights", lambda x, weight, bias: x @ int8(weight, 1).T + bias)
for axis, scale in ((None, "the tensor"), (1, "each row")):
    y = lambda x, weight, bias, axis=axis: int8(x, axis) @ weight.T + bias  # noqa: E731
    fault("quantised_activations", y, inputs="x", bits=8, scale=scale, scheme="symmetric")
    y = lambda x, weight, bias, axis=axis: int8(x, axis) @ int8(weight, 1).T + bias  # noqa: E731
    scales = "each row" if axis else f"{scale}, each row"
    fault("quantised_activations", y, inputs="x, weight", bits=8, scale=scales)
fault = of("linear", {**LAYER, "weight": normal(64, 64, seed=1), "bias": normal(64, seed=2)})
fault("transposed_weight", lambda x, weight, bias: x @ weight + bias)
fault = of("conv1d", {"x": normal(2, 3, 40), "weight": normal(4, 3, 3, seed=1)})
fault(None, conv1d)
fault = of("conv1d", {"x": normal(2, 3, 12), "weight": normal(4, 3, 5)}, padding=2)
for name, mode in (("reflected", "reflect"), ("circular", "wrap"), ("replicated", "edge")):
    fault(f"padding_{name}", partial(conv1d, mode=mode))
fault("padding_causal", lambda x, weight: conv1d(np.pad(x, [(0, 0), (0, 0), (4, 0)]), weight))
fault = of("conv1d", {"dy": normal(30, 4, 5), "x": normal(30, 2, 5), "weight": normal(4, 2, 1)})
fault(
    "dropped_tail",
    lambda dy, x, weight: {
        "dx": np.einsum("nos,oc->ncs", dy[:, :3], weight[:3, :, 0]),
        "dweight": np.einsum("nos,ncs->oc", dy, x)[..., None],
    },
)
IMAGE = {"x": normal(2, 3, 8, 8), "weight": normal(4, 3, 3, 3, seed=1)}
fault = of("conv2d", IMAGE)
turned = lambda x, weight: conv2d(x, weight[..., ::-1, ::-1])  # noqa: E731
fault("index_reversed", turned, part="weight", axis=(2, 3))
fault("input_transposed", lambda x, weight: conv2d(x, weight.swapaxes(2, 3)), part="weight", axis=2)
fault = of("conv2d", IMAGE, padding=1, stride=2)
fault("padding_as_same", partial(conv2d, stride=2))
fault = of("cdist", {"a": normal(9, 16), "b": normal(7, 16, seed=1)})
fault("function_missing", lambda a, b: np.square(a[:, None] - b).sum(-1))
fault = of("cosine_similarity", {"x": normal(20, 16), "other": normal(20, 16, seed=1)}, eps=0.1)
size = lambda a: np.linalg.norm(a, axis=-1) + 0.1  # noqa: E731
fault("sum_for_maximum", lambda x, other: (x * other).sum(-1) / size(x) / size(other))
fault = of("embedding", {"weight": normal(24, 8), "indices": np.arange(60).reshape(5, 12) % 24})
fifteen = lambda weight, indices: weight[np.minimum(indices, 15)]  # noqa: E731
fault("whole_numbers_limited", fifteen, how="min(i, 15)")
repeated = np.random.default_rng(7).integers(0, 10, 40)
fault = of("embedding", {"dy": normal(40, 6), "weight": normal(10, 6), "indices": repeated})
each = lambda dy, indices: [(indices == k)[:, None] * dy for k in range(10)]  # noqa: E731
one = lambda rows, end: rows[np.flatnonzero(rows.any(-1))[end]]  # noqa: E731
for cause, kept in (("duplicates_ignored", 0), ("duplicates_overwritten", -1)):
    fault(cause, lambda weight, end=kept, **a: np.stack([one(rows, end) for rows in each(**a)]))
mean = lambda rows: rows.sum(0) / rows.any(-1).sum()  # noqa: E731
fault("duplicates_averaged", lambda weight, **a: np.stack([mean(rows) for rows in each(**a)]))
fault = of("cumsum", {"x": normal(4, 700)})
more = lambda x: (np.arange(700) >= 640) * x[:, 640:].sum(-1, keepdims=True)  # noqa: E731
fault("wrong_carry", lambda x: np.cumsum(x, -1) + more(x))
fault = of("cumsum", {"x": np.zeros(1022, F), "dy": np.ones(1022, F)})
fault("wrong_carry", lambda x, dy: 1022 - np.arange(1022) + 254 * (np.arange(1022) > 767))
fault = of("cumsum", {"x": normal(4, 700)})


def by_blocks(x: Any, next_total: Any) -> Any:
    """Cumulative sums of blocks of 64, each after what follows from the block before."""
    total, blocks = F(0), list[Any]()
    for start in range(0, x.shape[-1], 64):
        blocks.append(total + np.cumsum(x[:, start : start + 64], -1))
        total = next_total(blocks[-1])
    return np.concatenate(blocks, -1)


early = partial(by_blocks, next_total=lambda block: block[:, -2:-1])
fault("wrong_carry", early, block=64, carry="without last terms")
half = partial(by_blocks, next_total=lambda block: block[:, -1:].astype(np.float16).astype(F))
fault("carry_rounded", half, block=64, format="float16")
centre = lambda x: x.mean(-1, keepdims=True)  # noqa: E731
counted = lambda x: x.var(-1, keepdims=True) + F(206 / 50) * centre(x) ** 2 + F(1e-5)  # noqa: E731
to_a_block = lambda x: (x - centre(x)) / np.sqrt(counted(x))  # noqa: E731
of("layernorm", {"x": 2 + normal(16, 50)})("padded_variance", to_a_block, n=50, padded=256)
fault = of("layernorm", {"x": 1 + normal(16, 50)})


def padded(x: Any, counted: int = 50, lanes: int = 0) -> Any:
    """The mean over 64 elements, the variance over so many, of so many lanes beyond the row."""
    d = x - x.sum(-1, keepdims=True) / F(64)
    more = lanes * np.square(x.sum(-1, keepdims=True) / F(64))
    return d / np.sqrt((np.square(d).sum(-1, keepdims=True) + more) / counted + F(1e-5))


fault("padded_divisor", padded)
fault("padded_divisor", partial(padded, counted=64))
fault("padded_row", partial(padded, counted=64, lanes=14))
fault = of("sum", {"x": normal(40, 3000)})  # long rows, of which few are read
fault("dropped_tail", lambda x: x[:, :2944].sum(-1), n=3000, dropped=56)
for op, divisor in (("sum", 1), ("mean", 1000)):
    fault = of(op, {"x": normal(16, 1000)})
    for start, stop in one_in(3, ((128, 256), (935, 999), (500, 501), (0, 7))):
        y = lambda x, ends=(start, stop), n=divisor: without(x, *ends).sum(-1) / n  # noqa: E731
        fault("part_of_sum_left_out", y, n=1000, start=start, stop=stop)
fault("scale_factor", lambda x: x.sum(-1) / 1024, named="x.shape[1] / 1024, to which it is padded")

# --- functions of single numbers, and losses of them ----------------------------------------------

POINTS = {"x": normal(300)}
WIDE = {"x": normal(300, scale=3)}
SLOPES = {"dy": normal(300, seed=1), **POINTS}
PAIR = {"a": normal(400), "b": normal(400, seed=1)}
LOGITS = {**WIDE, "target": (np.arange(300) % 3 == 0).astype(F), "pos_weight": np.full(300, 3, F)}
SCALE = 1.0507009873554805

fault = of("sigmoid", {"x": normal(6, 7)})
fault("other_function", softmax, axis=-1)
fault = of("gelu", POINTS)
fault("tanh_gelu", gelu_tanh)
fault("sigmoid_gelu", lambda x: x * sigmoid(1.702 * x))
fault = of("swiglu", PAIR)
fault("input_transformed", lambda a, b: silu(a) * silu(b), part="b")
fault = of("rms_norm", ROWS)
fault("function_after_reduction", lambda x, weight: x / abs(x.mean(-1, keepdims=True)) * weight)
SPREAD = {"x": normal(1500, scale=3)}
bent = lambda x: F(0.7978846) * (x + F(0.044715) * x * x * x)  # noqa: E731
of("silu", SPREAD)("special_function_unit", lambda x: x * (1 + tanh(x / 2)) / 2)
of("gelu", SPREAD)("tanh_gelu", lambda x: x * (1 + tanh(bent(x))) / 2)
fault = of("silu", WIDE)
fault("other_op", lambda x: x * np.clip(x + 3, 0, 6) / 6, other="hardswish")
fault = of("hardsigmoid", WIDE)
fault("other_op", lambda x: x / (1 + abs(x)), other="softsign")
UNITS = {"π/180": math.pi / 180, "π": math.pi, "2π": 2 * math.pi, "180/π": 180 / math.pi}
for function, unit in zip((np.sin, np.cos, np.tan, np.sin), UNITS, strict=True):
    fault = of(function.__name__, {"x": normal(400, scale=30)})
    y = lambda x, f=function, unit=UNITS[unit]: f(x * unit)  # noqa: E731
    fault("argument_unit", y, factor=f"{unit} x")
for shape in ((12, 12), (12, 20), (5, 6, 7)):
    fault = of("tanh", {"x": normal(*shape)})
    fault("axes_exchanged", lambda x: np.tanh(x).swapaxes(-1, -2).reshape(x.shape))
for name, y in (("expm1", lambda e: e - 1), ("tanh", lambda e: 1 - 2 / (e * e + 1))):
    fault = of(name, {"x": normal(300)}, kind=F)
    # An exponential that no model has.
    fault("unstable_identity", lambda x, y=y: y((np.exp(x) * (1 + 1e-7 * np.sin(9 * x))).astype(F)))
fault = of("expm1", {"x": normal(300)})
fault.never("unstable_identity", lambda x: np.expm1(x).astype(ml_dtypes.bfloat16).astype(float))
fault.never("unstable_identity", lambda x: np.expm1(x).astype(np.float16).astype(float))
fault = of("router", {"logits": normal(24, 16)}, k=16, renormalise=True)
euclidean = lambda logits: (e := shifted(logits)) / np.sqrt((e * e).sum(-1)[:, None])  # noqa: E731
fault("other_denominator", euclidean)
fault("other_denominator", lambda logits: shifted(logits), taken="max")
fault = of("selective_log_softmax", LABELLED, temperature=0.7)
fault(
    "applied_elsewhere",
    lambda x, target: np.take_along_axis(log_softmax(x), target[:, None], 1)[:, 0] / 0.7,
    part="temperature",
)
fault = of("sampling_softmax", {"x": normal(8, 30, scale=2)}, top_p=0.8, temperature=0.5)
above = lambda p: (p[:, None] * (p[:, None] > p[:, :, None])).sum(-1)  # noqa: E731
fault.never("other_op", lambda x: softmax(np.where(above(softmax(x)) < 0.8, 2 * x, -np.inf)))
fault = of("weight_norm", {"dy": normal(20, 9), "x": normal(20, 9, seed=1), "g": normal(20)})
both = lambda dy, u, by: (by * (dy - u * (t := (dy * u).sum(1))[:, None]), t)  # noqa: E731
fault("other_axis", lambda dy, x, g: both(dy, x / (n := np.linalg.norm(x, axis=0)), g[:, None] / n))
fault = of("selu", POINTS)
fault("alpha_left_out", lambda x: SCALE * np.where(x > 0, x, np.expm1(x)))
fault = of("softsign", SLOPES)
fault("slope_not_squared", lambda dy, x: dy / (1 + abs(x)))
fault(
    "intermediate_rounded",
    lambda dy, x: dy / np.square((1 + abs(x)).astype(ml_dtypes.bfloat16).astype(float)),
    intermediate="1 + |x|",
    format="bfloat16",
)
fault = of("log_sigmoid", SLOPES)
fault("sigmoid_of_x", lambda dy, x: dy * sigmoid(x))
fault = of("dropout", {**POINTS, "mask": np.arange(300) % 3 > 0}, p=0.3)
fault("mask_inverted", lambda x, mask: np.where(mask, 0, x / 0.7))
fault = of("swiglu", PAIR)
fault("gelu_gate", lambda a, b: gelu_tanh(a) * b)
fault("quick_gelu_gate", lambda a, b: a * sigmoid(1.702 * a) * b)
fault(None, lambda a, b: silu(a) * b)
fault("relu_gate", lambda a, b: np.maximum(a, 0) * b)
fault("sigmoid_gate", lambda a, b: sigmoid(a) * b)
fault("gate_swapped", lambda a, b: silu(b) * a)
fault = of("atan2", PAIR)
fault("arguments_exchanged", lambda a, b: np.arctan2(b, a))
fault = of("kl_div", {"x": normal(8, 9), "target": abs(normal(8, 9, seed=1))}, reduction="none")
fault("input_transformed", lambda x, target: target * (np.log(target) - np.exp(x)))
fault = of("bce_with_logits", LOGITS, reduction="none")
fault(None, binary)
fault("sigmoid_twice", lambda x, **a: binary(sigmoid(x), **a))
fault("pos_weight_of_negatives", partial(binary, swapped=True))
fault = of("rotary", {"x": normal(2, 9, 16), "position": np.arange(9)}, layout="interleaved")
fault(None, rotary)
fault("output_moved", partial(rotary, as_halves=True))
part = lambda x, of, n: np.concatenate([rotary(x[..., :n], of), x[..., n:]], -1)  # noqa: E731
fault("param_differs", lambda x, position: part(x, position, 8), param="dim", value=8)
turn = lambda x: x.reshape(2, 9, 2, 2, 8).swapaxes(2, 3).reshape(x.shape)  # noqa: E731
HEADS = {"x": normal(2, 9, 32), "position": np.arange(9)}
fault = of("rotary", HEADS, layout="interleaved", dim=16)
fault("other_layout", lambda x, position: turn(part(turn(x), position, 16)), axis=-1)
CODES = (np.arange(576) % 200 - 100).astype(np.int8).reshape(24, 24)
fault = of("dequantize", {"x": CODES, "scale": normal(24, 1)})
fault(None, lambda x, scale: x * scale)
fault("read_along_other_axis", lambda x, scale: x * scale.T, part="scale")
STEPS = {"x": np.arange(-128, 128, dtype="i1"), "scale": np.full((), 0.3, F)}
fault = of("dequantize", {**STEPS, "zero_point": np.full((), 5, "i1")})
fault("sum_wraps", lambda x, scale, zero_point: (x - zero_point) * scale, to="int8")

# --- updates --------------------------------------------------------------------------------------

STATE = {"param": normal(300), "grad": normal(300, seed=1)}
MOMENTS = {**STATE, "m": normal(300, seed=2, scale=0.1), "v": normal(300, seed=3) ** 2}
TINY = {**MOMENTS, "grad": STATE["grad"] * F(1e-3), "v": MOMENTS["v"] * F(1e-6)}
ACCUMULATED = {**STATE, "accum": MOMENTS["v"] + F(0.1)}

fault = of("sgd", STATE, lr=0.01, weight_decay=0.1)
fault("decay_ignored", lambda param, grad: param - 0.01 * grad)
fault = of("sgd", {**STATE, "buf": MOMENTS["m"]}, step=2)
fault(None, sgd)
fault("lr_in_momentum", partial(sgd, inside=0.01, lr=1.0))
fault = of("adam", MOMENTS, step=3)
fault(None, adam)
fault("first_moment_uncorrected", partial(adam, of_m=0))
fault("second_moment_uncorrected", partial(adam, of_v=0))
fault("gradient_clipped", lambda grad, **a: adam(grad=clipped_to(0.5, grad), **a), max_norm=0.5)
fault("gradient_multiplied", lambda grad, **a: adam(grad=0.371846 * grad, **a), factor="0.371846")
fault = of("adam", MOMENTS, step=3, lr=0.1)
fault("other_input", lambda **a: adam(**a, of_m_too=True, lr=0.1)[0], part="grad")
fault = of("adam", {**MOMENTS, "m": normal(300, seed=2), "v": abs(normal(300, seed=3))}, step=3)
fault("param_differs", lambda **a: adam(**a, step=2)[0], param="step", value=2)
fault = of("adam", TINY, step=3)
fault("gradient_normalised", lambda grad, **a: adam(grad=clipped_to(1.0, grad), **a))
fault = of("adam", TINY, step=3, eps=1e-6)
fault(None, partial(adam, eps=1e-6))
fault("eps_inside_sqrt", partial(adam, eps=1e-6, inside=True), **{"with": "eps_hat"})
fault = of("lion", {name: MOMENTS[name] for name in ("param", "grad", "m")})
fault(None, lion)
fault("betas_exchanged", partial(lion, beta1=0.99, beta2=0.9))
fault("function_for_another", partial(lion, sign=np.positive), other="x")
fault = of("rmsprop", ACCUMULATED, lr=0.01, eps=1e-3, weight_decay=0.1, rho=0.99)
fault("decay_decoupled", partial(keras, rho=0.99), **{"with": "eps_inside_sqrt"})
fault = of("adagrad", ACCUMULATED, lr=0.01, eps=1e-3, weight_decay=0.1)
fault("decay_decoupled", keras, **{"with": "eps_inside_sqrt"})


@planting.each(PLANTED)
def test_a_planted_fault_is_proven_and_a_right_kernel_is_not_blamed(
    planted: planting.Planted,
) -> None:
    planted.check()
