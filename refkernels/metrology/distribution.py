"""The distribution of an array's errors, from narrow bins: exact percentiles and a histogram."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.bits import EXPONENT, bits_of
from refkernels.arithmetic.blocks import BLOCK, each_block
from refkernels.arithmetic.decisions import step_of
from refkernels.arithmetic.jit import njit
from refkernels.metrology.elements import compare
from refkernels.metrology.plain import IN_BIN, NO_BIN, OPEN_BIN, inverse_ulp, lower_edges

TALLIED = 2 * BLOCK
"""Elements whose bins are counted together, because there are many bins."""
_GROUP = 64
_WANTED = 3


class Errors:
    """The errors of one pass by bin: counted there, computed again for the few bins that matter."""

    def __init__(
        self,
        columns: tuple[npt.NDArray[Any], ...],
        limits: tuple[int, int, int],
        bins: npt.NDArray[np.uint16],
        filled: npt.NDArray[np.int32],
    ) -> None:
        self.columns, self.limits, self.bins, self.filled = columns, limits, bins, filled
        # No sum exceeds the number of elements, and int32 is several times as fast.
        word = np.int32 if bins.size < 2**31 else np.int64
        self.totals = filled[:, :NO_BIN].sum(axis=0, dtype=word).astype(np.int64)

    def members(self, bins: list[int]) -> dict[int, npt.NDArray[np.float64]]:
        """The |errors| of these bins, in one pass. Bin 0 holds zeros only, and is not read."""
        chosen = [k for k in bins if k > 0]
        runs = self.filled[:, chosen].T  # counts of each bin, block by block
        places = np.zeros((len(chosen) + 1, runs.shape[1]), np.int64)
        places[:-1] = (np.cumsum(runs) - runs.reshape(-1)).reshape(runs.shape)
        sizes = np.empty(int(runs.sum()))
        # The first mark is repeated, so that there are always `_WANTED` marks to compare with.
        marks = np.array([*chosen, *[chosen[0]] * (_WANTED - len(chosen))] if chosen else [], int)
        if chosen:
            rest = (self.bins, marks.astype(np.uint16), places, sizes)
            each_block(_members, self.bins.size, *self.columns, self.limits, *rest, block=TALLIED)
        zeros = {k: np.zeros(int(self.totals[k])) for k in bins if k == 0}
        ends = np.cumsum(self.totals[chosen])
        starts = ends - self.totals[chosen]
        return zeros | {
            k: sizes[start:end] for k, start, end in zip(chosen, starts, ends, strict=True)
        }

    def percentiles(self) -> dict[str, float]:
        """Exact nearest-rank percentiles: the smallest error that at least such a share of the
        elements does not exceed."""
        upto = np.cumsum(self.totals)
        compared = int(upto[-1])
        if not compared:
            return {}
        ranks = {
            name: -(-thousandths * compared // 1000) - 1
            for name, thousandths in (("p50", 500), ("p99", 990), ("p999", 999))
        }
        bins = {
            name: int(np.searchsorted(upto, rank, side="right")) for name, rank in ranks.items()
        }
        members = self.members(sorted(set(bins.values())))
        values = {}
        for name, k in bins.items():
            place = ranks[name] - int(upto[k] - self.totals[k])
            values[name] = float(np.partition(members[k], place)[place])
        return values

    def histogram(self) -> list[tuple[float, int]]:
        """(lower edge, count) of each octave [2^k, 2^(k+1)) that holds an error; the edge is 0 for
        errors below 2^-6. The last bin holds all errors from 2^57 on: they are sorted here."""
        octaves: dict[float, int] = {}
        filled = np.flatnonzero(self.totals[:OPEN_BIN])
        edges = lower_edges(filled)
        for edge in np.unique(edges).tolist():
            octaves[edge] = int(self.totals[filled[edges == edge]].sum())
        for size in self.members([OPEN_BIN])[OPEN_BIN] if self.totals[OPEN_BIN] else ():
            edge = math.ldexp(1.0, math.frexp(size)[1] - 1) if math.isfinite(size) else math.inf
            octaves[edge] = octaves.get(edge, 0) + 1
        return sorted(octaves.items())


@njit(nogil=True)
def _members(
    first: int,
    last: int,
    got: Any,
    hi: Any,
    lo: Any,
    radius: Any,
    scale: Any,
    format: Any,
    bins: Any,
    marks: Any,
    places: Any,
    sizes: Any,
) -> None:
    """Writes the |errors| of the block's elements in three bins to its places in `sizes`."""
    p, emin, emax = format
    steps = step_of(lo, hi), step_of(radius, hi), step_of(scale, hi)
    block = first // TALLIED
    k0, k1, k2 = marks[0], marks[1], marks[2]
    at = places[:, block].copy()
    for group in range(first, last, _GROUP):
        upto = min(group + _GROUP, last)
        holds = False
        for i in range(np.uint64(group), np.uint64(upto)):  # no early exit, no sign: vectorised
            k = bins[i] & IN_BIN
            holds |= (k == k0) | (k == k1) | (k == k2)
        for i in range(group, upto if holds else group):
            k = bins[i] & IN_BIN
            if k != k0 and k != k1 and k != k2:
                continue
            g, z, tail = np.float64(got[i]), hi[i], lo[i * steps[0]]
            if bins[i] == k:
                size = abs((g - z) - tail) * inverse_ulp(bits_of(z) & EXPONENT, p)
            else:
                r, s = radius[i * steps[1]], scale[i * steps[2]]
                size = abs(compare(g, z, tail, r, s, p, emin, emax)[1])
            which = 0 if k == k0 else (1 if k == k1 else 2)
            sizes[at[which]] = size
            at[which] += 1
