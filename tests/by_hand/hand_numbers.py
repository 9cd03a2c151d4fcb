"""Arrays of mpmath's numbers: exact from floats, with the functions that definitions need.

Nothing of refkernels is imported here or by the definitions: they share no code with the oracles.
In a product of an array and a number the array comes first: a number asked first prints it whole.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from mpmath import mp

Numbers = np.ndarray[Any, Any]
Rounding = Literal["f", "c"]  # mpmath's names: to the floor, to the ceiling
OPPOSITE: dict[Rounding, Rounding] = {"f": "c", "c": "f"}


class MinusZero(mp.mpf):  # type: ignore[misc, name-defined]
    """-0, of which an mpf keeps no sign; what is computed from it is an mpf."""


@contextmanager
def rounded(digits: int, rounding: Rounding) -> Iterator[None]:
    """All of mpmath's results have so many digits, and are rounded that way."""
    before = mp._prec_rounding[1]
    with mp.workdps(digits):
        mp._prec_rounding[1] = rounding
        try:
            yield
        finally:
            mp._prec_rounding[1] = before


def exact(array: Any) -> Numbers:
    """The same numbers as mpf; arrays of integers and truth values stay as they are."""
    array = np.asarray(array)
    if array.dtype.kind in "iub" and array.dtype != np.int8:
        return array
    wide = np.asarray(array, np.float64)
    numbers = [MinusZero() if x == 0 and np.signbit(x) else mp.mpf(float(x)) for x in wide.ravel()]
    return np.array([*numbers, None], object)[:-1].reshape(wide.shape)


def number(param: Any) -> Any:
    """A param: a float exactly, anything else as it is."""
    return mp.mpf(param) if isinstance(param, float) else param


def each(function: Any) -> Any:
    """The function of each number of an array; of a bare number too."""
    return np.frompyfunc(function, 1, 1)


exp, log, log1p, sqrt = each(mp.exp), each(mp.log), each(mp.log1p), each(mp.sqrt)


def softplus(x: Any) -> Any:
    """log(1 + e^x), also where e^x alone would lose x or exceed all memory."""
    return np.where(x > 0, x, x * 0) + log1p(exp(-abs(x)))


def decimal(digits: str) -> Any:
    """A constant that the definition gives in decimal digits."""
    return mp.mpf(digits)


def last_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))
