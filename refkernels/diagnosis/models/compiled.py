"""Kernels that are compiled for speed: functions of the special function unit, division by the
approximate reciprocal, flushed subnormal numbers (`contexts.fast_functions`).

The op's forms, or a function as kernels write it, are read in binary32 in each such arithmetic and
in the plain one, with FMA and without. The reading with all bits is the kernel; else the nearest of
those whose errors are the kernel's, to a quarter of their size. Where a plain reading has these
errors too, the way in which the function is written is the cause.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.formats import BINARY32
from refkernels.contexts.fast_functions import COMPILED, WRITTEN, FastFunctions
from refkernels.contexts.working import Working
from refkernels.diagnosis import evidence
from refkernels.diagnosis.fit import LIKE, Fit, sized
from refkernels.diagnosis.hypothesis import Claim, Outcome, Prediction
from refkernels.diagnosis.problem import Array, Arrays, Problem
from refkernels.diagnosis.wrong import wrong_elements
from refkernels.ops.formula import derived

_LARGEST = 1 << 18  # elements of all inputs
_OTHERS = ("gelu", "gelu_tanh")  # what these lose has causes of its own


def find(problem: Problem, outputs: Arrays, fits: Mapping[str, Fit]) -> Iterator[Claim]:
    """For each output that is not ordinary, the reading that is the kernel."""
    wrong = {name: got for name, got in outputs.items() if not fits[name].ordinary}
    if problem.format != BINARY32 or not wrong or problem.size > _LARGEST:
        return
    readings = _readings(problem)
    for output, got in wrong.items():
        if np.any(got):  # many ways end in 0
            yield from _best(problem, fits[output], got, readings)


class _Reading(NamedTuple):
    """How it is compiled, "" for plain arithmetic, what is written, and the answer."""

    how: str
    text: str
    answer: Arrays

    @property
    def plain(self) -> bool:
        """Whether it only flushes, at most."""
        return not self.how or "-ftz=true" in self.how


def _readings(problem: Problem) -> list[_Reading]:
    """One for each answer, with all names that it has."""
    format, definition = problem.format, problem.definition
    found: dict[bytes, _Reading] = {}
    for (text, form), fma in itertools.product(_forms(problem), (False, True)):
        contexts: dict[str, Working] = {"": Working(BINARY32, format, fma=fma)}
        for name, how in COMPILED.items():
            contexts[name] = FastFunctions(format, how, fma=fma)
        for name, context in contexts.items():
            question = problem.direction, form, problem.inputs, problem.params, format
            answer = definition.computed(*question, context)
            bits = b"".join(array.tobytes() for array in answer.values())
            known = found.setdefault(bits, _Reading(name, text, answer))
            if name and known.how and name not in known.how.split(" or "):
                found[bits] = known._replace(how=f"{known.how} or {name}")
    return list(found.values())


def _forms(problem: Problem) -> Iterator[tuple[str, Any]]:
    """A function as kernels write it, by its text; the op's own forms."""
    op = problem.op
    for text, form in WRITTEN.get(op.name, {}).items():
        if problem.direction == "backward":
            form = derived(form, op.outputs, {op.cotangent: op.outputs[0]}, op.inputs)
        yield text, form
    for form in problem.definition.way(problem.direction).forms.values():
        yield "", form


def _best(problem: Problem, truth: Fit, got: Array, readings: list[_Reading]) -> Iterator[Claim]:
    output, wrong = truth.output, wrong_elements(problem, truth.output, got)
    fits: dict[bool, tuple[int, _Reading]] = {}
    for reading in readings:
        bits = reading.answer[output]
        equal = int(np.count_nonzero(evidence.same(got, bits)))
        if equal <= fits.get(not reading.plain, (-1,))[0]:
            continue
        alike = wrong.any() and evidence.errors_alike(problem, output, got, bits)
        if equal == got.size or alike:
            fits[not reading.plain] = equal, reading
    if not fits:
        return
    with_all = [fast for fast, fit in fits.items() if fit[0] == got.size]
    equal, best = fits[min(with_all or fits)]  # plain arithmetic explains what it can
    rounded = np.any(wrong & np.isfinite(got) & (got != 0))  # the rest shows where it overflows
    if best.plain and (not best.text or problem.op.name in _OTHERS or not rounded):
        return
    bits, plain = best.answer[output], [r.answer[output] for r in readings if r.plain]
    nearest = min(plain, key=lambda other: evidence.apart(bits, other))
    prediction = Prediction(bits=bits, against=None if best.plain else nearest)
    if not with_all:
        # Errors that plain arithmetic has too, be it elsewhere, show no other function.
        if not best.plain and min(sized(problem, output, got, p).over_plain for p in plain) <= LIKE:
            return
        outcome = Outcome(True, equal, got.size, truth.over_bound)
        prediction = Prediction(wrong=wrong, outcome=outcome)
    model = ", ".join(filter(None, (best.text, best.how)))
    details = {"formula": best.text} if best.text else {}
    cause = "unstable_identity" if best.plain else "special_function_unit"
    yield Claim(cause, output, prediction, details, model, len(readings))
