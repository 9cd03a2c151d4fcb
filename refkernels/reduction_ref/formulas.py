"""The formulas of reductions, with m the mean of n numbers:

    var    sum (x_i - m)² / (n - ddof)                     dx_i = 2 dy (x_i - m) / (n - ddof)
    std    the root s of it                                dx_i = dy (x_i - m) / ((n - ddof) s)
    norm   (sum x_i²)^(1/2)                                dx_i = dy x_i / norm
    prod   x_1 ... x_n                                     dx_i = dy times the product of the others
    max    the largest                                     dx_i = dy / (number of the largest) there
    argmax the first place of the largest

sum, mean and cumsum are the contexts' own. The certified formulas of var and std subtract the first
x, on which no result depends, so that both are 0 where x is constant.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refkernels.ops import Fault
from refkernels.ops.formula import derived

gradient = partial(derived, outputs=("y",), cotangents={"dy": "y"}, inputs=("x",))


def _own(name: str) -> Any:
    """The contexts' own reduction of that name."""
    return lambda xp, x, **_: getattr(xp, name)(x)


total, mean, norm, prod, largest, cumsum = map(
    _own, ("sum", "mean", "norm", "prod", "max", "cumsum")
)


def place(xp: Any, x: Any, last: bool = False, **_: Any) -> Any:
    """The first place of the largest number, or its last one."""
    numbers = xp.array(np.arange(x.shape[-1], dtype=np.float64))
    if last:
        return xp.max(xp.where(x < xp.max(x), xp.number(0), numbers))
    return -xp.max(-xp.where(x < xp.max(x), xp.number(x.shape[-1]), numbers))


# --- variance ---------------------------------------------------------------------------------


def freedom(xp: Any, x: Any, ddof: int) -> Any:
    """max(n - ddof, 0), as in NumPy and PyTorch."""
    return xp.number(max(x.shape[-1] - ddof, 0))


def _over(xp: Any, squares: Any, x: Any, ddof: int) -> Any:
    """Divided, or times the reciprocal."""
    n = freedom(xp, x, ddof)
    return xp.either(squares / n, squares * (1 / n))


def two_pass(xp: Any, x: Any, ddof: int, **_: Any) -> Any:
    return _over(xp, xp.sum(xp.square(x - xp.mean(x))), x, ddof)


def welford(xp: Any, x: Any, ddof: int, **_: Any) -> Any:
    return _over(xp, xp.welford(x)[1], x, ddof)


def from_first(xp: Any, x: Any) -> Any:
    """x minus its first element: the variance is the same."""
    return x - xp.take_along_axis(x, np.zeros((*x.shape[:-1], 1), np.intp))


def shifted(xp: Any, x: Any, ddof: int, **_: Any) -> Any:
    return two_pass(xp, from_first(xp, x), ddof)


def _scaled(xp: Any, dy: Any, x: Any, ddof: int, **_: Any) -> Any:
    return 2 / freedom(xp, x, ddof) * dy * (x - xp.mean(x))


def _divided(xp: Any, dy: Any, x: Any, ddof: int, **_: Any) -> Any:
    return 2 * (dy * (x - xp.mean(x))) / freedom(xp, x, ddof)


def shifted_gradient(xp: Any, dy: Any, x: Any, ddof: int, **_: Any) -> Any:
    return _scaled(xp, dy, from_first(xp, x), ddof)


VAR = {"two_pass": two_pass, "welford": welford}
VAR_BACKWARD = {"scaled": _scaled, "divided": _divided, "composed": gradient(two_pass)}


def root(of: Any) -> Any:
    """The standard deviation, from a variance."""
    return lambda xp, **arguments: xp.sqrt(of(xp, **arguments))


def _std_scaled(xp: Any, dy: Any, x: Any, ddof: int, **_: Any) -> Any:
    s = xp.saved(xp.sqrt(two_pass(xp, x, ddof)))
    return dy / (s * freedom(xp, x, ddof)) * (x - xp.mean(x))


def _std_by_var(xp: Any, dy: Any, x: Any, ddof: int, **_: Any) -> Any:
    s = xp.saved(xp.sqrt(two_pass(xp, x, ddof)))
    return _scaled(xp, xp.either(dy / (2 * s), dy / s / 2), x, ddof)


def shifted_std_gradient(xp: Any, dy: Any, x: Any, ddof: int, **_: Any) -> Any:
    return _std_scaled(xp, dy, from_first(xp, x), ddof)


STD = {name: root(of) for name, of in VAR.items()}
STD_BACKWARD = {
    "scaled": _std_scaled,
    "by_variance": _std_by_var,
    "composed": gradient(root(two_pass)),
}


def mean_gradient(xp: Any, dy: Any, x: Any, **_: Any) -> Any:
    """Divided, or times the reciprocal."""
    n = xp.number(x.shape[-1])
    return xp.broadcast(xp.either(dy / n, dy * (1 / n)), x.shape)


# --- gradients --------------------------------------------------------------------------------


def by_norm(xp: Any, dy: Any, x: Any, **_: Any) -> Any:
    y = xp.saved(xp.norm(x))
    return xp.either(dy / y * x, xp.either(dy * (x / y), dy * x / y))


def by_others(xp: Any, dy: Any, x: Any, **_: Any) -> Any:
    return dy * xp.others(x)


def by_quotient(xp: Any, dy: Any, x: Any, zero: Any, **_: Any) -> Any:
    """y / x, and the product of the others where x is 0."""
    divisor = xp.where(zero, xp.number(1), x)
    y = xp.saved(xp.prod(x))
    quotient = xp.either(dy * y / divisor, dy * (y / divisor))
    return xp.where(zero, dy * xp.others(x), quotient)


# --- wrong ways, as they occur in kernels ------------------------------------------------


def _to_first(xp: Any, dy: Any, x: Any, first: Any, **_: Any) -> Any:
    return xp.where(first, dy, xp.number(0))


def _to_all(xp: Any, dy: Any, x: Any, largest: Any, **_: Any) -> Any:
    return xp.where(largest, dy, xp.number(0))


def _beside_norm(xp: Any, dy: Any, x: Any, **_: Any) -> Any:
    """As in PaddlePaddle: dx of a row of zeros is 0, and that of small numbers is too small."""
    return dy * x / (xp.norm(x) + xp.number(_GUARD))


def _floored(xp: Any, x: Any, **_: Any) -> Any:
    """As in MindSpore, also for zeros."""
    return xp.maximum(xp.norm(x), xp.number(_GUARD))


def _over_floored(xp: Any, dy: Any, x: Any, **_: Any) -> Any:
    return dy * x / _floored(xp, x)


_GUARD = 1e-12
NORM_FAULTS = (
    Fault("eps_beside_norm", backward=_beside_norm, details={"eps": _GUARD}),
    Fault("norm_floored", _floored, _over_floored, details={"floor": _GUARD}),
)
MAX_FAULTS = (
    Fault("gradient_to_first", backward=_to_first),
    Fault("gradient_to_all", backward=_to_all),
)
PLACE_FAULTS = (Fault("ties_to_last", partial(place, last=True)),)
PROD_FAULTS = (
    Fault("divided_by_zero_factor", backward=lambda xp, dy, x, **_: dy * xp.prod(x) / x),
)
