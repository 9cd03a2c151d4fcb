"""LayerNorm in the working precision: the kernels whose bits frameworks are compared with.

Each variance algorithm takes rows (rows, n) of float32 or float64 and gives (mean, var), computed
entirely in that precision:
    naive             E[x^2] - E[x]^2 in one pass (cancels; not stable), clamped at 0 or not
    two_pass          the mean, then the mean of (x - mean)^2, both summed in order
    welford           running mean and sum of squares (Welford 1962,
                      doi:10.1080/00401706.1962.10490022)
    chunked_welford   Welford in each of `lanes` interleaved lanes and each chunk of `chunk` steps,
                      chunks and then lanes merged in order by Chan's formula (Chan, Golub, LeVeque
                      1983, doi:10.1080/00031305.1983.10483115)
    pairwise          two passes with pairwise sums
`layernorm` and `layernorm_backward` use them. 16-bit formats: statistics in float32, results
rounded once to the format.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats, small
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.scalars import as_count
from refkernels.arithmetic.wording import shown
from refkernels.layernorm_ref import array_algorithms
from refkernels.layernorm_ref.arguments import NormalizedShape, prepare
from refkernels.layernorm_ref.oracle import BackwardArrays, ForwardArrays

Array = npt.NDArray[Any]
ALGORITHMS = ("naive", "naive_clamped", "two_pass", "welford", "chunked_welford", "pairwise")
FORMS = ("centred", "folded", "divided")


class Moments(NamedTuple):
    """The mean and the biased variance of each row."""

    mean: Array
    var: Array


@inner
def _naive(row: Any, clamp: bool) -> Any:
    n = row.dtype.type(row.size)
    total = row.dtype.type(0)
    squares = row.dtype.type(0)
    for value in row:
        total += value
        squares += value * value
    mean = total / n
    var = squares / n - mean * mean
    return mean, max(var, row.dtype.type(0)) if clamp else var


@inner
def _two_pass(row: Any) -> Any:
    n = row.dtype.type(row.size)
    total = row.dtype.type(0)
    for value in row:
        total += value
    mean = total / n
    squares = row.dtype.type(0)
    for value in row:
        squares += (value - mean) * (value - mean)
    return mean, squares / n


@inner
def _welford(row: Any, start: int, stop: int, step: int) -> Any:
    """(count, mean, sum of squared deviations) of row[start:stop:step]."""
    count = 0
    mean = row.dtype.type(0)
    squares = row.dtype.type(0)
    for i in range(start, stop, step):
        count += 1
        delta = row[i] - mean
        mean += delta / row.dtype.type(count)
        squares += delta * (row[i] - mean)
    return count, mean, squares


@inner
def _chan_merge(count: int, mean: Any, squares: Any, n: int, mean_b: Any, squares_b: Any) -> Any:
    """(count, mean, sum of squared deviations) of two parts together, by Chan's formula."""
    if n == 0:
        return count, mean, squares
    if count == 0:
        return n, mean_b, squares_b
    kind = type(mean)
    delta = mean_b - mean
    share = kind(n) / kind(count + n)
    mean += delta * share
    squares += squares_b + delta * delta * kind(count) * share
    return count + n, mean, squares


@inner
def _chunked_welford(row: Any, lanes: int, chunk: int) -> Any:
    zero = row.dtype.type(0)
    count, mean, squares = 0, zero, zero
    for lane in range(min(lanes, row.size)):
        lane_count, lane_mean, lane_squares = 0, zero, zero
        for start in range(lane, row.size, lanes * chunk):
            stop = min(start + lanes * chunk, row.size)
            n, mean_b, squares_b = _welford(row, start, stop, lanes)
            lane_count, lane_mean, lane_squares = _chan_merge(
                lane_count, lane_mean, lane_squares, n, mean_b, squares_b
            )
        count, mean, squares = _chan_merge(
            count, mean, squares, lane_count, lane_mean, lane_squares
        )
    return mean, squares / row.dtype.type(row.size)


@inner
def _pairwise_sum(scratch: Any) -> Any:
    """Sum by halves; the scratch is overwritten."""
    n = scratch.size
    while n > 1:
        half = n // 2
        for i in range(half):
            scratch[i] = scratch[2 * i] + scratch[2 * i + 1]
        if n % 2:
            scratch[half] = scratch[n - 1]
        n = half + n % 2
    return scratch[0]


@inner
def _pairwise(row: Any) -> Any:
    n = row.dtype.type(row.size)
    mean = _pairwise_sum(row.copy()) / n
    return mean, _pairwise_sum((row - mean) ** 2) / n


