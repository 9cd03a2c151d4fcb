"""Specials that an intermediate of a formula makes where the result is finite: it overflows.

    rms_norm of x = 300     x² is infinite in float16, and y is 0
    norm of x = 1e20        x² is infinite in float32, and so is the norm

A form of the op is read in float64, once for each of its primitives that somewhere exceeds the
format, with that one's results infinite there. An intermediate is named where the elements that are
wrong then are wrong in the kernel's answer too and say the same (NaN, an infinity, 0, or what is
left), and no other is NaN, infinite or 0 that should not be. What else is wrong may be the narrow
format's rounding: then this is no more than consistent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY16, BINARY32, BINARY64, Format
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.problem import Array, Doubles, Problem
from refkernels.diagnosis.wrong import wrong_elements

_LARGEST = 1 << 18  # elements of an output


def of_formula(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Claim | None:
    """The first intermediate, of all forms and formats, that makes just these elements wrong."""
    read = problem.op.formulas
    if read is None or wide.size > _LARGEST or not wrong.any():
        return None
    tried = 0
    for format in dict.fromkeys((problem.format, BINARY32, BINARY16)):
        if format.emax > problem.format.emax:
            continue
        for form in read.way(problem.direction).forms.values():
            for name, model in _models(problem, output, form, format):
                tried += 1
                lost = _lost(problem, output, wide, wrong, model)
                if lost is not None:
                    details = {
                        "intermediate": name, "format": format.name,
                        "wrong": int(np.count_nonzero(wrong)),
                        "overflows": int(np.count_nonzero(lost)),
                    }  # fmt: skip
                    sure = bool(np.array_equal(lost, wrong) and not lost.all())
                    prediction = Prediction(wrong=wrong, counted=sure)
                    claim = "early_overflow", output, prediction, details
                    return Claim(*claim, trials=tried)
    return None


def _models(
    problem: Problem, output: str, form: Any, format: Format
) -> Iterator[tuple[str, Doubles | None]]:
    """Each primitive that exceeds the format, and the output where it overflows."""
    beyond: dict[int, str] = {}
    _answer(problem, output, form, format, 0, beyond)
    for number, name in sorted(beyond.items()):
        yield name, _answer(problem, output, form, format, number, {})


def _answer(
    problem: Problem, output: str, form: Any, format: Format, chosen: int, beyond: dict[int, str]
) -> Doubles | None:
    read = problem.op.formulas
    assert read is not None

    formula = read.overflowing(form, format, chosen, beyond)
    question = problem.direction, formula, problem.inputs, problem.params
    return read.computed(*question, BINARY64).get(output)


def _lost(
    problem: Problem, output: str, wide: Doubles, wrong: Array, model: Doubles | None
) -> Array | None:
    """The elements that the model has wrong, None where the kernel says something else there, or
    has others that are specials."""
    if model is None or model.shape != wide.shape:
        return None
    kept = formats.cast(model, problem.format_of(output))
    lost = wrong_elements(problem, output, kept)
    special = wrong & (~np.isfinite(wide) | (wide == 0))
    if not lost.any() or np.any(lost & ~wrong) or np.any(special & ~lost):
        return None
    said = to_float64(kept)[lost]
    got, bound = wide[lost], problem.truth.bound[output][lost]
    with np.errstate(all="ignore"):
        most = bound + 2.0 * problem.format.u * (np.abs(said) + np.abs(got))
        near = np.isfinite(said) & (np.abs(said - got) <= most)
    same = near | (said == got) | (np.isnan(said) & np.isnan(got))
    return lost if same.all() else None
