"""Steps in the wrong direction: neighbouring inputs whose answers are ordered against the truth.

Where the function is monotone, an inversion is a non-monotone step; elsewhere it is still an order
that no correctly rounded kernel gives. No table of monotone functions is needed: the exact values
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
    """(certainly, possibly) for each step: the answers step against the exact values, or may.

    The exact step z' - z lies within r + r' of (hi' - hi) + (lo' - lo). Its sign is certain where
    that sum is larger than r + r' and than its own roundings: 3 of them, at most 2^-53 of the
    operands each, which 2^-50 (|step| + |lo' - lo|) covers, the first difference being exact or at
    least half of the larger hi. Both are taken to the larger scale first; what that makes underflow
    is less than 2^-1070 in all. No step to or from NaN or an infinite exact value is against it.
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