@njit
def _moments(x: Any, algorithm: int, lanes: int, chunk: int, mean: Any, var: Any) -> None:
    for i in range(x.shape[0]):
        row = x[i]
        if algorithm <= 1:
            mean[i], var[i] = _naive(row, algorithm == 1)
        elif algorithm == 2:
            mean[i], var[i] = _two_pass(row)
        elif algorithm == 3:
            count, mean[i], squares = _welford(row, 0, row.size, 1)
            var[i] = squares / row.dtype.type(count)
        elif algorithm == 4:
            mean[i], var[i] = _chunked_welford(row, lanes, chunk)
        else:
            mean[i], var[i] = _pairwise(row)


@with_default_fenv
def moments(x: Array, algorithm: str, *, lanes: int = 8, chunk: int = 16) -> Moments:
    """Mean and biased variance over the last axis of x, in x's precision, float32 or float64.

    Raises ValueError for another algorithm, dtype, or lanes or chunk below 1.
    """
    x = as_float_array(x, "x")
    chosen = _index(ALGORITHMS, algorithm, "algorithm")
    if x.dtype not in (np.float32, np.float64) or x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(
            f"x has dtype {x.dtype} and shape {x.shape}, but the kernels take float32 or float64 "
            "rows of at least one element."
        )
    # A row has fewer elements, and the product of two such numbers is within 64 bits.
    lanes = min(as_count(lanes, "lanes"), x.shape[-1])
    chunk = min(as_count(chunk, "chunk"), x.shape[-1])
    rows = np.ascontiguousarray(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
    mean, var = np.empty((2, rows.shape[0]), x.dtype)
    fallback = array_algorithms.moments
    if small.allowance.covers(fallback, rows.size, rows.shape[1], kernel=_moments):
        fallback(rows, algorithm, lanes, chunk, mean, var)
    else:
        _moments(rows, chosen, lanes, chunk, mean, var)
    return Moments(mean.reshape(x.shape[:-1]), var.reshape(x.shape[:-1]))


def naive(x: Array, *, clamp: bool = False) -> Moments:
    """Mean and E[x^2] - E[x]^2, sums in order; clamped at 0 on request. Raises TypeError for a
    clamp that is not a bool; otherwise as `moments`. Source: the textbook algorithm of Chan, Golub
    and LeVeque (1983), doi:10.1080/00031305.1983.10483115.
    """
    if not isinstance(clamp, bool | np.bool_):
        raise TypeError(f"clamp is {shown(clamp)}, but it must be True or False.")
    return moments(x, "naive_clamped" if clamp else "naive")


def two_pass(x: Array) -> Moments:
    """Mean and the mean of (x - mean)^2, sums in order; otherwise as `moments`. Source: Chan, Golub
    and LeVeque (1983), doi:10.1080/00031305.1983.10483115.
    """
    return moments(x, "two_pass")


def welford(x: Array) -> Moments:
    """Mean and variance by Welford's running update, in order; otherwise as `moments`. Source:
    Welford (1962), doi:10.1080/00401706.1962.10490022.
    """
    return moments(x, "welford")


def chunked_welford(x: Array, *, lanes: int = 8, chunk: int = 16) -> Moments:
    """Mean and variance by Welford's update per lane and chunk, merged in order by Chan's formula;
    otherwise as `moments`. Sources: Welford (1962), doi:10.1080/00401706.1962.10490022; Chan, Golub
    and LeVeque (1983), doi:10.1080/00031305.1983.10483115.
    """
    return moments(x, "chunked_welford", lanes=lanes, chunk=chunk)


def pairwise(x: Array) -> Moments:
    """Mean and variance by two passes with pairwise sums; otherwise as `moments`. Source: Higham
    (1993), doi:10.1137/0914050.
    """
    return moments(x, "pairwise")


@njit
def _normalise(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: Any, form: int, y: Any, rstd: Any
) -> None:
    one = x.dtype.type(1)
    for i in range(x.shape[0]):
        root = np.sqrt(var[i] + eps)
        rstd[i] = one / root
        shift = -rstd[i] * mean[i]
        for j in range(x.shape[1]):
            if form == 0:
                xhat = (x[i, j] - mean[i]) * rstd[i]
            elif form == 1:
                xhat = x[i, j] * rstd[i] + shift
            else:
                xhat = (x[i, j] - mean[i]) / root
            y[i, j] = xhat * weight[j] + bias[j]


@njit
def _gradients(
    x: Any, dy: Any, weight: Any, mean: Any, rstd: Any, dx: Any, dweight: Any, dbias: Any
) -> None:
    n = x.dtype.type(x.shape[1])
    for i in range(x.shape[0]):
        a = x.dtype.type(0)
        c = x.dtype.type(0)
        for j in range(x.shape[1]):
            xhat = (x[i, j] - mean[i]) * rstd[i]
            t = dy[i, j] * weight[j]
            a += t
            c += t * xhat
            dweight[j] += dy[i, j] * xhat
            dbias[j] += dy[i, j]
        a /= n
        c /= n
        for j in range(x.shape[1]):
            xhat = (x[i, j] - mean[i]) * rstd[i]
            dx[i, j] = rstd[i] * (dy[i, j] * weight[j] - a - xhat * c)


def _index(known: tuple[str, ...], name: str, kind: str) -> int:
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"There is no {kind} {shown(name)}: use one of {', '.join(known)}.")
    return known.index(name)


