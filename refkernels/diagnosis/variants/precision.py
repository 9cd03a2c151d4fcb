"""Variants with inputs of a narrower format, which hardware makes of float32 behind one's back.

TF32 keeps 11 significant bits and rounds ties away from zero; bfloat16 and float16 to nearest even.
Products of such inputs are exact in float32 and better, so that what remains is float32's rounding.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis.hypothesis import Variant
from refkernels.diagnosis.problem import Answer, Array, Arrays, Problem
from refkernels.metrology.ulp_errors import ulp

CAUSES = {"tf32_inputs": "tf32", "bf16_inputs": "bfloat16", "fp16_inputs": "float16"}
_SUMS = ("matmul", "linear")


def rounded_inputs(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """Factors rounded to TF32, bfloat16 and float16; a bias is added as it is."""
    if problem.op.name not in _SUMS or problem.format.name != "float32":
        return
    factors = {name: array for name, array in problem.inputs.items() if name != "bias"}
    for cause, format in CAUSES.items():
        narrow = {name: rounded(array, format) for name, array in factors.items()}
        if all(np.array_equal(narrow[name], factors[name]) for name in factors):
            continue
        if all(np.isfinite(array).all() for array in narrow.values()):
            yield Variant(cause, {"format": format}, problem.ask(narrow))


def wrong_dtype(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The right answer, computed in a narrower format or rounded to it: every element is one of
    that format's numbers, as the right ones are not. float64 that was computed in float32, not only
    rounded to it at the end, is `float32_cast`: some element is not the rounding of a good one."""
    for name, got in outputs.items():
        for format in (formats.BINARY32, formats.BINARY16, formats.BFLOAT16):
            if format.p >= formats.of(got).p or not all_in(got, format):
                continue
            if not np.any(np.isfinite(got) & (got != 0)):  # every format has these
                continue
            right = problem.truth.reference[name].round(formats.of(got))[0]
            if all_in(right, format):
                continue
            arrays, settings = problem.inputs, problem.params
            bound = problem.op.bound(problem.direction, arrays, settings, format)[name]
            plain = problem.op.plain(problem.direction, arrays, settings, format)[name]
            answer = Answer(
                {name: problem.truth.reference[name]},
                {name: bound},
                {name: plain.astype(got.dtype)},
                format=format,
            )
            computed = format is formats.BINARY32 and not _only_rounded(problem, name, got, format)
            cause = "float32_cast" if computed else "wrong_dtype"
            yield Variant(cause, {"format": format.name}, answer)


def _only_rounded(problem: Problem, output: str, got: Array, format: formats.Format) -> bool:
    """Whether every element may be an ordinary float64 answer, rounded to the format once."""
    right = np.asarray(problem.truth.reference[output])
    with np.errstate(invalid="ignore", over="ignore"):
        most = problem.truth.bound[output] + ulp(np.maximum(np.abs(right), np.abs(got)), format) / 2
        beyond = np.abs(got - right) > most
    return not np.any(beyond & np.isfinite(right) & np.isfinite(got))


def all_in(array: Array, format: formats.Format) -> bool:
    """Whether every element is a number of a narrower format."""
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = array.astype(format.storage).astype(array.dtype)
    return bool(np.array_equal(narrow, array, equal_nan=True))


def rounded(array: Array, format: str) -> Array:
    """float32 values rounded to the format, in float32."""
    if format == "tf32":
        return formats.round_ties_away(array.astype(np.float64), formats.TF32).astype(array.dtype)
    with np.errstate(over="ignore"):
        return array.astype(formats.get(format).storage).astype(array.dtype)
