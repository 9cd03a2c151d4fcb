"""Specials that an intermediate makes where the result is finite: it overflows, or is a negative
variance.

    sinh(89)                      exp(89) is infinite in float32, and half of it is not
    tanh = (e^2x - 1)/(e^2x + 1)  NaN from x = 44.4 on
    1 / (1 + e^-x)                0 where e^-x is infinite
    LayerNorm                     sum (x - mean)^2 is infinite, rstd = 0 and y = bias
    E[x^2] - E[x]^2 + eps         negative where |mean| is large: its root is NaN

An intermediate is named where it is larger than its format's numbers in every element that is NaN
or infinite and should not be (where there is none: in every wrong element), and where every element
in which it is so large shows it: as an infinity, NaN or zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis import products
from refkernels.diagnosis.hypothesis import Candidate, Prediction
from refkernels.diagnosis.problem import Array, Doubles, Problem
from refkernels.diagnosis.variants import rowwise

_LOG2_E = math.log2(math.e)
_BORDER = 2.0**-5  # of a binary logarithm: on which side of its end an intermediate lies there
_ROUNDINGS = 8.0  # n u E[x^2] that many times is what E[x^2] - E[x]^2 may lose

Logarithms = dict[str, Callable[[Doubles], Doubles]]
_EXP: Logarithms = {
    "exp(x)": lambda x: x * _LOG2_E,
    "exp(-x)": lambda x: -x * _LOG2_E,
    "exp(|x|)": lambda x: np.abs(x) * _LOG2_E,
    "exp(2x)": lambda x: 2 * x * _LOG2_E,
    "exp(-2x)": lambda x: -2 * x * _LOG2_E,
    "exp(2|x|)": lambda x: 2 * np.abs(x) * _LOG2_E,
    "cosh(x)²": lambda x: 2 * np.abs(x) * _LOG2_E - 2,
}
_SQUARE: Logarithms = {
    "x²": lambda x: 2 * np.log2(np.abs(x)),
    "exp(x²)": lambda x: x * x * _LOG2_E,
}
# The binary logarithms of what may overflow, by op.
_INTERMEDIATES: dict[str, Logarithms] = {
    **dict.fromkeys(("sinh", "cosh", "tanh", "sigmoid", "softplus", "expm1"), _EXP),
    "silu": {**_EXP, "x exp(x)": lambda x: x * _LOG2_E + np.log2(np.abs(x))},
    **dict.fromkeys(("erf", "erfc", "gelu"), _SQUARE),
    "gelu_tanh": {
        "x³": lambda x: 3 * np.log2(np.abs(x)),
        "exp(2z)": lambda x: 2 * _z(x) * _LOG2_E,
        "exp(-2z)": lambda x: -2 * _z(x) * _LOG2_E,
    },
    "rsqrt": {"1/x": lambda x: -np.log2(np.abs(x))},
    "sinpi": {"pi x": lambda x: math.log2(math.pi) + np.log2(np.abs(x))},
    "cospi": {"pi x": lambda x: math.log2(math.pi) + np.log2(np.abs(x))},
}


def _z(x: Doubles) -> Doubles:
    """The argument of tanh in the approximation of GELU."""
    result: Doubles = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return result


def find(problem: Problem, output: str, got: Array, wrong: Array) -> Candidate | None:
    """The intermediate that accounts for every wrong element of an output, None where none does."""
    wide = to_float64(got)
    if problem.op.elementwise:
        return _of_function(problem, output, wide, wrong)
    if problem.op.name == "layernorm":
        rows = _rows(problem, output, wide)
        if rows is None:
            return None
        return _of_rows(problem, output, rows, wrong) or _negative(problem, output, rows, wrong)
    return _of_product(problem, output, wide, wrong)


def _formats(problem: Problem) -> Iterator[Format]:
    """What an intermediate may be kept in."""
    yield problem.format
    if problem.format.p < formats.BINARY32.p:
        yield formats.BINARY32


def _of_function(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Candidate | None:
    lost = np.logical_not(np.isfinite(wide))
    x = to_float64(problem.inputs["x"])
    explained = wrong & lost if (wrong & lost).any() else wrong & (wide == 0)
    shows = np.asarray(lost | (wide == 0) | np.logical_not(np.isfinite(x)))
    mine = _INTERMEDIATES.get(problem.op.name, {})
    with np.errstate(all="ignore"):
        sizes = {name: logarithm(x) for name, logarithm in mine.items()}
    return _first(problem, output, wrong, wrong, np.asarray(explained), sizes, shows)


def _first(
    problem: Problem,
    output: str,
    wrong: Array,
    bad: Array,
    explained: Array,
    sizes: dict[str, Doubles],
    shows: Array,
) -> Candidate | None:
    """The first intermediate that overflows wherever something is to be explained, and shows
    wherever it overflows; all masks but `wrong` are of elements or of rows. It counts as a pattern
    only where all that is bad is explained, and where it does not overflow everywhere."""
    if not explained.any() or not shows[explained].all():
        return None
    for name, size in sizes.items():
        for format in _formats(problem):
            end = format.emax + 1
            if np.all(size[explained] > end - _BORDER) and np.all(shows[size > end + _BORDER]):
                sure = bool(np.any(size < end - _BORDER) and not np.any(bad & ~explained))
                return _candidate(output, wrong, size, format, name, sure, 2 * len(sizes))
    return None


def _rows(problem: Problem, output: str, wide: Doubles) -> Doubles | None:
    """The output as a matrix with a row for each of LayerNorm's; None for dweight and dbias."""
    n = len(to_float64(problem.inputs["x"]).reshape(-1, rowwise.of(problem).n))
    return wide.reshape(n, -1) if output in ("y", "mean", "rstd", "dx") else None


