"""Special values in whole rows of LayerNorm: an intermediate overflows, or a variance is negative.

sum (x - mean)^2 is infinite           rstd = 0 and y = bias
E[x^2] - E[x]^2 + eps < 0              where |mean| is large: its root is NaN
"""

from __future__ import annotations

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.models.layernorm import rowwise
from refkernels.diagnosis.overflow import first
from refkernels.diagnosis.problem import Array, Doubles, Problem

_ROUNDINGS = 8.0  # E[x^2] - E[x]^2 may lose this many times n u E[x^2]


def find(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Claim | None:
    """The claim that explains every wrong element of an output, None where none does."""
    rows = _rows(problem, output, wide)
    if rows is None:
        return None
    return _overflowing(problem, output, rows, wrong) or _negative(problem, output, rows, wrong)


def _rows(problem: Problem, output: str, wide: Doubles) -> Doubles | None:
    """The output with one row for each row of LayerNorm; None for dweight and dbias."""
    n = len(to_float64(problem.inputs["x"]).reshape(-1, rowwise.of(problem).n))
    return wide.reshape(n, -1) if output in ("y", "mean", "rstd", "dx") else None


def _overflowing(problem: Problem, output: str, got: Doubles, wrong: Array) -> Claim | None:
    """A sum over a row overflows: rstd is then 0 or NaN, and y is the bias or NaN."""
    question = rowwise.of(problem)
    with np.errstate(all="ignore"):
        bias = to_float64(formats.cast(question.bias, problem.format))
        zeroed = got == (bias if output == "y" else 0.0)
        special = np.logical_not(np.isfinite(got))
        visible = (special | zeroed).all(axis=1)
        wrong_rows = wrong.reshape(got.shape).any(axis=1)
        centred, squared = np.square(question.x - question.mean), np.square(question.x)
        values = {
            "sum (x - mean)²": centred.sum(axis=1),
            "(x - mean)²": centred.max(axis=1),
            "sum x²": squared.sum(axis=1),
            "x²": squared.max(axis=1),
            "sum x": np.abs(question.x.sum(axis=1)),
        }
        sizes = {name: np.log2(value) for name, value in values.items()}
        finite = np.isfinite(question.x).all(axis=1)
    admissible, explained = np.asarray(visible | ~finite), np.asarray(wrong_rows & visible)
    return first(problem, output, wrong, np.asarray(wrong_rows), explained, sizes, admissible)


def _negative(problem: Problem, output: str, got: Doubles, wrong: Array) -> Claim | None:
    """Rows of special values, in which E[x^2] - E[x]^2 may lose more than var + eps; all other
    wrong elements lie in such rows too."""
    question = rowwise.of(problem)
    special = ~np.isfinite(got).any(axis=1)
    wrong_rows = wrong.reshape(got.shape).any(axis=1)
    if not (special & wrong_rows).any():
        return None
    for format in (formats.BINARY32, problem.format):
        u = max(format.u, problem.format.u) if format is problem.format else format.u
        if problem.format.p > format.p:
            continue
        with np.errstate(all="ignore"):
            square = np.square(question.mean) + question.variance
            loss = _ROUNDINGS * question.n * u * square
            risky = (loss >= question.variance + question.eps)[:, 0]
        if risky[wrong_rows].all():
            negative = int(np.count_nonzero(special & wrong_rows))
            details = {"negative": negative, "wrong": int(np.count_nonzero(wrong))}
            prediction = Prediction(wrong=wrong, counted=False)
            return Claim("naive_variance", output, prediction, details)
    return None
