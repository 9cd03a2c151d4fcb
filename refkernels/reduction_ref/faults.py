"""Wrong ways to reduce, as they occur in kernels."""

from __future__ import annotations

from typing import Any

from refkernels.ops import Fault


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
NORM = (
    Fault("eps_beside_norm", backward=_beside_norm, details={"eps": _GUARD}),
    Fault("norm_floored", _floored, _over_floored, details={"floor": _GUARD}),
)
MAX = (
    Fault("gradient_to_first", backward=_to_first),
    Fault("gradient_to_all", backward=_to_all),
)
PROD = (Fault("divided_by_zero_factor", backward=lambda xp, dy, x, **_: dy * xp.prod(x) / x),)
