"""The formulas of a residual and its RMS norm, and wrong ways to compute them."""

from __future__ import annotations

from typing import Any

from refkernels.norm_ref import rms_formulas


def normalised(form: Any, xp: Any, x: Any, residual: Any, eps: Any, weight: Any = None) -> Any:
    total = xp.may_store(x + residual)
    return form(xp, x=total, eps=eps, weight=weight), total


def normalised_gradient(
    form: Any, xp: Any, dy: Any, x: Any, residual: Any, eps: Any, weight: Any = None
) -> Any:
    total = xp.either(x + residual, xp.saved(x + residual))
    dx, dweight = form(xp, dy=dy, x=total, eps=eps, weight=weight)
    return dx, dx, dweight


def residual_after(xp: Any, x: Any, residual: Any, eps: Any, weight: Any = None) -> Any:
    """The residual is added to the normalised x."""
    return rms_formulas.FORMS["rsqrt"](xp, x=x, eps=eps, weight=weight) + residual, x + residual


def sum_normalised(xp: Any, x: Any, residual: Any, eps: Any, weight: Any = None) -> Any:
    """The next residual is the normalised sum (post-norm for pre-norm)."""
    y, _ = normalised(rms_formulas.FORMS["rsqrt"], xp, x, residual, eps, weight)
    return y, y
