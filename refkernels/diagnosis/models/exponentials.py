"""Exponentials that libraries of kernels bring along, and the answers of formulas that use them.

    coarse    e^x = 2^n p(x - 0.693147 n), p of degree 5, in binary32 with FMA: nnacl's, which is
              MindSpore's on a CPU (mindspore-ai/mindspore, nnacl/fp32/exp_fp32.h). Its constant is
              ln 2 to six digits, and p leaves 2e-6: it errs by up to 4e-6, relative to e^x
    clamped   e^max(x, -m), m = 88.723 in binary32 and 709.784 in binary64: never less than 1 / the
              largest number, where e^x underflows to 0: Eigen's, which is Paddle's on a CPU
              (libeigen, Eigen/src/Core/arch/Default/GenericPacketMathFunctions.h)

A formula is read in binary64 with such a function in place of exp; that is the answer to another
question. Where its exponentials' arguments are exact or rounded once, as in softmax, it is the
kernel's. The last digits of the function itself are another library's, so errors that are
the kernel's to a quarter of their size count as evidence for the elements that are wrong.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY32, BINARY64, Format
from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Claim, Outcome, Prediction, Variant, moved
from refkernels.diagnosis.problem import Array, Arrays, Doubles, Problem
from refkernels.diagnosis.wrong import wrong_elements

_LN2 = float(np.float32(0.693147))
_LOG2_E = float(np.float32(math.log2(math.e)))
_COEFFICIENTS = tuple(float(np.float32(1.0 / math.factorial(k))) for k in (5, 4, 3, 2, 1, 0))
_CLAMPS = {BINARY32: 88.723, BINARY64: 709.784}
_LARGEST = 1 << 18  # elements of an output


def coarse(x: Doubles, vector: bool) -> Doubles:
    """nnacl's exp of x in binary32, where a subnormal result is 0; in vectors n is x / ln 2 to the
    nearest integer, else x log2 e + 1/2 or - 1/2 is truncated."""
    wide = _rounded(x)
    with np.errstate(all="ignore"):
        turns = _rounded(_rounded(wide * _LOG2_E) + np.copysign(0.5, wide))
        n = np.clip(np.rint(_rounded(wide / _LN2)) if vector else np.trunc(turns), -127, 129)
        rest = _rounded(wide - n * _LN2)
        power = np.full_like(rest, _COEFFICIENTS[0])
        for coefficient in _COEFFICIENTS[1:]:
            power = _rounded(power * rest + coefficient)
        power = power * np.exp2(n)
    result = np.where(power < BINARY32.min_normal, 0.0, power)
    return np.where(n == 129, np.inf, np.where((n == -127) & ~np.isnan(x), 0.0, result))


def _rounded(x: Doubles) -> Doubles:
    return x.astype(np.float32).astype(np.float64)


def clamped(x: Doubles, format: Format) -> Doubles:
    """Eigen's exp."""
    with np.errstate(over="ignore"):
        result: Doubles = np.exp(np.maximum(x, -_CLAMPS[format]))
    return result


def _functions(format: Format) -> Iterator[tuple[str, Callable[[Doubles], Doubles]]]:
    """The causes, each with its exponential."""
    if format is BINARY32:
        for vector in (True, False):
            yield "coarse_exponential", functools.partial(coarse, vector=vector)
    if format in _CLAMPS:
        yield "exponential_clamped", functools.partial(clamped, format=format)


def of_formula(
    problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]
) -> Iterator[Claim | Variant]:
    """The answers of the op's first form with another exponential, for outputs that are wrong."""
    wrong = {n: got for n, got in outputs.items() if not fits[n].ordinary and got.size <= _LARGEST}
    if problem.op.formulas is None or not wrong:
        return
    formulas = problem.op.formulas
    form = next(iter(formulas.way(problem.direction).forms.values()))
    question = problem.direction, form, problem.inputs, problem.params, BINARY64
    for cause, exponential in _functions(problem.format):
        answer = formulas.computed_otherwise(
            "other exponential", *question, exponential=exponential
        )
        for name, got in wrong.items():
            yield from _compared(problem, fits[name], got, cause, answer[name])


def of_exp(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim | Variant]:
    """exp itself."""
    for name, got in outputs.items():
        if problem.direction == "forward" and not fits[name].ordinary:
            for cause, exponential in _functions(problem.format):
                values = exponential(to_float64(problem.inputs["x"]))
                yield from _compared(problem, fits[name], got, cause, values)


def _compared(
    problem: Problem, truth: Fit, got: Array, cause: str, values: Array
) -> Iterator[Claim | Variant]:
    """The values as the answer to another question; or the wrong elements, where their errors are
    those of the values, to a quarter of their size."""
    output, wide = truth.output, to_float64(values)
    model = formats.cast(wide, formats.of(got))
    right = problem.truth.reference[output].round(formats.of(got))[0]
    if model.shape != got.shape or evidence.same(model, right).all():
        return  # it has no exponential, or only those of 0
    # A zero in place of a subnormal says nothing of the exponential.
    flushed = (got == 0) & (model == 0) & (right != 0)
    apart = [np.where(flushed, right, array) for array in (got, model)]
    if evidence.errors_alike(problem, output, *apart):
        equal = int(np.count_nonzero(evidence.same(got, model)))
        outcome = Outcome(True, equal, got.size, truth.over_bound)
        wrong = wrong_elements(problem, output, got)
        yield Claim(cause, output, Prediction(wrong=wrong, outcome=outcome))
    else:
        yield Variant(cause, {}, moved(problem, output, wide, 0.0))
