"""Steps in the wrong direction: neighbouring inputs whose answers are ordered against the truth.

Where the function is monotone, an inversion is a non-monotone step; elsewhere it is still a step
that no correctly rounded kernel makes. No table of monotone functions is needed: the exact values
themselves give the direction of each step.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.enclosure import Enclosure


def inverted(
    got_before: npt.NDArray[np.float64],
    got_after: npt.NDArray[np.float64],
    before: Enclosure,
    after: Enclosure,
) -> tuple[Any, Any]:
    """(certainly, possibly) for each step: whether the answers step against the exact values.

    The exact step z' - z lies within r + r' of (hi' - hi) + (lo' - lo). Its sign is certain if that
    sum exceeds r + r' and its own roundings together. There are 3 roundings, each of at most 2^-53
    of its operands; 2^-50 (|hi' - hi| + |lo' - lo|) covers them, because the first difference is
    exact or at least half of the larger hi. Both values are brought to the larger scale first; the
    underflow that this causes is less than 2^-1070 in all. A step to or from NaN or an infinite
    exact value never counts as inverted.
    """
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scale = np.maximum(before.scale, after.scale)
        (hi, lo, radius), (hi_after, lo_after, radius_after) = (
            (np.ldexp(part, side.scale - scale) for part in (side.hi, side.lo, side.radius))
            for side in (before, after)
        )
        rise, correction = hi_after - hi, lo_after - lo
        step = rise + correction
        slack = (radius + radius_after) * (1 + 2.0**-50)
        slack = slack + 2.0**-50 * (np.abs(rise) + np.abs(correction))
        slack = slack + 2.0**-1070 * (before.scale != after.scale)
        known = np.abs(step) > slack
        up, down = got_after > got_before, got_after < got_before
        certainly = known & ((up & (step < 0.0)) | (down & (step > 0.0)))
        possibly = ~known & (up | down) & np.isfinite(before.hi) & np.isfinite(after.hi)
    return certainly, possibly
