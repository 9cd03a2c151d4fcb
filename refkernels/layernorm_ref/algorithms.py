"""LayerNorm in the working precision: the kernels whose bits frameworks are compared with.

Each variance algorithm is a formula, read in `RoundedArithmetic`: it takes rows (rows, n) of
float32 or float64 and gives (mean, var), computed entirely in that precision:
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
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.scalars import as_count
from refkernels.arithmetic.wording import shown
from refkernels.contexts.working import RoundedArithmetic, data
from refkernels.layernorm_ref.arguments import NormalizedShape, prepare
from refkernels.layernorm_ref.oracle import BackwardArrays, ForwardArrays

Array = npt.NDArray[Any]
FORMS = ("centred", "folded", "divided")


class Moments(NamedTuple):
    """The mean and the biased variance of each row."""

    mean: Array
    var: Array


def _naive(xp: Any, x: Any, clamp: bool, **_: int) -> Any:
    mean = xp.mean(x)
    var = xp.mean(x * x) - mean * mean
    return mean, xp.maximum(var, xp.number(0)) if clamp else var


def _two_pass(xp: Any, x: Any, **_: int) -> Any:
    mean = xp.mean(x)
    return mean, xp.mean(xp.square(x - mean))


def _welford(xp: Any, x: Any, **_: int) -> Any:
    mean, squares = xp.welford(x)
    return mean, squares / x.shape[-1]


def _chunked_welford(xp: Any, x: Any, lanes: int, chunk: int) -> Any:
    n, parts = x.shape[-1], []
    for lane in range(min(lanes, n)):
        chunks = []
        for start in range(lane, n, lanes * chunk):
            index = np.arange(start, min(start + lanes * chunk, n), lanes)
            chunks.append((index.size, *xp.welford(xp.take(x, index, axis=-1))))
        parts.append(_merged(xp, chunks))
    _, mean, squares = _merged(xp, parts)
    return mean, squares / n


def _merged(xp: Any, parts: list[Any]) -> Any:
    """(count, mean, sum of squared deviations) of parts together, in order, by Chan's formula."""
    count, mean, squares = parts[0]
    for n, mean_b, squares_b in parts[1:]:
        delta, share = mean_b - mean, xp.number(n) / (count + n)
        mean = mean + delta * share
        squares = squares + (squares_b + delta * delta * count * share)
        count += n
    return count, mean, squares


ALGORITHMS: dict[str, Callable[..., Any]] = {
    "naive": partial(_naive, clamp=False),
    "naive_clamped": partial(_naive, clamp=True),
    "two_pass": _two_pass,
    "welford": _welford,
    "chunked_welford": _chunked_welford,
    "pairwise": _two_pass,
}


@with_default_fenv
def moments(x: Array, algorithm: str, *, lanes: int = 8, chunk: int = 16) -> Moments:
    """Mean and biased variance over the last axis of x, in x's precision, float32 or float64.

    Raises ValueError for another algorithm, dtype, or lanes or chunk below 1.
    """
    x = as_float_array(x, "x")
    formula = ALGORITHMS[_known(tuple(ALGORITHMS), algorithm, "algorithm")]
    if x.dtype not in (np.float32, np.float64) or x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(
            f"x has dtype {x.dtype} and shape {x.shape}, but the kernels take float32 or float64 "
            "rows of at least one element."
        )
    # A row has fewer elements, and the product of two such numbers is within 64 bits.
    lanes = min(as_count(lanes, "lanes"), x.shape[-1])
    chunk = min(as_count(chunk, "chunk"), x.shape[-1])
    rows = np.ascontiguousarray(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
    order: Any = "pairwise" if algorithm == "pairwise" else "sequential"
    xp = RoundedArithmetic(formats.of(x), order=order)
    found = formula(xp, xp.array(rows), lanes=lanes, chunk=chunk)
    return Moments(*(data(value).reshape(x.shape[:-1]) for value in found))


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


def _normalised(
    xp: Any, x: Any, weight: Any, bias: Any, eps: Any, mean: Any, var: Any, form: str
) -> Any:
    root = xp.sqrt(var + eps)
    rstd = 1 / root
    if form == "centred":
        xhat = (x - mean) * rstd
    elif form == "folded":
        xhat = x * rstd + -rstd * mean
    else:
        xhat = (x - mean) / root
    return xhat * weight + bias, mean, rstd


def _gradients(xp: Any, dy: Any, x: Any, weight: Any, eps: Any, mean: Any, var: Any) -> Any:
    rstd = 1 / xp.sqrt(var + eps)
    xhat, t = (x - mean) * rstd, dy * weight
    dx = rstd * (t - xp.mean(t) - xhat * xp.mean(t * xhat))
    return dx, xp.sum(dy * xhat, axis=0), xp.sum(dy, axis=0)


def _known(known: tuple[str, ...], name: str, kind: str) -> str:
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"There is no {kind} {shown(name)}: use one of {', '.join(known)}.")
    return name


def _read(formula: Callable[..., Any], problem: Any, format: Any, how: Any, *arrays: Any) -> Any:
    """The formula's outputs in the format; statistics by the algorithm, all other sums in order."""
    target = formats.get(problem.dtype if format is None else format)
    xp = RoundedArithmetic("float64" if target.p > formats.BINARY32.p else "float32")
    with np.errstate(over="ignore", invalid="ignore"):  # a cast may warn of a NaN
        statistics = moments(data(xp.array(problem.x)), **how)
        values = [xp.array(array) for array in (*arrays, *(part[:, None] for part in statistics))]
        values.insert(len(arrays), xp.number(problem.eps))
        return [data(value).astype(target.storage) for value in formula(xp, *values)]


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
    formula = partial(_normalised, form=_known(FORMS, form, "form"))
    how = {"algorithm": algorithm, "lanes": lanes, "chunk": chunk}
    y, *row = _read(formula, problem, format, how, problem.x, problem.weight, problem.bias)
    return ForwardArrays(y.reshape(problem.shape), *(part.reshape(problem.leading) for part in row))


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
    arrays = problem.cotangent, problem.x, problem.weight
    dx, *columns = _read(_gradients, problem, format, {"algorithm": algorithm}, *arrays)
    columns = [column.reshape(problem.normalized) for column in columns]
    return BackwardArrays(dx.reshape(problem.shape), *columns)


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
    options: dict[str, Any] = {"eps": eps, "normalized_shape": normalized_shape}
    return layernorm(x, weight, bias, format=format, algorithm="welford", **options)


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
    options: dict[str, Any] = {"eps": eps, "normalized_shape": normalized_shape}
    return layernorm_backward(dy, x, weight, bias, format=format, algorithm="welford", **options)
