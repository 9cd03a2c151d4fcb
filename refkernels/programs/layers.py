"""Operators of ATen that are layers: products, convolutions, pooling, norms, attention, losses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.convolution_ref.geometry import Axis, joined
from refkernels.programs.calls import Low, apart
from refkernels.programs.elementwise import added, sigmoid, times
from refkernels.programs.moving import _lifted
from refkernels.programs.places import back, index, order

Rule = Callable[..., Any]
Places = npt.NDArray[np.int64]
_COLUMNS = 1 << 23  # elements of the windows of a convolution that are in memory at once

# --- products -------------------------------------------------------------------------------------


def matmul(c: Any, a: Any, b: Any) -> Any:
    return c.xp.matmul(c.plain(a), c.plain(b))


def add_product(c: Any, x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    first = c.value(x) if beta == 1 else times(c, c.plain(x), beta)
    if alpha != 1 or beta == 0 or len(first.shape) > 1:
        product = times(c, matmul(c, a, b), alpha)
        return product if beta == 0 else added(c, first, product)
    return _biased(c, c.plain(a), c.plain(b), first)


def _biased(c: Any, left: Any, right: Any, bias: Any) -> Any:
    """left @ right + bias, which may be the first term of the sums."""

    def one_sum() -> Any:
        ones = c.broadcast(c.number(1), (*left.shape[:-1], 1))
        first = c.broadcast(bias, (*right.shape[:-2], 1, right.shape[-1]))
        return c.xp.matmul(c.xp.concatenate([ones, left], -1), c.xp.concatenate([first, right], -2))

    return c.either(c.xp.matmul(left, right) + bias, one_sum)


# --- windows --------------------------------------------------------------------------------------


def _each(values: Any, rank: int) -> list[int]:
    listed = list(values) if isinstance(values, list | tuple) else [values]
    return listed * rank if len(listed) == 1 else listed


def _taken(c: Any, x: Any, table: Places, axes: int) -> Any:
    """(..., places, taps): the elements of x, whose last axes are one, 0 where the table has -1."""
    flat = c.reshape(x, (*x.shape[:-axes], math.prod(x.shape[-axes:])))
    if (table < 0).any():
        zero = c.broadcast(c.number(0), (*flat.shape[:-1], 1))
        flat = c.xp.concatenate([flat, zero], axis=-1)
    return c.take(flat, table, -1)


def convolution(
    c: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool = False, output_padding: Any = 0, groups: int = 1, *_: Any,
) -> Any:  # fmt: skip
    """The sum over input channels and taps, of any number of axes, also transposed."""
    x, weight = c.plain(x), c.plain(weight)
    rank = len(weight.shape) - 2
    batched = len(x.shape) == rank + 2
    x = x if batched else c.reshape(x, (1, *x.shape))
    taps, out = weight.shape[2:], c.shape[-rank:]
    weight = c.reshape(weight, (groups, weight.shape[0] // groups, *weight.shape[1:]))
    table = _windows(x.shape[2:], out, taps, stride, padding, dilation, transposed)
    if transposed:
        weight = c.transpose(weight, (0, 2, 1, *range(3, rank + 3)))
    n, channels = x.shape[:2]
    right = c.transpose(c.reshape(weight, (groups, weight.shape[1], -1)), (0, 2, 1))
    bias = None if bias is None else c.reshape(c.plain(bias), (groups, 1, -1))

    def product(table: Places) -> Any:
        columns = _taken(c, x, table, rank)  # (n, groups channels, places, taps)
        columns = c.reshape(columns, (n, groups, channels // groups, *table.shape))
        left = c.reshape(c.transpose(columns, (1, 0, 3, 2, 4)), (groups, n * len(table), -1))
        y = c.xp.matmul(left, right) if bias is None else _biased(c, left, right, bias)
        return c.reshape(y, (groups, n, len(table), weight.shape[1]))

    pieces = n * channels * table.size // _COLUMNS + 1
    products = [product(piece) for piece in np.array_split(table, pieces)]
    y = products[0] if pieces == 1 else c.xp.concatenate(products, 2)  # (groups, n, places, ...)
    return c.reshape(c.transpose(y, (1, 0, 3, 2)), c.shape)


def _windows(
    lengths: Sequence[int], out: Sequence[int], taps: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool = False,
) -> Places:  # fmt: skip
    """(places of the result, taps): the places that a result is computed from; -1 is none."""
    each = [_each(item, len(lengths)) for item in (taps, stride or taps, padding, dilation)]
    tables = []
    for n, n_out, k, s, p, d in zip(lengths, out, *each, strict=True):
        if transposed:
            place = Axis(n_out, k, s, d, p, p).back()
        else:
            place = np.arange(n_out)[:, None] * s + np.arange(k) * d - p
        tables.append(np.where((place >= 0) & (place < n), place, -1))
    return joined(tables, lengths)


def _largest(c: Any, x: Any, table: Places, rank: int) -> Any:
    """Of windows, and its place. A place outside is the window's first inside, which changes no
    maximum."""
    inside = np.take_along_axis(table, (table >= 0).argmax(axis=-1)[:, None], axis=-1)
    table = np.where(table < 0, inside, table)
    windows, shape = _taken(c, c.plain(x), table, rank), c.node.gives[0].shape

    def places() -> Any:
        tap = c.reshape(order(c, windows, -1, 1, True, True), windows.shape[:-1])
        return c.reshape(index(c, c.array(table), [np.arange(len(table)), tap]), shape)

    return c.reshape(c.xp.max(windows), shape), places


def max_pool(
    rank: int, c: Any, x: Any, taps: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    *_: Any,
) -> Any:  # fmt: skip
    out = c.node.gives[0].shape[-rank:]
    table = _windows(x.shape[-rank:], out, taps, stride, padding, dilation)
    return _largest(c, x, table, rank)


def _average(c: Any, x: Any, table: Places, rank: int, counts: Any = None) -> Any:
    counts = (table >= 0).sum(axis=-1) if counts is None else counts
    total = c.reshape(c.xp.sum(_taken(c, c.plain(x), table, rank)), c.shape)
    return total / c.array(counts.reshape(c.shape[-rank:]))


def avg_pool(
    rank: int, c: Any, x: Any, taps: Any, stride: Any = (), padding: Any = 0, ceil: bool = False,
    count_padding: bool = True, divisor: Any = None,
) -> Any:  # fmt: skip
    lengths, out, counts = x.shape[-rank:], c.shape[-rank:], None
    table = _windows(lengths, out, taps, stride, padding, 1)
    if count_padding:  # places in the padding count, those beyond it do not
        wide = [n + 2 * p for n, p in zip(lengths, _each(padding, rank), strict=True)]
        counts = (_windows(wide, out, taps, stride or taps, 0, 1) >= 0).sum(axis=-1)
    counts = np.full(len(table), divisor) if divisor else counts
    return _average(c, x, table, rank, counts)


def adaptive(rule: Rule, rank: int, c: Any, x: Any, *_: Any) -> Any:
    """Of windows from floor(i n / m) to ceil((i + 1) n / m)."""
    tables = []
    for n, m in zip(x.shape[-rank:], c.shape[-rank:], strict=True):
        starts, ends = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
        place = starts[:, None] + np.arange((ends - starts).max())
        tables.append(np.where(place < ends[:, None], place, -1))
    return rule(c, x, joined(tables, x.shape[-rank:]), rank)


def embedding_bag(
    c: Any, table: Any, indices: Any, offsets: Any, scaled: bool = False, mode: int = 0,
    sparse: bool = False, weights: Any = None, ends: bool = False, left_out: int = -1,
) -> Any:  # fmt: skip
    """Sums, means or maxima of a table's rows, over bags of indices; of an empty one 0."""
    known, borders = c.index(indices), [*c.index(offsets), *([] if ends else [indices.size])]
    kept = np.flatnonzero(known != left_out)
    bags = [[*kept[(a <= kept) & (kept < b)]] for a, b in itertools.pairwise(borders)]
    counts = np.array([len(bag) for bag in bags])
    width = max(counts.max(initial=0), 1)
    places = np.array([bag + [-1] * (width - len(bag)) for bag in bags]).reshape(-1, width)
    rows = c.take(c.plain(table), np.where(places < 0, 0, known[places]), 0)
    if weights is not None:
        rows = rows * c.reshape(c.take(c.plain(weights), places, 0), (*places.shape, 1))
    absent, zero = places[:, :, None] < 0, c.number(0)
    if mode == 2:
        first = c.take(rows, np.zeros(1, int), 1)
        y = c.where(counts[:, None] > 0, c.reduced("max", c.where(absent, first, rows), 1), zero)
    else:
        y = c.reduced("sum", c.where(absent, zero, rows), 1)
    y = y / c.array(np.maximum(counts, 1)[:, None]) if mode == 1 else y
    return y, None, None, None


