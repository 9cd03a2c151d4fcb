"""Decoys: answers that need no kernel. A challenge that accepts one of them shows nothing, and a
kernel whose refused answers are all one of them cheats.

zeros; the first input that fits; the truth's median; another row's truth; NaN; what was in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.judging.standard import Challenge

Array = npt.NDArray[Any]


def decisive_outputs(challenge: Challenge) -> tuple[str, ...]:
    """The outputs for which this challenge rejects every decoy."""
    standard = challenge.standard()
    return tuple(
        name
        for name, right in standard.rounded.items()
        if right.size and all(standard.fault_of(name, decoy) for decoy in of(challenge, right))
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


def decoy_of(refused: Sequence[tuple[Challenge, Mapping[str, Any]]]) -> str | None:
    """The decoy to which all refused answers amount. Answers without elements are left out, and for
    the constant those of a single number."""
    kinds: dict[str, Callable[[Any, Challenge], Any]] = {
        "answers_zeros": lambda a, _: not np.any(a != 0),
        "answers_memory": lambda a, _: unwritten(a) > a.size // 2,
        "answers_nan": lambda a, _: formats.is_one(a.dtype) and np.isnan(to_float64(a)).all(),
        "answers_input": lambda a, c: any(a.tobytes() == x.tobytes() for x in c.floats.values()),
        "answers_constant": lambda a, _: np.all(a == a.reshape(-1)[0]),
    }
    for kind, matches in kinds.items():
        least = 2 if kind == "answers_constant" else 1
        found = [(a, c) for c, outputs in refused for a in arrays_of(outputs) if a.size >= least]
        if found and all(matches(*answer) for answer in found):
            return kind
    return None


def arrays_of(outputs: Mapping[str, Any]) -> list[Any]:
    return [a for a in outputs.values() if isinstance(a, np.ndarray) and a.size]


def unwritten(array: Any) -> int:
    """The number of elements that are NaNs which no arithmetic gives, as the cell writes them
    (`remote/cell.py`)."""
    if not formats.is_one(array.dtype):
        return 0
    return int(np.count_nonzero(np.isnan(array) & ~formats.computed_nans(array)))
