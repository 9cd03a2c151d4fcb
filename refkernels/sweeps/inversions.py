"""Steps in the wrong direction: neighbouring inputs whose answers are ordered against the truth.

Where a function is monotone this is what a non-monotone step is; where it is not, it is still an
order that no correctly rounded kernel gives. It needs no table of where which function is monotone:
the exact values themselves say which way a step must go.
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
) -> Any:
    """Where the answers certainly step against the exact values, elementwise.

    The exact step z' - z lies within r + r' of (hi' - hi) + (lo' - lo). Its sign is certain where
    that sum is larger than r + r' and than its own roundings: 3 of them, at most 2^-53 of the
    operands each, which 2^-50 (|step| + |lo' - lo|) covers, the first difference being exact or at
    least half of the larger hi. Where a scale is not 0, only different signs tell.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        rise, correction = after.hi - before.hi, after.lo - before.lo
        step = rise + correction
        slack = (before.radius + after.radius) * (1 + 2.0**-50)
        slack = slack + 2.0**-50 * (np.abs(rise) + np.abs(correction))
        certain = (np.abs(step) > slack) & (before.scale == 0) & (after.scale == 0)
        up = (got_after > got_before) & (step < 0.0)
        down = (got_after < got_before) & (step > 0.0)
        return certain & (up | down)