def _of_rows(problem: Problem, output: str, got: Doubles, wrong: Array) -> Candidate | None:
    """A sum over a row that overflows: rstd is 0 then, or NaN, and y no more than its bias."""
    question = rowwise.of(problem)
    with np.errstate(all="ignore"):
        bias = to_float64(formats.cast(question.bias, problem.format))
        resting = got == (bias if output == "y" else 0.0)
        lost = np.logical_not(np.isfinite(got))
        shows = (lost | resting).all(axis=1)
        bad = wrong.reshape(got.shape).any(axis=1)
        centred, squared = np.square(question.x - question.mean), np.square(question.x)
        values = {
            "sum (x - mean)²": centred.sum(axis=1),
            "(x - mean)²": centred.max(axis=1),
            "sum x²": squared.sum(axis=1),
            "x²": squared.max(axis=1),
            "sum x": np.abs(question.x.sum(axis=1)),
        }
        sizes = {name: np.log2(value) for name, value in values.items()}
        asked = np.isfinite(question.x).all(axis=1)
    shown, explained = np.asarray(shows | ~asked), np.asarray(bad & shows)
    return _first(problem, output, wrong, np.asarray(bad), explained, sizes, shown)


def _negative(problem: Problem, output: str, got: Doubles, wrong: Array) -> Candidate | None:
    """Whole rows that are NaN, all of them where E[x^2] - E[x]^2 may lose more than var + eps; and
    whatever else is wrong lies in such rows too."""
    question = rowwise.of(problem)
    lost = ~np.isfinite(got).any(axis=1)
    bad = wrong.reshape(got.shape).any(axis=1)
    if not (lost & bad).any():
        return None
    for format in (formats.BINARY32, problem.format):
        u = max(format.u, problem.format.u) if format is problem.format else format.u
        if problem.format.p > format.p:
            continue
        with np.errstate(all="ignore"):
            square = np.square(question.mean) + question.variance
            most = _ROUNDINGS * question.n * u * square
            risky = (most >= question.variance + question.eps)[:, 0]
        if risky[bad].all():
            number = int(np.count_nonzero(lost & bad))
            details = {"negative": number, "wrong": int(np.count_nonzero(wrong))}
            equal = got.size - int(np.count_nonzero(wrong))
            return Candidate(
                "naive_variance", output, "consistent", equal, got.size, details=details
            )
    return None


def _of_product(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Candidate | None:
    """Infinities where a partial sum may have overflowed float16, and nothing else wrong."""
    product = products.of(problem, output)
    if product is None or np.isfinite(wide[wrong]).any():
        return None
    with np.errstate(all="ignore"):
        size = np.abs(to_float64(product.a)) @ np.abs(to_float64(product.b))
        if product.bias is not None:
            size = size + np.abs(to_float64(product.bias))
        size = np.log2(size).reshape(wide.shape)
    for format in dict.fromkeys((problem.format, formats.BINARY16)):
        if np.all(size[wrong] > format.emax + 1 - _BORDER):
            return _candidate(output, wrong, size, format, "a partial sum")
    return None


def _candidate(
    output: str,
    wrong: Array,
    size: Doubles,
    format: Format,
    intermediate: str,
    sure: bool = True,
    trials: int = 2,
) -> Candidate:
    number = int(np.count_nonzero(wrong))
    details = {
        "intermediate": intermediate,
        "format": format.name,
        "wrong": number,
        "overflows": int(np.count_nonzero(size > format.emax + 1)),
    }
    return Candidate(
        "early_overflow",
        output,
        "consistent",
        wrong.size - number,
        wrong.size,
        details=details,
        trials=trials,
        prediction=Prediction(wrong=wrong) if sure else None,
    )
