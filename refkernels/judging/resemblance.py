"""What refused answers amount to: zeros, a constant, the input, NaN, or what was in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from refkernels.arithmetic import formats
from refkernels.judging.standard import Challenge


def decoy_of(refused: Sequence[tuple[Challenge, Mapping[str, Any]]]) -> str | None:
    """The decoy to which all refused answers amount. Answers without elements are left out, and for
    the constant those of a single number."""
    kinds = {"answers_zeros": _zeros, "answers_memory": _memory, "answers_nan": _nan}
    kinds["answers_input"] = _input
    sizes = [max((a.size for a in arrays_of(outputs)), default=0) for _, outputs in refused]
    for kind, matches in {**kinds, "answers_constant": _constant}.items():
        least = 2 if kind == "answers_constant" else 1
        judged = [answer for answer, size in zip(refused, sizes, strict=True) if size >= least]
        if judged and all(matches(*answer) for answer in judged):
            return kind
    return None


def arrays_of(outputs: Mapping[str, Any]) -> list[Any]:
    return [a for a in outputs.values() if isinstance(a, np.ndarray) and a.size]


def _zeros(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(not np.any(array != 0) for array in arrays_of(outputs))


def _nan(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(
        formats.is_one(array.dtype) and np.isnan(array.astype(np.float64)).all()
        for array in arrays_of(outputs)
    )


def _memory(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    """Whether more than half of the elements are those that the cell left in memory: nothing wrote
    them."""
    return all(unwritten(array) > array.size // 2 for array in arrays_of(outputs))


def unwritten(array: Any) -> int:
    """The number of elements that are NaNs which no arithmetic gives, as the cell writes them
    (`remote/cell.py`)."""
    if not formats.is_one(array.dtype):
        return 0
    odd = np.isnan(array) & ~formats.computed_nans(array)
    return int(np.count_nonzero(odd))


def _input(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    inputs = [np.ascontiguousarray(array).tobytes() for array in challenge.floats.values()]
    return all(array.tobytes() in inputs for array in arrays_of(outputs))


def _constant(challenge: Challenge, outputs: Mapping[str, Any]) -> bool:
    return all(
        np.all(array.reshape(-1) == array.reshape(-1)[0])
        for array in arrays_of(outputs)
        if array.size > 1
    )
