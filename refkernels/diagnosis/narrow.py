"""Special values from an intermediate of a formula that overflows where the result is finite: x² of
x = 300 in float16, of x = 1e20 in float32.

A form of the op is read in float64, once for each primitive that somewhere exceeds the format, with
that primitive's results infinite there. An intermediate is named where every element that this
makes wrong has the same value in the kernel's answer, and no other is wrongly NaN, infinite or 0.
If further elements are wrong, the claim is only consistent. The evidence is in the places of the
wrong elements (`places`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BINARY16, BINARY32, BINARY64, Format
from refkernels.diagnosis import overflow, places
from refkernels.diagnosis.hypothesis import Claim, Prediction
from refkernels.diagnosis.problem import Array, Doubles, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.ops import edits

_LARGEST = 1 << 18  # elements of an output


def of_formula(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Claim | None:
    """The first intermediate, over all forms and formats, that explains these wrong elements."""
    if wide.size > _LARGEST or not wrong.any():
        return None
    tried = 0
    for format in dict.fromkeys((problem.format, BINARY32, BINARY16)):
        if format.emax > problem.format.emax:
            continue
        for form in problem.every_form.values():
            for name, model in _models(problem, output, form, format):
                tried += 1
                lost = _lost(problem, output, wide, wrong, model)
                if lost is not None:
                    details = {
                        "intermediate": name, "format": overflow.named(problem, format),
                        "wrong": int(np.count_nonzero(wrong)),
                        "overflows": int(np.count_nonzero(lost)),
                    }  # fmt: skip
                    decisive = bool(np.array_equal(lost, wrong) and not lost.all())
                    bits = places.by_unit(problem, output, lost)
                    earns = places.shared(problem, output, wrong, bits)
                    prediction = Prediction(wrong=wrong, counted=decisive, earns=earns)
                    claim = "early_overflow", output, prediction, details
                    return Claim(*claim, trials=tried)
    return None


def _models(
    problem: Problem, output: str, form: Any, format: Format
) -> Iterator[tuple[str, Doubles | None]]:
    """Each primitive that exceeds the format, and the output that its overflow gives."""
    exceeding: dict[int, str] = {}
    _answer(problem, output, form, format, 0, exceeding)
    for number, name in sorted(exceeding.items()):
        yield name, _answer(problem, output, form, format, number, {})


def _answer(
    problem: Problem, output: str, form: Any, format: Format, chosen: int, exceeding: dict[int, str]
) -> Doubles | None:
    formula = edits.overflowing(form, format, chosen, exceeding)
    return problem.computed(formula, format=BINARY64).get(output)


def _lost(
    problem: Problem, output: str, wide: Doubles, wrong: Array, model: Doubles | None
) -> Array | None:
    """The elements that the model gets wrong; None where the kernel has other values there, or
    special values elsewhere."""
    if model is None or model.shape != wide.shape:
        return None
    rounded = formats.cast(model, problem.format_of(output))
    lost = wrong_elements(problem, output, rounded)
    special = wrong & (~np.isfinite(wide) | (wide == 0))
    if not lost.any() or np.any(lost & ~wrong) or np.any(special & ~lost):
        return None
    expected = to_float64(rounded)[lost]
    got, bound = wide[lost], problem.truth.bound[output][lost]
    with np.errstate(all="ignore"):
        tolerance = bound + 2.0 * problem.format.u * (np.abs(expected) + np.abs(got))
        near = np.isfinite(expected) & (np.abs(expected - got) <= tolerance)
    equal = near | (expected == got) | (np.isnan(expected) & np.isnan(got))
    return lost if equal.all() else None
