"""Two loss curves beside curves that differ by rounding alone: a p-value, and its sensitivity.

The spread s_t of step t is that of all curves, the candidate included, and at least one ulp of the
loss: from the null runs alone, 19 of 200 steps give false alarms in 15 to 53 % of right runs.

    of a pair A, B        D_ij = max_t |L_it - L_jt| / s_t over all pairs of the K + 2 curves;
                          p = #{pairs: D >= D_AB} / C(K + 2, 2)

`extreme`: one of the two is farther from the median of the others than any null run (by chance with
probability 2 / (K + 2)); `p_normal`: how surprising that is where rounding spreads normally. Both
hold where the null runs round as the runs do. A large p proves nothing: `least_rate_change` gives
the smallest change that would have been noticed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats

Curve = npt.NDArray[np.float64]
Curves = npt.NDArray[np.float64]  # (runs, steps)


@dataclass(frozen=True)
class CurveTest:
    """`statistic`: D_AB, attained at `step`; `p`, and the least p that so many runs can give;
    `steps`: how many were compared; `undecidable_after`: the step from which rounding spreads as
    far as other seeds do; `growth` of the spread per step; `least_rate_change`: the smallest
    relative change of the learning rate that would have been noticed."""

    statistic: float
    step: int
    p: float
    least_p: float
    runs: int
    steps: int
    extreme: bool
    p_normal: float | None
    undecidable_after: int | None
    growth: float | None
    least_rate_change: float | None


def of_pair(
    a: Curve, b: Curve, nulls: Curves, dtype: Any = "float32", seeds: Curves | None = None,
    wider: float = 1.0,
) -> CurveTest:  # fmt: skip
    """Two runs of what should be one definition, beside rounding-only runs of it, whose deviations
    from their mean are taken `wider` times as wide."""
    middle = np.mean(nulls, axis=0)
    nulls = middle + wider * (nulls - middle) if wider > 1.0 else nulls
    all_curves = np.vstack((a[None], b[None], nulls))
    length, saturated_at = _compared_steps(all_curves, dtype, seeds)
    all_curves = all_curves[:, :length]
    middle = np.mean(all_curves, axis=0)
    format = formats.get(str(dtype))
    _, exponents = np.frexp(np.maximum(np.abs(middle), format.min_normal))
    ulp = np.ldexp(1.0, exponents - format.p)
    spread = np.maximum(np.std(all_curves, axis=0, ddof=1), ulp)
    scaled = all_curves / spread
    first, second = np.triu_indices(len(all_curves), 1)
    scores = np.concatenate(
        [np.max(np.abs(scaled[i + 1 :] - curve), axis=1) for i, curve in enumerate(scaled[:-1])]
    )
    ratios = np.abs(scaled[0] - scaled[1])
    observed = float(np.max(ratios))
    p = float(np.count_nonzero(scores >= observed)) / len(scores)
    of_nulls = scores[(first > 1) & (second > 1)]
    critical = float(np.quantile(of_nulls, 0.95)) if of_nulls.size else math.inf
    return CurveTest(
        observed, int(np.argmax(ratios)), p, 1.0 / len(scores), len(nulls), len(ratios),
        _extreme(all_curves, ulp), _student(all_curves, ulp), saturated_at, growth(spread),
        least_rate_change(middle, spread, critical),
    )  # fmt: skip


def _extreme(all_curves: Curves, ulp: Curve) -> bool:
    """Whether one of the first two curves is the farthest of all: each is measured from the median
    of the others, in their mean absolute deviations. No width is less than an ulp, as in
    `_student`: losses with equal bits do not show how much other curves round."""
    scores = []
    ordered, count = np.sort(all_curves, axis=0), len(all_curves) - 1
    for index, curve in enumerate(all_curves):
        others = np.delete(all_curves, index, axis=0)
        low, high = (  # the middle of the curves that are left without it
            np.where(curve <= ordered[k], ordered[k + 1], ordered[k])
            for k in ((count - 1) // 2, count // 2)
        )
        middle = (low + high) / 2.0
        width = np.maximum(np.mean(np.abs(others - middle), axis=0), ulp)
        scores.append(float(np.max(np.abs(all_curves[index] - middle) / width)))
    return max(scores[:2]) > max(scores[2:], default=0.0)


def _student(all_curves: Curves, ulp: Curve) -> float | None:
    """The least p, over the first two curves and all steps, of Student's test of one more
    observation; None with fewer than two others. No width is less than an ulp: where most losses
    have the same bits, as at the first steps, the others differ by the format's spacing."""
    others = all_curves[2:]
    count = len(others)
    if count < 2:
        return None
    width = np.maximum(np.std(others, axis=0, ddof=1), ulp)
    deviations = np.abs(all_curves[:2] - np.mean(others, axis=0))
    t = deviations / (width * math.sqrt(1.0 + 1.0 / count))
    # Student's two-sided tail with f degrees of freedom: I_z(f / 2, 1 / 2) at z = f / (f + t²)
    degrees = flint.arb(count - 1)
    z = degrees / (degrees + flint.arb(float(np.max(t))) ** 2)
    return min(1.0, t.size * float(z.beta_lower(degrees / 2, flint.arb(1) / 2, 1)))


def needed(level: float) -> int:
    """How many null runs make a deviation of one of two runs less probable than the level."""
    return math.floor(2.0 / level) - 1


def _compared_steps(all_curves: Curves, dtype: Any, seeds: Curves | None) -> tuple[int, int | None]:
    """The number of compared steps, up to the first NaN or infinity and up to saturation; and the
    step of saturation, if any."""
    finite = np.all(np.isfinite(all_curves), axis=0)
    length = int(np.argmin(finite)) if not finite.all() else all_curves.shape[1]
    if length < 1:
        raise ValueError("a loss of the first step is not a finite number: there is no curve.")
    if seeds is None or len(seeds) < 2:
        return length, None
    length = min(length, seeds.shape[1])
    between = np.std(seeds[:, :length], axis=0, ddof=1)
    within = np.std(all_curves[:, :length], axis=0, ddof=1)
    saturated = np.nonzero(within >= between)[0]
    saturated = saturated[saturated > 0]  # before the first update all runs begin alike
    return (int(saturated[0]), int(saturated[0])) if saturated.size else (length, None)


def growth(spread: Curve) -> float | None:
    """The slope of ln(spread) over the steps, by least squares."""
    if len(spread) < 3 or not np.all(spread > 0.0):
        return None
    return float(np.polyfit(np.arange(len(spread)), np.log(spread), 1)[0])


def least_rate_change(losses: Curve, spread: Curve, critical: float) -> float | None:
    """The smallest relative change of the learning rate whose effect leaves the spread.

    A gradient flow with a rate larger by a factor 1 + d runs through the same losses, (1 + d) times
    as fast: L(t (1 + d)) - L(t) ~ d t L'(t). L' is the slope of a line through all steps up to t,
    which averages out the differences between batches. An estimate, for small steps.
    """
    if len(losses) < 3 or not math.isfinite(critical):
        return None
    time = np.arange(float(len(losses)))
    fallen, count = losses - losses[0], time + 1.0
    moments = np.cumsum(time * fallen) - time / 2.0 * np.cumsum(fallen)
    slopes = moments[2:] / (count * (count * count - 1.0) / 12.0)[2:]
    effect = float(np.max(np.abs(slopes * time[2:]) / spread[2:]))
    return critical / effect if effect > 0.0 else None
