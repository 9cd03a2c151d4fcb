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
    """The errors of one pass, counted by bin, and computed again for the few bins that matter."""

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
        totals = filled[0] if len(filled) == 1 else filled.sum(axis=0, dtype=word)
        self.present = np.flatnonzero(totals[:NO_BIN] != 0)  # faster on booleans
        """The bins that hold an error, in order; `counts`: how many each holds."""
        self.counts = totals[self.present].astype(np.int64)

    def members(self, bins: list[int]) -> dict[int, npt.NDArray[np.float64]]:
        """The |errors| of up to three bins, not bin 0, which holds zeros only; in one pass."""
        if not bins:
            return {}
        runs = self.filled[:, bins].T  # counts of each bin, block by block
        ends = np.cumsum(runs, dtype=np.int64).reshape(runs.shape)
        places = np.zeros((_WANTED, len(self.filled)), np.int64)
        places[: len(bins)] = ends - runs
        sizes = np.empty(int(ends[-1, -1]))
        # The first mark is repeated, so that there are always `_WANTED` marks to compare with.
        marks = np.array([*bins, *bins[:1] * (_WANTED - len(bins))], np.uint16)
        outputs = (self.bins, marks, places, sizes)
        each_block(_members, self.bins.size, *self.columns, self.limits, *outputs, block=TALLIED)
        return {k: sizes[places[n, 0] : ends[n, -1]] for n, k in enumerate(bins)}

    def percentiles(self) -> dict[str, float]:
        """Exact nearest-rank percentiles: the smallest error that at least that share of the
        elements does not exceed."""
        if not self.present.size:
            return {}
        cumulated = np.cumsum(self.counts)
        thousandths = {"p50": 500, "p99": 990, "p999": 999}
        ranks = [-(-share * int(cumulated[-1]) // 1000) - 1 for share in thousandths.values()]
        runs = np.searchsorted(cumulated, ranks, side="right")
        bins, inside = (
            self.present[runs].tolist(),
            (ranks - cumulated[runs] + self.counts[runs]).tolist(),
        )
        members = self.members(sorted({k for k in bins if k}))
        return {
            name: float(np.partition(members[k], place)[place]) if k else 0.0
            for name, k, place in zip(thousandths, bins, inside, strict=True)
        }

    def histogram(self) -> list[tuple[float, int]]:
        """(lower edge, count) of each octave [2^k, 2^(k+1)) that holds an error; the edge is 0 for
        errors below 2^-6. The last bin holds all errors from 2^57 on: they are sorted here."""
        last = int(self.present[-1]) if self.present.size else 0
        closed = self.present.size - (last == OPEN_BIN)
        edges = lower_edges(self.present[:closed])
        starts = np.flatnonzero(np.diff(edges, prepend=-1.0))
        counts = np.add.reduceat(self.counts[:closed], starts)
        octaves = dict(zip(edges[starts].tolist(), counts.tolist(), strict=True))
        for size in self.members([OPEN_BIN])[OPEN_BIN] if last == OPEN_BIN else ():
            edge = math.ldexp(1.0, math.frexp(size)[1] - 1) if math.isfinite(size) else math.inf
            octaves[edge] = octaves.get(edge, 0) + 1
        return sorted(octaves.items())


@njit(nogil=True)
def _members(first, last, got, hi, lo, radius, scale, format, bins, marks, places, sizes):
    """Writes the |errors| of the block's elements in three bins to its places in `sizes`."""
    p, emin, emax = format
    steps = step_of(lo, hi), step_of(radius, hi), step_of(scale, hi)
    block = first // TALLIED
    k0, k1, k2 = marks[0], marks[1], marks[2]
    next_places = places[:, block].copy()
    for group in range(first, last, _GROUP):
        end = min(group + _GROUP, last)
        holds = False
        for i in range(np.uint64(group), np.uint64(end)):  # no early exit, no sign: vectorised
            k = bins[i] & IN_BIN
            holds |= (k == k0) | (k == k1) | (k == k2)
        for i in range(group, end if holds else group):
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
            sizes[next_places[which]] = size
            next_places[which] += 1
