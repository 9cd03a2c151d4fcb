"""Numbers in order, in any context: sorted, and the k largest.

Minima and maxima of enclosures are enclosures, so that a sorted row is one of sorted numbers even
where it is not certain which number is where.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.contexts.value import Mask


def ascending(xp: Any, rows: Any) -> Any:
    """The last axis in order, by a network of minima and maxima (Batcher's odd-even merge)."""
    places = np.arange(rows.shape[-1])
    for low, high in _network(places.size):
        partner = np.copy(places)
        partner[low], partner[high] = high, low
        others = xp.take(rows, partner, axis=-1)
        larger = xp.where(partner < places, xp.maximum(rows, others), rows)
        rows = xp.where(partner > places, xp.minimum(rows, others), larger)
    return rows


def _network(n: int) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """The rounds of comparisons that sort n numbers (Knuth, 5.2.2, algorithm M)."""
    p = most = 1 << max(n - 1, 0).bit_length() >> 1
    while p:
        q, rest, step = most, 0, p
        while step:
            first = np.arange(n - step)
            first = first[first & p == rest]
            yield first, first + step
            step, q, rest = q - p, q // 2, p
        p //= 2


def chosen(xp: Any, key: Any, k: int) -> Any:
    """Where a key is among the k largest of its row, of equal ones the first. Uncertain where the
    k-th and the next one may be equal."""
    n = key.shape[-1]
    if k >= n:
        return np.ones(key.shape, bool)
    ordered, one, none = ascending(xp, key), xp.number(1), xp.number(0)
    last, next_one = (xp.take(ordered, np.array([n - place]), axis=-1) for place in (k, k + 1))
    above, below = next_one < key, key < last
    number = xp.cumsum(xp.where(above | below, none, one))
    left = xp.number(Fraction(2 * k + 1, 2)) - xp.sum(xp.where(above, one, none))
    first = number < left  # certainly above the next one, or certainly below the k-th, is enough
    yes, no = above.yes | (below.no & first.yes), below.yes | (above.no & first.no)
    return Mask(yes, no)