# --- norms ----------------------------------------------------------------------------------------


def layer_norm(
    c: Any, x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5, *_: Any
) -> Any:
    return _normed(c, x, x.shape[: len(x.shape) - len(shape)], weight, bias, eps)


def _normed(c: Any, x: Any, rows: Any, weight: Any, bias: Any, eps: Any, shape: Any = None) -> Any:
    """Of each of `rows` by itself; weight and bias in `shape`. With the mean and 1 / sqrt(var)."""
    x = c.plain(x)
    each = c.reshape(x, (*rows, math.prod(x.shape) // max(math.prod(rows), 1)))
    m = c.mean(each)
    r = c.rsqrt(c.mean(c.square(each - m)) + c.scalar(eps))
    y = c.either((each - m) * r, lambda: each * r - m * r)
    y = _affine(c, c.reshape(y, x.shape), weight, bias, shape)
    return y, *(_shaped(c, k, a) for k, a in enumerate((m, r), 1))


def _shaped(c: Any, k: int, statistic: Any) -> Any:
    """A statistic as the k-th of what the operator gives; one that it gives empty is not used."""
    given = c.node.gives[k] if k < len(c.node.gives) else None
    if given is None or math.prod(given.shape) != math.prod(statistic.shape):
        return None
    return c.reshape(statistic, given.shape)


def _affine(c: Any, y: Any, weight: Any, bias: Any, shape: Any = None) -> Any:
    for rule, given in ((lambda a, b: a * b, weight), (lambda a, b: a + b, bias)):
        if given is not None:
            given = c.plain(given)
            y = rule(y, given if shape is None else c.reshape(given, shape))
    return y


def group_norm(
    c: Any, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: Any = 1e-5, *_: Any
) -> Any:
    shape = (1, -1, *(1,) * (len(x.shape) - 2))
    return _normed(c, x, (x.shape[0], groups), weight, bias, eps, shape)


def batch_norm(
    c: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: Any,
    eps: Any, *_: Any,
) -> Any:  # fmt: skip
    """By the batch's statistics in training, else by the kept ones."""
    x = c.plain(x)
    shape = (1, -1, *(1,) * (len(x.shape) - 2))
    if training or mean is None:
        dims = [k for k in range(len(x.shape)) if k != 1]
        rows = c.rows(x, dims)
        m = c.mean(rows)
        m, v = (c.reshape(a, shape) for a in (m, c.mean(c.square(rows - m))))
    else:
        m, v = c.reshape(c.plain(mean), shape), c.reshape(c.plain(var), shape)
    r = c.rsqrt(v + c.scalar(eps))
    weight, bias = (p if p is None else c.reshape(c.plain(p), shape) for p in (weight, bias))
    slope = r if weight is None else r * weight

    def folded() -> Any:
        return x * slope + (-(m * slope) if bias is None else bias - m * slope)

    y = c.either(_affine(c, (x - m) * r, weight, bias), folded)
    return y, *(_shaped(c, k, a) for k, a in enumerate((m, r), 1)), None, None


# --- softmax and attention ------------------------------------------------------------------------


def _exponentials(c: Any, rows: Any) -> tuple[Any, Any]:
    """e^(x - m) and m."""
    if not isinstance(rows, Low):
        m = c.pivot(rows) if 0 not in rows.shape else c.number(0)
        return c.exp(rows - m), m
    m = c.pivot(_lifted(c, rows.value, rows.low))
    return c.where(rows.low, c.number(0), c.exp(c.where(rows.low, m, rows.value) - m)), m


def _softmax(c: Any, rows: Any) -> Any:
    e, _ = _exponentials(c, rows)
    return e / c.xp.sum(e)


def _log_softmax(c: Any, rows: Any) -> Any:
    e, m = _exponentials(c, rows)
    value = rows.value if isinstance(rows, Low) else rows
    y = (value - m) - c.log(c.xp.sum(e))
    return Low(y, rows.low) if isinstance(rows, Low) else y


def _along(rule: Rule) -> Rule:
    """A rule of rows, on the rows along an axis."""
    return lambda c, x, dim, *_: back(c, rule(c, c.rows(c.value(x), dim)), dim, len(x.shape))


def logsumexp(c: Any, x: Any, dims: Any, *_: Any) -> Any:
    e, m = _exponentials(c, c.rows(c.value(x), dims))
    return c.reshape(m + c.log(c.xp.sum(e)), c.shape)


def rrelu(c: Any, x: Any, noise: Any, low: float, high: float, train: bool = False, *_: Any) -> Any:
    if train:
        raise c.refuse("draws its slopes, which differ from call to call")
    x = c.plain(x)
    return c.where(x > 0, x, x * c.scalar((low + high) / 2)), noise


def attention(
    c: Any, q: Any, k: Any, v: Any, mask: Any = None, dropout: float = 0.0, causal: bool = False,
    scale: Any = None, grouped: bool = False, *_: Any,
) -> Any:  # fmt: skip
    """softmax(scale q kT + mask) v; 0 for a query that no key is for."""
    if dropout:
        raise c.refuse("has active dropout, whose answers differ from call to call")
    q, k, v = c.plain(q), c.plain(k), c.plain(v)
    if grouped:
        times_ = q.shape[-3] // k.shape[-3]
        k, v = (c.take(a, np.repeat(np.arange(a.shape[-3]), times_), -3) for a in (k, v))
    scores = c.xp.matmul(q, c.move(lambda a: np.swapaxes(a, -1, -2), k))
    factor = c.rsqrt(c.number(q.shape[-1])) if scale is None else c.scalar(scale)
    scores, low = scores * factor, np.zeros((1, 1), bool)
    if causal:
        low = low | ~np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    if isinstance(mask, np.ndarray):
        low = low | ~mask.astype(bool)
    elif mask is not None:
        (bias,), (masked,) = apart(c.value(mask))
        scores, low = scores + bias, low | masked
    low = np.broadcast_to(low, scores.shape)
    empty = low.all(axis=-1, keepdims=True)
    p = _softmax(c, Low(scores, low & ~empty) if low.any() else scores)
    p = c.where(np.broadcast_to(empty, low.shape), c.number(0), p) if empty.any() else p
    return c.xp.matmul(p, v)


# --- recurrent layers -----------------------------------------------------------------------------


def _lstm_cell(c: Any, state: Any, from_x: Any, from_h: Any) -> Any:
    i, f, g, o = _parts(c, from_x + from_h, 4)
    cell = sigmoid(c, f) * state[1] + sigmoid(c, i) * c.tanh(g)
    return sigmoid(c, o) * c.tanh(cell), cell


def _gru_cell(c: Any, state: Any, from_x: Any, from_h: Any) -> Any:
    (r, z, n), (hr, hz, hn) = _parts(c, from_x, 3), _parts(c, from_h, 3)
    new = c.tanh(n + sigmoid(c, r + hr) * hn)
    gate = sigmoid(c, z + hz)
    return (new + gate * (state[0] - new),)


def _parts(c: Any, x: Any, number: int) -> list[Any]:
    n = x.shape[-1] // number
    return [c.take(x, np.arange(k * n, (k + 1) * n), -1) for k in range(number)]


def recurrent(
    cell: Rule, states: int, c: Any, x: Any, state: Any, weights: Any, biases: bool, layers: int,
    dropout: float, train: bool, both: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """Layers over time, both ways where bidirectional: what nn.LSTM and nn.GRU call."""
    if dropout and train:
        raise c.refuse("has active dropout, whose answers differ from call to call")
    starts = [c.plain(s) for s in (state if states > 1 else [state])]
    per = (4 if biases else 2) + (starts[0].shape[-1] != weights[1].shape[-1])
    x = c.plain(x)
    x = c.transpose(x, (1, 0, 2)) if batch_first else x
    ends = list[Any]()
    for _ in range(layers):
        outputs = []
        for way in range(1 + both):
            k = len(ends)
            own = [c.plain(w) for w in weights[k * per : (k + 1) * per]]
            first = [c.move(lambda a, k=k: a[k], s) for s in starts]
            y, last = _over_time(c, cell, x, first, own, biases, bool(way))
            outputs.append(y)
            ends.append(last)
        x = c.xp.concatenate(outputs, -1) if both else outputs[0]
    y = c.transpose(x, (1, 0, 2)) if batch_first else x
    return (y, *(c.move(lambda *a: np.stack(a), *end) for end in zip(*ends, strict=True)))


def _over_time(
    c: Any, cell: Rule, x: Any, state: Any, weights: Any, biases: bool, backwards: bool
) -> Any:
    w_x, w_h = (c.transpose(w, (1, 0)) for w in weights[:2])
    b_x, b_h = weights[2:4] if biases else (None, None)
    steps, batch, _ = x.shape
    from_x = c.xp.matmul(c.reshape(x, (steps * batch, -1)), w_x)
    from_x = c.reshape(from_x if b_x is None else from_x + b_x, (steps, batch, -1))
    outputs = []
    for t in range(steps)[:: -1 if backwards else 1]:
        from_h = c.xp.matmul(state[0], w_h)
        from_h = from_h if b_h is None else from_h + b_h
        state = list(cell(c, state, c.move(lambda a, t=t: a[t], from_x), from_h))
        if len(weights) > 2 + 2 * biases:  # a projection of the output
            state[0] = c.xp.matmul(state[0], c.transpose(weights[-1], (1, 0)))
        outputs.append(state[0])
    return c.move(lambda *a: np.stack(a), *outputs[:: -1 if backwards else 1]), state


LAYERS: dict[str, Rule] = {
    **dict.fromkeys(("mm.default", "bmm.default"), matmul),
    "addmm.default": add_product,
    "baddbmm.default": add_product,
    "convolution.default": convolution,
    "max_pool2d_with_indices.default": partial(max_pool, 2),
    "max_pool3d_with_indices.default": partial(max_pool, 3),
    **{f"avg_pool{k}d.default": partial(avg_pool, k) for k in (2, 3)},
    **{f"_adaptive_avg_pool{k}d.default": partial(adaptive, _average, k) for k in (2, 3)},
    **{f"adaptive_max_pool{k}d.default": partial(adaptive, _largest, k) for k in (2, 3)},
    **{f"_embedding_bag{name}.default": embedding_bag for name in ("", "_forward_only")},
    "layer_norm.default": layer_norm,
    "native_layer_norm.default": layer_norm,
    "group_norm.default": group_norm,
    "_native_batch_norm_legit_no_training.default": lambda c, *given: batch_norm(
        c, *given[:5], False, *given[5:]
    ),
    **dict.fromkeys(
        ("_native_batch_norm_legit_functional.default", "native_batch_norm.default"), batch_norm
    ),
    "_native_batch_norm_legit.no_stats": lambda c, x, w, b, *rest: batch_norm(
        c, x, w, b, None, None, *rest
    ),
    "native_group_norm.default": lambda c, x, w, b, n, k, s, g, e: group_norm(c, x, g, w, b, e),
    "_softmax.default": _along(_softmax),
    "_log_softmax.default": _along(_log_softmax),
    "logsumexp.default": logsumexp,
    "scaled_dot_product_attention.default": attention,
    "rrelu_with_noise_functional.default": rrelu,
    "lstm.input": partial(recurrent, _lstm_cell, 2),
    "gru.input": partial(recurrent, _gru_cell, 1),
    "rnn_tanh.input": partial(recurrent, lambda c, _, x, h: (c.tanh(x + h),), 1),
}  # fmt: skip
