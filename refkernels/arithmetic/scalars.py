"""A caller's own numbers, such as eps: taken as they are or refused, never rounded in silence."""

from typing import Any

import ml_dtypes
import numpy as np

from refkernels.arithmetic.wording import shown


def as_real(value: Any, name: str) -> float:
    """`value`, a number of Python's or NumPy's, as the float that equals it.

    Raises TypeError, naming `name`, for what is no real number (True, "1e-5", 1j, arrays), and
    ValueError where no float equals it (10**400, 2**53 + 1).
    """
    real = isinstance(value, int | float | np.integer | np.floating | ml_dtypes.bfloat16)
    if not real or isinstance(value, bool):
        raise TypeError(f"{name} is {shown(value)}, but it must be a real number, such as 1e-5.")
    if isinstance(value, np.integer):
        value = int(value)  # NumPy compares integers with floats after rounding them
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number != value and value == value:
        raise ValueError(f"{name} is {shown(value)}, which float64 does not hold exactly.")
    return number


def as_count(value: Any, name: str, least: int = 1) -> int:
    """`value` as an int >= least that 64 bits hold. Raises TypeError for what is no integer (3.0,
    "3", True), and ValueError beyond."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {shown(value)}, but it must be an integer.")
    if not least <= value < 2**63:
        limit = f"at least {least}" if value < least else "less than 2^63"
        raise ValueError(f"{name} is {shown(value)}, but it must be {limit}.")
    return int(value)
