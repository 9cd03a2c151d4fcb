"""Wrong and unstable ways to reduce, as they occur in kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

from refkernels.ops import Fault
from refkernels.reduction_ref.formulas import gradient, root, two_pass


def _with_ddof(fixed_ddof: int, xp: Any, x: Any, **_: Any) -> Any:
    return two_pass(xp, x, fixed_ddof)


def _one_pass(xp: Any, x: Any, ddof: int, **_: Any) -> Any:
    """mean x² - mean², which cancels, and may be negative."""
    n = x.shape[-1]
    variance = xp.mean(xp.square(x)) - xp.square(xp.mean(x))
    return variance * n / xp.number(max(n - ddof, 0)) if ddof else variance


def _variances(of: Any) -> tuple[Fault, ...]:
    unbiased, biased = (of(partial(_with_ddof, ddof)) for ddof in (1, 0))
    return (
        Fault("unbiased_variance", unbiased, gradient(unbiased)),
        Fault("biased_variance", biased, gradient(biased)),
        Fault("naive_variance", of(_one_pass), unstable=True),
    )


def _other_norm(kind: str, xp: Any, x: Any, **_: Any) -> Any:
    if kind == "rms":
        return xp.sqrt(xp.mean(xp.square(x)))
    if kind == "squared":
        return xp.sum(xp.square(x))
    return xp.sum(abs(x)) if kind == "1" else xp.max(abs(x))


def _to_first(xp: Any, dy: Any, x: Any, first: Any, **_: Any) -> Any:
    return xp.where(first, dy, xp.number(0))


def _to_all(xp: Any, dy: Any, x: Any, largest: Any, **_: Any) -> Any:
    return xp.where(largest, dy, xp.number(0))


def _exclusive(xp: Any, x: Any, **_: Any) -> Any:
    return xp.cumsum(x) - x


def _from_the_end(xp: Any, x: Any, **_: Any) -> Any:
    return xp.sum(x) - xp.cumsum(x) + x


VAR = (
    *_variances(lambda formula: formula),
    Fault("root_unasked", root(two_pass)),
)
STD = _variances(root)


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
    *(
        Fault("other_norm", partial(_other_norm, norm), details={"norm": norm})
        for norm in ("1", "max", "rms", "squared")
    ),
    Fault("eps_beside_norm", backward=_beside_norm, details={"eps": _GUARD}),
    Fault("norm_floored", _floored, _over_floored, details={"floor": _GUARD}),
)
MAX = (
    Fault("gradient_to_first", backward=_to_first),
    Fault("gradient_to_all", backward=_to_all),
)
PROD = (Fault("divided_by_zero_factor", backward=lambda xp, dy, x, **_: dy * xp.prod(x) / x),)
CUMSUM = (Fault("exclusive_cumsum", _exclusive), Fault("reversed_cumsum", _from_the_end))