def _working(format: Format | npt.DTypeLike) -> tuple[Format, Any]:
    target = formats.get(format)
    return target, np.float64 if target.p > 24 else np.float32


@with_default_fenv
def layernorm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    format: Format | str | None = None,
    algorithm: str = "two_pass",
    form: str = "centred",
    lanes: int = 8,
    chunk: int = 16,
) -> ForwardArrays:
    """LayerNorm in the working precision of `format` (x's own where None), as arrays.

    `form`: "centred" (x - mean) * rstd, "folded" x * rstd + (-rstd * mean), or "divided"
    (x - mean) / sqrt(var + eps); then * weight + bias. Raises as the oracle's `forward` does, and
    ValueError for an unknown format, algorithm or form.
    """
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape)
    target, kind = _working(problem.dtype if format is None else format)
    with np.errstate(over="ignore", invalid="ignore"):  # a cast may warn of a NaN
        rows, g, b = (p.astype(kind) for p in (problem.x, problem.weight, problem.bias))
        mean, var = moments(rows, algorithm, lanes=lanes, chunk=chunk)
        y, rstd = np.empty_like(rows), np.empty_like(mean)
        chosen, arguments = _index(FORMS, form, "form"), (rows, g, b, mean, var, kind(problem.eps))
        fallback = array_algorithms.normalise
        if small.allowance.covers(fallback, rows.size, kernel=_normalise):
            fallback(*arguments, form, y, rstd)
        else:
            _normalise(*arguments, chosen, y, rstd)
        return ForwardArrays(
            y.reshape(problem.shape).astype(target.storage),
            mean.reshape(problem.leading).astype(target.storage),
            rstd.reshape(problem.leading).astype(target.storage),
        )


@with_default_fenv
def layernorm_backward(
    dy: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    format: Format | str | None = None,
    algorithm: str = "two_pass",
) -> BackwardArrays:
    """The gradients in the working precision of `format` (x's own where None), every sum in order,
    as arrays. Raises as the oracle's `backward` does, and as `layernorm` does."""
    problem = prepare(x, weight, bias, eps=eps, normalized_shape=normalized_shape, dy=dy)
    target, kind = _working(problem.dtype if format is None else format)
    with np.errstate(over="ignore"):
        rows, g, grad = (p.astype(kind) for p in (problem.x, problem.weight, problem.cotangent))
        mean, var = moments(rows, algorithm)
        with np.errstate(divide="ignore", invalid="ignore"):
            rstd = (kind(1) / np.sqrt(var + kind(problem.eps))).astype(kind)
        dx, (dweight, dbias) = np.empty_like(rows), np.zeros((2, rows.shape[1]), kind)
        fallback = small.allowance.covers(array_algorithms.gradients, rows.size, kernel=_gradients)
        kernel = array_algorithms.gradients if fallback else _gradients
        kernel(rows, grad, g, mean, rstd, dx, dweight, dbias)
        return BackwardArrays(
            dx.reshape(problem.shape).astype(target.storage),
            dweight.reshape(problem.normalized).astype(target.storage),
            dbias.reshape(problem.normalized).astype(target.storage),
        )


def forward_plain(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    format: Format | str,
) -> ForwardArrays:
    """LayerNorm by Welford's streaming algorithm: the scale of ordinary rounding errors.

    Where the mean is large, two passes are far more accurate. Compared with them, a framework that
    streams or merges would look unusual; one-pass variance looks unusual beside either. Raises as
    `layernorm` does.
    """
    return layernorm(
        x,
        weight,
        bias,
        eps=eps,
        normalized_shape=normalized_shape,
        format=format,
        algorithm="welford",
    )


def backward_plain(
    dy: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    normalized_shape: NormalizedShape = None,
    format: Format | str,
) -> BackwardArrays:
    """The gradients by plain sequential sums, with Welford's statistics as in `forward_plain`.
    Raises as `layernorm_backward` does."""
    return layernorm_backward(
        dy,
        x,
        weight,
        bias,
        eps=eps,
        normalized_shape=normalized_shape,
        format=format,
        algorithm="welford",
    )
