"""What it takes to name a cause by bits: reproduced ones, and enough that tell causes apart."""

from __future__ import annotations

import numpy as np

from refkernels.arithmetic import formats
from refkernels.diagnosis.fit import Fit
from refkernels.diagnosis.hypothesis import Candidate, Confidence, Details
from refkernels.diagnosis.problem import Array

# Where an output is nothing but rounding, a model may have its bits by chance: in each element that
# tells two models apart with a probability of at most about 1/2, as both round next to the exact
# value. So many such elements make a coincidence rarer than one in a million.
TELLING = 20


def bits(array: Array) -> Array:
    """The bit patterns, every NaN the same one."""
    quiet = np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array)
    result: Array = np.ascontiguousarray(quiet).view(formats.of(array).bits_dtype)
    return result.reshape(array.shape)


def same(a: Array, b: Array) -> Array:
    """Mask of the elements with the same bits."""
    found: Array = np.asarray(np.equal(bits(a), bits(b)))
    return found


def telling(model: Array, other: Array, rows: bool = False) -> int:
    """How many elements (rows) tell two models apart: elements of a row may share one rounding."""
    apart: Array = np.asarray(np.logical_not(same(model, other)))
    if rows and apart.ndim > 1:
        apart = np.asarray(apart.reshape(-1, apart.shape[-1]).any(axis=1))
    return int(np.count_nonzero(apart))


def reproduced(
    cause: str,
    truth: Fit,
    got: Array,
    model: Array,
    name: str,
    details: Details | None = None,
    enough: bool = True,
) -> Candidate:
    """The candidate of a model: proven where all bits are the kernel's and those are not simply
    the correctly rounded ones. `enough`: whether the bits tell this cause from a harmless one."""
    equal = int(np.count_nonzero(same(got, model)))
    whole = equal == got.size and got.size > 0
    proven = whole and not truth.exact and (enough or not truth.ordinary)
    confidence: Confidence | None = "proven" if proven else None
    return Candidate(
        cause, truth.output, confidence, equal, got.size, details=details or {}, model=name
    )
