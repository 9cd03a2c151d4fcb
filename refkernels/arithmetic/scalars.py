"""A caller's own numbers, such as eps: taken exactly or refused, never rounded silently."""

import math
from typing import Any

import ml_dtypes
import numpy as np

from refkernels.arithmetic.wording import shown

_REAL = (int, float, np.integer, np.floating, ml_dtypes.bfloat16)
_WHOLE = (int, np.integer)
_NOT_REAL = (bool, np.timedelta64)  # Python and NumPy take them for integers


def as_real(value: Any, name: str) -> float:
    """`value`, a number of Python's or NumPy's, as the float that equals it.

    Raises TypeError, naming `name`, for anything but a real number (True, "1e-5", 1j, arrays), and
    ValueError where no float equals it (10**400, 2**53 + 1).
    """
    if not issubclass(type(value), _REAL) or issubclass(type(value), _NOT_REAL):
        raise TypeError(f"{name} is {shown(value)}, but it must be a real number, such as 1e-5.")
    try:
        # NumPy compares integers with floats after rounding them.
        exact = int(value) if isinstance(value, np.integer) else value
        number = float(exact)
        is_exact = bool(number == exact or exact != exact)
    except OverflowError:
        is_exact = False
    if not is_exact:
        raise ValueError(f"{name} is {shown(value)}, which float64 does not hold exactly.")
    return number


def as_eps(value: Any) -> float:
    """`as_real` for an eps, which keeps a denominator from 0. Raises ValueError below 0 and for
    what is not finite."""
    number = as_real(value, "eps")
    if not (math.isfinite(number) and number >= 0.0):
        raise ValueError(f"eps is {number}, but it must be finite and at least 0.")
    return number


def as_count(value: Any, name: str, least: int = 1) -> int:
    """`value` as an int >= least that 64 bits hold. Raises TypeError for anything but an integer
    (3.0, "3", True), and ValueError beyond."""
    if not issubclass(type(value), _WHOLE) or issubclass(type(value), _NOT_REAL):
        raise TypeError(f"{name} is {shown(value)}, but it must be an integer.")
    number = int.__index__(value) if isinstance(value, int) else int(value)
    if not least <= number < 2**63:
        limit = f"at least {least}" if number < least else "less than 2^63"
        raise ValueError(f"{name} is {shown(value)}, but it must be {limit}.")
    return number
