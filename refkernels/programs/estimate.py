"""Answers of programs whose balls grow with their depth: double-double without radii, estimated.

A ball assumes that errors never cancel: after some ten layers it holds nothing. The middle of a
double-double is far better than it can prove. Where the enclosure of an element is wider than an
ulp of the program's dtype, and than 2^-10 ulp of the largest and of a subnormal number, the answer
is that middle, and the radius

    2^-40 max |float64 - double-double|

over the output: double-double errs by the same conditions as float64, by 2^-51 of it, and 2^11 are
left for the order of its sums. That is an estimate, no proof, and `EstimateWarning` says so.
Gradients are not estimated: at a kink their enclosure is wide because every slope in it is right.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.ops import readings
from refkernels.ops.formulas import Formulas, restored
from refkernels.programs.spread import MIDDLES, PLAIN

SHARE = 2.0**-40


class EstimateWarning(UserWarning):
    """The exact values of a program are estimated: nothing about them is proven."""

    flag = "estimated"


def estimated(
    formulas: Formulas, settled: Callable[..., dict[str, Any]], dtype: str
) -> Callable[..., dict[str, Any]]:
    """`settled`, an op's forward answer by inputs, with estimates in place of wide enclosures."""
    format = formats.get(dtype)

    def wide(answer: Enclosure) -> Any:
        with np.errstate(all="ignore"):
            sizes = np.abs(np.where(np.isfinite(answer.hi), answer.hi, 0.0))
            common = max(format.u * np.max(sizes, initial=0.0), format.min_subnormal)
            wider = answer.radius > np.maximum(2.0 * format.u * sizes, 2.0**-10 * common)
            return np.isfinite(answer.hi) & wider

    def answer(certify: Any = "enclosure", **inputs: Any) -> dict[str, Any]:
        answers = settled(certify=certify, **inputs)
        names = tuple(name for name, known in answers.items() if wide(known).any())
        if not names:
            return answers
        sharper = _estimates(formulas, inputs, names)
        count = 0
        for name, estimate in sharper.items():
            places = np.flatnonzero(wide(answers[name]) & (estimate.radius < answers[name].radius))
            count += places.size
            answers[name] = answers[name].replace(places, estimate.reshape(-1)[places])
        if count:
            warnings.warn(
                f"{formulas.name}: {count} exact values are estimated, by float64 "
                "against double-double: they are not proven.",
                EstimateWarning,
                stacklevel=2,
            )
        return answers

    return answer


@np.errstate(all="ignore")
def _estimates(
    formulas: Formulas, inputs: Mapping[str, Any], names: tuple[str, ...]
) -> dict[str, Any]:
    question = formulas.question("forward", inputs, {})
    sharp = readings.read(formulas.forward.truth, MIDDLES, question, names)
    doubles = readings.read(formulas.forward.truth, PLAIN, question, names)
    estimates = {}
    for name, (head, tail, unknown) in sharp.items():
        error = np.abs(doubles[name][0] - head)
        largest = SHARE * float(np.max(error[np.isfinite(error)], initial=0.0))
        radius = np.where(np.isinf(unknown) | ~np.isfinite(error), np.inf, largest)
        estimates[name] = restored(question, name, Enclosure(head, tail, radius))
    return estimates
