"""Whether a refused answer is right in a lower precision than the one asked for.

Each of three models says what every element may be. *Inputs*: the right answer to inputs rounded or
truncated to a narrower format (a TF32 product, a cast on the way in). *Results*: numbers of the
narrower format whose errors keep the bound, scaled to its unit roundoff (a kernel that computes in
16 bits and widens its result). *Flushed*: the right answer where subnormal inputs, outputs or both
are 0 (a kernel compiled with flush-to-zero).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, TF32, Format, working_format
from refkernels.contexts.composed import Flushed
from refkernels.diagnosis.variants.precision import all_in, narrowings
from refkernels.judging.questions import elements
from refkernels.judging.standard import Challenge, Standard
from refkernels.ops.function_formulas import definition

Array = npt.NDArray[Any]
Outputs = Mapping[str, Any]
NARROWER = (BINARY32, TF32, BINARY16, BFLOAT16)


class PrecisionModel(NamedTuple):
    """`way`: "inputs", rounded to the format; "cut" to it; "results" in it; or "flushed", where its
    subnormal numbers are 0."""

    format: Format
    way: str


def explaining_model(refused: Sequence[tuple[Challenge, Outputs]]) -> PrecisionModel | None:
    """The model that explains every refused answer; None if there is none. Small answers, whose
    truths take less time, are tried first."""
    refused = sorted(refused, key=lambda answer: elements(answer[0].floats))
    tried = models(refused[0][0].format) if refused else ()
    return next((model for model in tried if _all(model, refused)), None)


def _all(model: PrecisionModel, refused: Sequence[tuple[Challenge, Outputs]]) -> bool:
    explains = {"results": _results, "flushed": _flushed}.get(model.way, _inputs)
    if not all(explains(model, *answer) for answer in refused):
        return False
    zeros = ((c, {n: np.zeros_like(a) for n, a in got.items()}) for c, got in refused)
    return model.way != "results" or not all(_results(model, *answer) for answer in zeros)


def models(format: Format) -> Iterator[PrecisionModel]:
    """The models of this format without subnormals, and of narrower ones, the finest first."""
    yield PrecisionModel(format, "flushed")
    for narrow in NARROWER:
        if narrow.p < format.p:
            yield PrecisionModel(narrow, "inputs")
            yield PrecisionModel(narrow, "cut")
            if narrow.dtype is not None:
                yield PrecisionModel(narrow, "results")


def narrowed(challenge: Challenge, model: PrecisionModel) -> list[Challenge]:
    """The challenge with its inputs in the narrower format; ties may be rounded in two ways."""
    found, cut = narrowings(challenge.floats, model.format), model.way == "cut"
    return [
        challenge.given(arrays, exact=False)
        for cause, _, arrays in found
        if (cause == "truncated_inputs") == cut
    ]


def _flushed(model: PrecisionModel, challenge: Challenge, outputs: Outputs) -> bool:
    """Whether all that is wrong is decided by a flush: subnormal results that are 0, and what a
    named form computes of flushed inputs and intermediate results."""
    restored = {n: a for n, a in outputs.items() if isinstance(a, np.ndarray)}
    standards = challenge.standards(restored)
    for name, standard in standards.items():
        got, right = restored[name], standard.rounded[name]
        if got.shape == right.shape:
            subnormal = (np.abs(right) < standard.format.min_normal) & (right != 0.0)
            restored[name] = np.where(subnormal & (got == 0.0), right, got).astype(got.dtype)
    op, direction, format = challenge.op, challenge.direction, challenge.format
    forms = [*definition(op).of(direction).forms.values()]
    forms += op.real_function.forms if op.real_function and direction == "forward" else ()
    for form in forms:
        if challenge.fault(restored) is None:
            break
        question = direction, form, challenge.inputs, challenge.params, format
        usual = definition(op).computed(*question)
        flushed = definition(op).computed(*question, Flushed(working_format(format), format))
        for name in standards.keys() & flushed.keys():
            got, right = restored[name], standards[name].rounded[name]
            bound = standards[name].bound()[name]
            if got.shape == right.shape == flushed[name].shape:
                decided = off(flushed[name], usual[name]) > bound
                decided &= off(got, flushed[name]) <= bound
                restored[name] = np.where(decided, right, got).astype(got.dtype)
    return challenge.fault(restored) is None


def off(got: Array, right: Array) -> Array:
    """How far numbers are from others; infinitely from those of another kind."""
    a, b = to_float64(got), to_float64(right)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        return np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))


def _inputs(model: PrecisionModel, challenge: Challenge, outputs: Outputs) -> bool:
    """Whether this is the right answer to narrowed inputs: all of them, or all but the addends."""
    floats, narrow = challenge.floats, narrowed(challenge, model)
    addends = {name: floats[name] for name in challenge.op.optional if name in floats}
    narrow += [other.given(addends) for other in narrow if addends]
    return any(other.fault(outputs) is None for other in narrow)


def _results(model: PrecisionModel, challenge: Challenge, outputs: Outputs) -> bool:
    """Whether every number belongs to the narrower format, and is as near to the truth as a number
    computed in that format."""
    arrays = {n: a for n, a in outputs.items() if isinstance(a, np.ndarray)}
    if not all(all_in(array, model.format) for array in arrays.values()):
        return False
    asked = challenge, *narrowed(challenge, model)
    standards = [c.standards(arrays) for c in asked]
    shapes = {n: standard.reference[n].shape for n, standard in standards[0].items()}
    return arrays.keys() == outputs.keys() and all(
        got.shape == shapes.get(name)
        and np.all(np.any([_near(s[name], name, got, model.format) for s in standards], axis=0))
        for name, got in arrays.items()
    )


def _near(standard: Standard, name: str, got: Array, format: Format) -> npt.NDArray[np.bool_]:
    """Where a number is as near to the truth as a number computed in the narrower format."""
    right, wide = np.asarray(standard.reference[name]), to_float64(got)
    with np.errstate(all="ignore"):
        factor = format.u / standard.format.u
        limit = standard.bound()[name] * factor + format.min_subnormal
        near = (np.abs(wide - right) <= limit) | (wide == right)
        for other in (right, *standard.others.get(name, ())):  # the format may make x infinite
            near |= np.isnan(wide) & np.isnan(other)
        return np.asarray(near | (np.isinf(wide) & (np.abs(right) > format.max)))
