"""NumPy fallbacks of the kernels of `algorithms`: the same operations in order, all rows at once.

A sum in order is the last partial sum of NumPy's `accumulate`; a recurrence goes from column to
column. `arithmetic.small` says when a fallback runs.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
State = tuple[Any, Array, Array]  # count, mean, sum of squared deviations


def sum_in_order(values: Array, axis: int = 1) -> Array:
    """0 + v_0 + v_1 + ..., in values' own dtype."""
    if not values.shape[axis]:
        return np.asarray(values.sum(axis=axis, dtype=values.dtype))
    partial = np.add.accumulate(values, axis=axis, dtype=values.dtype)
    return partial.take(-1, axis=axis) + values.dtype.type(0)  # 0 + (-0) is 0


def moments(x: Array, algorithm: str, lanes: int, chunk: int, mean: Array, var: Array) -> None:
    """`algorithms._moments`: fills mean and var of the rows of x."""
    with np.errstate(all="ignore"):
        n = x.dtype.type(x.shape[1])
        if algorithm in ("naive", "naive_clamped"):
            mean[:] = sum_in_order(x) / n
            var[:] = sum_in_order(x * x) / n - mean * mean
            if algorithm == "naive_clamped":
                var[:] = np.where(var < 0, 0, var)
        elif algorithm == "two_pass":
            mean[:] = sum_in_order(x) / n
            deviation = x - mean[:, None]
            var[:] = sum_in_order(deviation * deviation) / n
        elif algorithm == "pairwise":
            mean[:] = _pairwise_sum(x) / n
            deviation = x - mean[:, None]
            var[:] = _pairwise_sum(deviation * deviation) / n
        else:
            streaming = algorithm == "welford"
            _, mean[:], squares = _welford(x) if streaming else _chunked_welford(x, lanes, chunk)
            var[:] = squares / n


def _pairwise_sum(values: Array) -> Array:
    while values.shape[1] > 1:
        even = values.shape[1] // 2 * 2
        halves = values[:, 0:even:2] + values[:, 1:even:2]
        values = np.concatenate([halves, values[:, even:]], axis=1)
    return values[:, 0]


def _welford(x: Array) -> State:
    kind = x.dtype.type
    mean, squares = np.zeros((2, x.shape[0]), x.dtype)
    for count, column in enumerate(np.ascontiguousarray(x.T), 1):
        delta = column - mean
        mean = mean + delta / kind(count)
        squares = squares + delta * (column - mean)
    return x.shape[1], mean, squares


def _merged(first: State, second: State) -> State:
    """`algorithms._chan_merge`."""
    count, mean, squares = first
    n, mean_b, squares_b = second
    if n == 0 or count == 0:
        return first if n == 0 else second
    kind = mean.dtype.type
    delta = mean_b - mean
    share = kind(n) / kind(count + n)
    merged = squares + (squares_b + delta * delta * kind(count) * share)
    return count + n, mean + delta * share, merged


def _chunked_welford(x: Array, lanes: int, chunk: int) -> State:
    zeros = np.zeros(x.shape[0], x.dtype)
    state: State = 0, zeros, zeros
    for lane in range(min(lanes, x.shape[1])):
        of_lane: State = 0, zeros, zeros
        for start in range(lane, x.shape[1], lanes * chunk):
            of_lane = _merged(of_lane, _welford(x[:, start : start + lanes * chunk : lanes]))
        state = _merged(state, of_lane)
    return state


def normalise(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, eps: Any, form: str,
    y: Array, rstd: Array,
) -> None:  # fmt: skip
    """`algorithms._normalise`: fills y and rstd."""
    with np.errstate(all="ignore"):
        root = np.sqrt(var + eps)
        rstd[:] = x.dtype.type(1) / root
        if form == "folded":
            xhat = x * rstd[:, None] + (-rstd * mean)[:, None]
        elif form == "centred":
            xhat = (x - mean[:, None]) * rstd[:, None]
        else:
            xhat = (x - mean[:, None]) / root[:, None]
        y[:] = xhat * weight + bias


def gradients(
    x: Array, dy: Array, weight: Array, mean: Array, rstd: Array,
    dx: Array, dweight: Array, dbias: Array,
) -> None:  # fmt: skip
    """`algorithms._gradients`: fills dx, dweight and dbias."""
    with np.errstate(all="ignore"):
        n, r = x.dtype.type(x.shape[1]), rstd[:, None]
        xhat, t = (x - mean[:, None]) * r, dy * weight
        a, c = sum_in_order(t) / n, sum_in_order(t * xhat) / n
        dx[:] = r * (t - a[:, None] - xhat * c[:, None])
        dweight[:], dbias[:] = sum_in_order(dy * xhat, axis=0), sum_in_order(dy, axis=0)
