"""How surprising an answer is, given the exact one: code lengths under a null model.

A kernel that merely rounds gives fl(z + e ulp(z)). e has a Cauchy distribution whose scale is one
of s, s / 2, ..., r / 2^7, weighted by the preceding elements, in index order. In floats, r =
max(1/2, RMS error of the plain algorithm), and s >= r is that of the op's worst form, so that a
kernel of that form is no surprise. An element t floats from z has the probability

    p(t) = F((t + 1/2) / s) - F((t - 1/2) / s) = atan2(s, s^2 + t^2 - 1/4) / pi

and -log2 p bits. Small scales make a value next to a midpoint cheap on either side. The heavy tail
limits the cost of a distant element: 44,000 floats away, with s = 1/2, it has 35 bits.
"""

from __future__ import annotations

import math

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.diagnosis.problem import Array, Doubles
from refkernels.metrology import NO_DISTANCE, ulp, ulp_distance

_SCALES = 8
_LEAST = 0.5  # floats: one rounding of the exact answer


def steps(got: Array, reference: Enclosure) -> Doubles:
    """The distance from the exact value to got in floats of got's format: whole floats from its
    correct rounding, plus that rounding's fraction of a float. NaN against NaN is 0, NaN against a
    number 2^64. Flat arrays of one length."""
    format = formats.of(got)
    rounded = reference.round(format)[0]
    distance = ulp_distance(got, rounded)
    sign = np.where(formats.ordinals(got) < formats.ordinals(rounded), -1.0, 1.0)
    whole_floats = sign * distance.astype(np.float64)
    return whole_floats + np.where(
        distance == NO_DISTANCE, 0.0, _fraction(rounded, reference, format)
    )


def _fraction(rounded: Array, reference: Enclosure, format: Format) -> Doubles:
    with np.errstate(invalid="ignore", over="ignore"):
        error = (rounded.astype(np.float64) - reference.hi) - reference.lo
        fraction = error / ulp(reference.hi, format)
    usable = np.isfinite(fraction) & (reference.scale == 0)
    result: Doubles = np.clip(np.where(usable, fraction, 0.0), -0.5, 0.5)
    return result


def spread(plain: Doubles) -> float:
    """The RMS of an algorithm's finite steps, at least 1/2: r or s."""
    usable = plain[np.abs(plain) < 2.0**63]
    largest = float(np.max(np.abs(usable), initial=0.0))
    if largest <= _LEAST:
        return _LEAST
    return max(_LEAST, largest * float(np.sqrt(np.mean(np.square(usable / largest)))))


def widths(exact: Doubles, bound: Doubles, format: Format) -> Doubles:
    """How many floats an element's bound spans, over their median or a rounding; at least 1."""
    size = np.maximum(np.abs(exact), format.min_normal)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        inside = np.where(np.isfinite(size), bound / ulp(size, format), 0.0)
        across = 2.0 ** (format.p - 1) * (1.0 + np.log2(bound / size))
    spans = np.where(bound > size, np.minimum(inside, across), inside)
    spans = np.where(np.isfinite(spans), spans, 0.0)
    median = float(np.median(spans)) if spans.size else 0.0
    return np.maximum(1.0, spans / max(median, _LEAST))


def lengths(
    steps: Doubles, spread: float, widths: Doubles | float = 1.0, least: float | None = None
) -> Doubles:
    """-log2 of each element's probability, given those before it. `spread`: s; `least`: r, where it
    is smaller. `widths`: factors on each element's scale, where some may err more than others."""
    octaves = 0 if least is None else math.ceil(math.log2(spread / least))
    scales = spread * 2.0 ** -np.arange(_SCALES + octaves)[:, None] * widths
    size = np.minimum(np.abs(steps), 2.0**64)
    logs = np.log2(np.arctan2(scales, scales * scales + size * size - 0.25) / np.pi)
    cumulated = np.cumsum(logs, axis=1)
    largest = np.max(cumulated, axis=0, initial=-np.inf)
    total = largest + np.log2(np.mean(np.exp2(cumulated - largest), axis=0))
    return -np.diff(total, prepend=0.0)
