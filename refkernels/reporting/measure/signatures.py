"""What the digits of an unexplained answer show: float64 answers that are float32 numbers.

An answer computed in float64 fits in the 24 bits of a float32 by chance once in 2^29. A few values
fit in any case: 0, powers of two, a short fraction. So an output has the signature if every worst
answer that is finite and not 0 fits, and one of them needs more than half of the bits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from refkernels.reporting.measure.inputs import Place, place_of
from refkernels.reporting.measure.study import Measurement

CAUSE = "float32_cast"  # the cause that has this signature
_BITS = 24  # of a float32's significand
_BIG, _SMALL = 2.0**128, 2.0**-126


def float32_places(measurements: Iterable[Measurement]) -> set[Place]:
    """The outputs whose float64 answers are float32 numbers, of these measurements."""
    bits: dict[Place, list[int]] = defaultdict(list)
    for m in measurements:
        if m.dtype == "float64" and (answer := _answer(m)):
            fits = _SMALL <= abs(answer) < _BIG
            bits[place_of(m)].append(_bits(answer) if fits else 53)
    return {place for place, counts in bits.items() if _BITS // 2 < max(counts) <= _BITS}


def _answer(m: Measurement) -> float | None:
    """The target's answer for the worst element; None if it is 0, not finite or not recorded."""
    text = str((m.worst.get("got") or {}).get("hex") or "")
    try:
        answer = float.fromhex(text)
    except (ValueError, OverflowError):
        return None
    return answer if math.isfinite(answer) and answer != 0.0 else None


def _bits(value: float) -> int:
    """How many bits of significand a value needs."""
    numerator, _ = abs(value).as_integer_ratio()
    return numerator.bit_length() - (numerator & -numerator).bit_length() + 1
