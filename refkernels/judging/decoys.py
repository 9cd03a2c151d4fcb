"""Decoys: answers that need no kernel. A challenge that accepts one of them shows nothing.

zeros; the first input that fits; one constant, the median of the truth; the answer to another
question, which is the truth of another row; NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.judging.standard import Challenge

Array = npt.NDArray[Any]


def decisive_outputs(challenge: Challenge) -> tuple[str, ...]:
    """The outputs for which this challenge rejects every decoy."""
    standard = challenge.standard()
    return tuple(
        name
        for name, right in standard.rounded.items()
        if right.size and all(standard.refuses(name, decoy) for decoy in of(challenge, right))
    )


def of(challenge: Challenge, right: Array) -> Iterator[Array]:
    """The decoys of an output whose correctly rounded values are these."""
    yield np.zeros_like(right)
    for array in challenge.floats.values():
        if array.size == right.size:
            yield np.ascontiguousarray(array).reshape(right.shape).astype(right.dtype)
            break
    wide = to_float64(right)
    finite = wide[np.isfinite(wide)]
    if finite.size > 1:  # the median of one number is the answer
        with np.errstate(over="ignore"):
            yield np.full_like(right, np.sort(finite)[finite.size // 2])
    if right.size > 1:
        axis = 0 if right.shape[0] > 1 else int(np.argmax(right.shape))
        yield np.roll(right, 1, axis=axis)
    yield np.full_like(right, np.nan)
