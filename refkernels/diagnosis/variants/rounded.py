"""One intermediate result of a formula in a narrower format than all others: the scores of an
attention in float64 that a masking op stores in float32, the weights of one in float32 in bfloat16.

Every form is read in float64, once for each of its primitives whose results the narrower format
does not hold, with those results rounded to it. The gradient of a cast is a cast: where one
primitive explains an output, each second one is tried with it on the outputs that are left.

A kernel's own result lies some units beside ours, so near a midpoint it may be rounded to the other
neighbour. Two more readings, with the results moved to either side, show which elements of the
output that would change; nothing is claimed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, BINARY64, Format
from refkernels.diagnosis.evidence import same
from refkernels.diagnosis.fit import over_plain
from refkernels.diagnosis.hypothesis import Variant, moved
from refkernels.diagnosis.problem import Arrays, Doubles, Problem
from refkernels.metrology import UNUSUAL
from refkernels.ops import edits

_NARROWER = {BINARY64: (BINARY32,), BINARY32: (BFLOAT16, BINARY16)}
_LARGEST = 1 << 17  # elements of all inputs: a form is read once for each primitive
_MOST = 0.75  # of the elements: others may have a flipped rounding
_FEW = 4.0  # times the largest error of the plain algorithm
_UNITS = 8.0  # of the working format: how far a kernel's result may lie beside ours


@dataclass
class _Readings:
    """The readings of one form, and how many there were."""

    problem: Problem
    form: Any
    format: Format
    tried: int = 0

    def primitives(self) -> dict[int, str]:
        """The primitives whose results the format rounds, by number. Those that overflow are
        `narrow`'s."""
        inexact: dict[int, str] = {}
        self._read(frozenset(), 0.0, inexact)
        return {number: label for number, label in inexact.items() if label}

    def values(self, chosen: frozenset[int], nudge: float = 0.0) -> dict[str, Doubles]:
        """The outputs with the chosen primitives' results rounded."""
        self.tried += not nudge
        answer = self._read(chosen, nudge, {})
        return {name: to_float64(array) for name, array in answer.items()}

    def _read(self, chosen: frozenset[int], nudge: float, inexact: dict[int, str]) -> Arrays:
        problem = self.problem
        assert problem.op.formulas is not None
        formula = edits.narrowed(self.form, self.format, chosen, inexact, nudge)
        question = problem.direction, formula, problem.inputs, problem.params
        return problem.op.formulas.computed(*question, BINARY64)


def intermediate(problem: Problem, outputs: Arrays) -> Iterator[Variant]:
    """The primitives of the first form in which some explain an output; none for an output whose
    elements are all numbers of the narrower format."""
    if problem.op.formulas is None or problem.size > _LARGEST or problem.op.function:
        return
    for format in _NARROWER.get(problem.format, ()):
        open_outputs = {n: got for n, got in outputs.items() if _open(problem, n, got, format)}
        for form in _distinct_forms(problem) if open_outputs else ():
            found = list(_of_form(_Readings(problem, form, format), open_outputs))
            yield from found
            if found:
                break


def _distinct_forms(problem: Problem) -> Iterator[Any]:
    """The forms, without one that computes what an earlier one does."""
    assert problem.op.formulas is not None
    seen: set[bytes] = set()
    for form in problem.op.formulas.way(problem.direction).forms.values():
        question = problem.direction, form, problem.inputs, problem.params
        answer = problem.op.formulas.computed(*question, BINARY64)
        bits = b"".join(array.tobytes() for array in answer.values())
        if bits not in seen:
            seen.add(bits)
            yield form


def _open(problem: Problem, output: str, got: Any, format: Format) -> bool:
    wide = to_float64(got)
    stored = np.array_equal(to_float64(formats.cast(wide, format)), wide, equal_nan=True)
    return got.shape == problem.truth.reference[output].shape and got.size > 1 and not stored


def _of_form(readings: _Readings, outputs: Arrays) -> Iterator[Variant]:
    primitives = readings.primitives()
    explained: set[str] = set()
    singles: list[int] = []
    for number, label in primitives.items():
        fitting = list(_fitting(readings, outputs, frozenset((number,)), label))
        if fitting:
            singles.append(number)
        for name, variant in fitting:
            explained.add(name)
            yield variant
    left = {name: got for name, got in outputs.items() if name not in explained}
    for first in singles if left else ():
        for second, label in primitives.items():
            if second != first:
                labels = f"{primitives[first]}, {label}"
                chosen = frozenset((first, second))
                yield from (v for _, v in _fitting(readings, left, chosen, labels))


def _fitting(
    readings: _Readings, outputs: Arrays, chosen: frozenset[int], label: str
) -> Iterator[tuple[str, Variant]]:
    """The outputs that the rounded results explain, each with its hypothesis."""
    problem, format = readings.problem, readings.format
    values = readings.values(chosen)
    beside: list[dict[str, Doubles]] = []
    for name, got in outputs.items():
        model = values.get(name)
        if model is None or model.shape != got.shape:
            continue
        if same(formats.cast(model, problem.format_of(name)), problem.plain[name]).all():
            continue
        if not _near(problem, name, got, model):
            continue
        if not beside:
            reach = _UNITS * problem.format.u
            beside = [readings.values(chosen, nudge) for nudge in (-reach, reach)]
        spread = np.maximum(*(np.abs(to_float64(other[name]) - model) for other in beside))
        answer = moved(problem, name, model, spread)
        error = over_plain(problem, name, got, answer)
        if error is not None and error <= UNUSUAL:
            details = {"intermediate": label, "format": format.name}
            yield name, Variant("intermediate_rounded", details, answer, trials=readings.tried)


def _near(problem: Problem, output: str, got: Any, model: Doubles) -> bool:
    """Whether most elements lie no further from the model than a few times the plain algorithm's
    errors, relative to the bound."""
    wide, truth = to_float64(got), problem.truth
    with np.errstate(all="ignore"):
        bound, exact = truth.bound[output], np.asarray(truth.reference[output])
        of_plain = np.abs(to_float64(truth.plain[output]) - exact) / bound
        usual = min(1.0, _FEW * float(np.max(of_plain, where=of_plain < np.inf, initial=0.0)))
        limit = bound * usual + problem.format_of(output).u * np.abs(model)
        near = np.abs(wide - model) <= limit
    both_special = (wide == model) | (np.isnan(wide) & np.isnan(model))
    return float(np.mean(near | both_special)) >= _MOST
