"""Whether a refused answer is right in a lower precision than the one asked for.

Each of three models says what every element may be. *Inputs*: the right answer to inputs rounded or
truncated to a narrower format (a TF32 product, a cast on the way in). *Results*: numbers of the
narrower format whose errors keep the bound, scaled to its unit roundoff (a kernel that computes in
16 bits and widens its result). *Flushed*: the right answer where subnormal inputs, outputs or both
are 0 (a kernel compiled with flush-to-zero).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import BFLOAT16, BINARY16, BINARY32, TF32, Format
from refkernels.judging.questions import elements
from refkernels.judging.standard import Challenge, Standard

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


def narrowed(challenge: Challenge, model: PrecisionModel) -> Challenge:
    """The challenge with its inputs in the narrower format."""
    narrow = {name: _narrow(array, model) for name, array in challenge.floats.items()}
    inputs = {**challenge.inputs, **narrow}
    return replace(challenge, inputs=inputs, exact=False, _standards={})


def _flushed(model: PrecisionModel, challenge: Challenge, outputs: Outputs) -> bool:
    """Whether zeros in place of subnormal numbers are all that is wrong: in the answer alone, or in
    the inputs too."""
    output_formats = {n: formats.of(a) for n, a in outputs.items() if isinstance(a, np.ndarray)}
    zeros = {
        name: np.where(np.abs(array) < model.format.min_normal, array * 0, array)
        for name, array in challenge.floats.items()
    }
    flushed = replace(challenge, inputs={**challenge.inputs, **zeros}, _standards={})
    return any(asked.fault(_restored(asked.standard(output_formats), outputs)) is None
               for asked in (challenge, flushed))  # fmt: skip


def _restored(standard: Standard, outputs: Outputs) -> Outputs:
    """The outputs, with zeros replaced by the right numbers where these are subnormal."""
    restored = dict(outputs)
    for name, exact in standard.reference.items():
        got = outputs.get(name)
        if isinstance(got, np.ndarray) and got.shape == exact.shape:
            size = np.abs(np.asarray(exact))
            lost = (size > 0.0) & (size < standard.formats[name].min_normal)
            lost &= to_float64(got) == 0.0
            restored[name] = np.where(lost, standard.rounded[name], got).astype(got.dtype)
    return restored


def _inputs(model: PrecisionModel, challenge: Challenge, outputs: Outputs) -> bool:
    """Whether this is the right answer to narrowed inputs: all of them, or all but the addends."""
    other = narrowed(challenge, model)
    if other.fault(outputs) is None:
        return True
    floats = challenge.floats
    addends = {name: floats[name] for name in challenge.op.optional if name in floats}
    wide_addends = replace(other, inputs={**other.inputs, **addends}, _standards={})
    return bool(addends) and wide_addends.fault(outputs) is None


def _results(model: PrecisionModel, challenge: Challenge, outputs: Outputs) -> bool:
    """Whether every number belongs to the narrower format, and is as near to the truth as a number
    computed in that format."""
    arrays = {n: a for n, a in outputs.items() if isinstance(a, np.ndarray)}
    if not all(np.array_equal(_narrow(a, model), a, equal_nan=True) for a in arrays.values()):
        return False
    output_formats = {name: formats.of(array) for name, array in arrays.items()}
    standards = (
        challenge.standard(output_formats),
        narrowed(challenge, model).standard(output_formats),
    )
    for name, got in outputs.items():
        exact = standards[0].reference.get(name)
        if exact is None or name not in arrays or got.shape != exact.shape:
            return False
        near = [_near(standard, name, got, model.format) for standard in standards]
        if not np.all(near[0] | near[1]):
            return False
    return True


def _near(standard: Standard, name: str, got: Array, format: Format) -> npt.NDArray[np.bool_]:
    """Where a number is as near to the truth as a number computed in the narrower format."""
    right, wide = np.asarray(standard.reference[name]), to_float64(got)
    with np.errstate(all="ignore"):
        factor = format.u / standard.formats[name].u
        limit = standard.bound[name] * factor + format.min_subnormal
        near = (np.abs(wide - right) <= limit) | (wide == right)
        near |= np.isnan(wide) & np.isnan(right)
        for other in standard.others.get(name, ()):  # of an input that the format makes infinite
            near |= np.isnan(wide) & np.isnan(other)
        return np.asarray(near | (np.isinf(wide) & (np.abs(right) > format.max)))


def _narrow(array: Array, model: PrecisionModel) -> Array:
    wide, format = to_float64(array), model.format
    with np.errstate(all="ignore"):
        if model.way == "cut":
            return formats.truncate_to(wide, format).astype(array.dtype)
        narrow = (
            formats.round_ties_away(wide, TF32) if format is TF32 else formats.cast(array, format)
        )
        return narrow.astype(array.dtype)
